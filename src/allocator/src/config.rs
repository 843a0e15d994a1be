//! Settings, frameworks, agents and refusals as plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::policies::Policies;
use crate::sorters::SorterKind;
use crate::{Attribute, OfferConstraints};
use resources::{Name, Quantities, Resources, Role};

/// Settings that hold for the allocator's whole life. [`Config::default`] is Mesos 1.11's defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// `--min_allocatable_resources`: an offer is made only if it contains one of these. Empty: whatever is not empty.
    pub min_allocatable: Vec<Quantities>,
    /// `--filter_gpu_resources`: agents with `gpus` are hidden from frameworks without that capability.
    pub filter_gpu_resources: bool,
    /// `--fair_sharing_excluded_resource_names`: names that do not count for the dominant share.
    pub fair_sharing_excluded: BTreeSet<Name>,
    /// `--allocation_interval`: the least life of a filter, and the distance of two interval runs.
    pub allocation_interval: Duration,
    /// The master's region (`--domain`); agents of another region are offered to region-aware frameworks only.
    pub region: Option<String>,
    /// How long offers and refusals last, how much one framework may hold, how finely agents are offered.
    pub policies: Policies,
    /// `--role_sorter`: the order of roles.
    pub role_sorter: SorterKind,
    /// `--framework_sorter`: the order of the frameworks of a role.
    pub framework_sorter: SorterKind,
    /// Where the order in which agents are visited starts from. Two runs with the same seed and inputs are equal.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            min_allocatable: vec![
                std::iter::once((Name::Cpus, resources::Amount::from_thousandths(10))).collect(),
                std::iter::once((Name::Mem, resources::Amount::from_units(32))).collect(),
            ],
            filter_gpu_resources: true,
            fair_sharing_excluded: BTreeSet::new(),
            allocation_interval: Duration::from_secs(1),
            region: None,
            policies: Policies::default(),
            role_sorter: SorterKind::Drf,
            framework_sorter: SorterKind::Drf,
            seed: 0,
        }
    }
}

/// What a framework can handle; what it cannot is stripped from its offers or keeps agents from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameworkCapabilities {
    /// MULTI_ROLE: several roles, and no offers from agents that do not know roles.
    pub multi_role: bool,
    /// GPU_RESOURCES: may see agents that have `gpus`.
    pub gpu_resources: bool,
    /// SHARED_RESOURCES: may be offered shared volumes.
    pub shared_resources: bool,
    /// REVOCABLE_RESOURCES: may be offered what can be taken back.
    pub revocable_resources: bool,
    /// RESERVATION_REFINEMENT: may be offered what is reserved more than once.
    pub reservation_refinement: bool,
    /// REGION_AWARE: may be offered agents of other regions.
    pub region_aware: bool,
}

/// A framework as its subscription describes it.
#[derive(Clone, Debug, Default)]
pub struct FrameworkOptions {
    /// What it is called; policies may name it so.
    pub name: String,
    /// The roles that it is subscribed to.
    pub roles: BTreeSet<Role>,
    /// The suppressed roles; roles that it is not subscribed to are ignored.
    pub suppressed_roles: BTreeSet<Role>,
    /// What it can handle.
    pub capabilities: FrameworkCapabilities,
    /// `offer_filters[role].min_allocatable_resources`: overrides [`Config::min_allocatable`]; an empty list is not a
    /// minimum.
    pub min_allocatable: BTreeMap<Role, Vec<Quantities>>,
    /// `offer_constraints`: conditions on the agents that it is offered.
    pub constraints: OfferConstraints,
}

/// What an agent can handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// MULTI_ROLE: it may be offered to frameworks of several roles.
    pub multi_role: bool,
    /// HIERARCHICAL_ROLE: it may be offered to roles with a `/`.
    pub hierarchical_role: bool,
}

/// Every agent since Mesos 1.5 has both.
impl Default for AgentCapabilities {
    fn default() -> AgentCapabilities {
        AgentCapabilities { multi_role: true, hierarchical_role: true }
    }
}

/// An agent beside its resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// What it can handle.
    pub capabilities: AgentCapabilities,
    /// The name that the whitelist knows it by.
    pub hostname: String,
    /// The region of its fault domain; none is the master's own.
    pub region: Option<String>,
    /// The zone of its fault domain, for offer constraints.
    pub zone: Option<String>,
    /// Its attributes, in the order of its info, for offer constraints.
    pub attributes: Vec<Attribute>,
    /// Why it is unhealthy, if it is; for explanations.
    pub unhealthy: Option<String>,
}

impl AgentOptions {
    /// Nothing differs by which a framework may have judged the agent.
    pub(crate) fn is_same_place(&self, other: &AgentOptions) -> bool {
        (&self.hostname, &self.region, &self.zone, &self.attributes)
            == (&other.hostname, &other.region, &other.zone, &other.attributes)
    }
}

/// A refusal: the framework is not offered the returned resources for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// `refuse_seconds`, already put right by [`Filter::from_refuse_seconds`]. Zero: until the next interval run.
    pub refuse: Duration,
}

impl Filter {
    /// Mesos's `refuse_seconds` when the call names none.
    pub const DEFAULT_REFUSE: Duration = Duration::from_secs(5);
    /// The longest refusal.
    pub const MAX_REFUSE: Duration = Duration::from_secs(365 * 24 * 3600);

    /// Reads `Filters.refuse_seconds`: what is negative or no number is 5 seconds, and a year is the most.
    #[must_use]
    pub fn from_refuse_seconds(seconds: Option<f64>) -> Filter {
        let refuse = match seconds {
            None => Filter::DEFAULT_REFUSE,
            Some(seconds) if seconds.is_nan() || seconds < 0.0 => Filter::DEFAULT_REFUSE,
            Some(seconds) if seconds >= Filter::MAX_REFUSE.as_secs_f64() => Filter::MAX_REFUSE,
            Some(seconds) => Duration::from_secs_f64(seconds),
        };
        Filter { refuse }
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { refuse: Filter::DEFAULT_REFUSE }
    }
}

/// In which of the two states resources were when they came back or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// In an outstanding offer.
    Offered,
    /// By tasks, executors or operations.
    Used,
}

/// A framework that holds resources, in which role and on which agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The framework.
    pub framework: &'a base::FrameworkId,
    /// In which of its roles: the role of the resources' allocation info.
    pub role: &'a Role,
    /// On which agent.
    pub agent: &'a base::AgentId,
}

/// One offer to be made: the resources count as the framework's from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    /// The framework.
    pub framework: base::FrameworkId,
    /// In which of its roles.
    pub role: Role,
    /// The agent.
    pub agent: base::AgentId,
    /// What, without allocation info: the caller writes the role into it.
    pub resources: Arc<Resources>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuse_seconds_are_put_right() {
        for (given, seconds) in [
            (None, 5.0),
            (Some(f64::NAN), 5.0),
            (Some(-1.0), 5.0),
            (Some(0.0), 0.0),
            (Some(0.5), 0.5),
            (Some(f64::INFINITY), 31_536_000.0),
            (Some(1e300), 31_536_000.0),
        ] {
            assert_eq!(Filter::from_refuse_seconds(given).refuse.as_secs_f64(), seconds, "{given:?}");
        }
    }
}
