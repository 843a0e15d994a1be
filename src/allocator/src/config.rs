//! Settings, frameworks, agents and refusals as plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::policies::Policies;
use crate::sorters::SorterKind;
use crate::{Attribute, OfferConstraints};
use resources::{Name, Quantities, Resources, Role};

/// Settings that never change in an allocator. [`Config::default`] has the defaults of Mesos 1.11.
#[derive(Clone, Debug)]
pub struct Config {
    /// Minima of which an offer contains at least one; if empty, an offer only must not be empty.
    /// `--min_allocatable_resources`.
    pub min_allocatable: Vec<Quantities>,
    /// Whether agents with `gpus` are offered only to frameworks with the capability GPU_RESOURCES:
    /// `--filter_gpu_resources`.
    pub filter_gpu_resources: bool,
    /// Names of resources that do not count for the dominant share: `--fair_sharing_excluded_resource_names`.
    pub fair_sharing_excluded: BTreeSet<Name>,
    /// Interval of two interval runs, and the shortest duration of a filter: `--allocation_interval`.
    pub allocation_interval: Duration,
    /// Region of the master (`--domain`). Agents of another region are offered only to region-aware frameworks.
    pub region: Option<String>,
    /// Policies about how long offers and refusals last, how much one framework may hold, and how finely agents are
    /// offered.
    pub policies: Policies,
    /// Order of roles in a run: `--role_sorter`.
    pub role_sorter: SorterKind,
    /// Order of the frameworks of a role in a run: `--framework_sorter`.
    pub framework_sorter: SorterKind,
    /// Seed of the order in which agents are visited. Two runs with the same seed and inputs are equal.
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

/// Capabilities of a framework. Without them, some resources are left out of its offers, and some agents are not
/// offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameworkCapabilities {
    /// MULTI_ROLE: the framework may have several roles, and receives no offers from agents that do not know roles.
    pub multi_role: bool,
    /// GPU_RESOURCES: the framework may be offered agents that have `gpus`.
    pub gpu_resources: bool,
    /// SHARED_RESOURCES: the framework may be offered shared volumes.
    pub shared_resources: bool,
    /// REVOCABLE_RESOURCES: the framework may be offered revocable resources.
    pub revocable_resources: bool,
    /// RESERVATION_REFINEMENT: the framework may be offered resources with several reservations.
    pub reservation_refinement: bool,
    /// REGION_AWARE: the framework may be offered agents of other regions.
    pub region_aware: bool,
}

/// A framework as its subscription describes it.
#[derive(Clone, Debug, Default)]
pub struct FrameworkOptions {
    /// Name of the framework, by which policies may refer to it.
    pub name: String,
    /// Roles that the framework is subscribed to.
    pub roles: BTreeSet<Role>,
    /// Suppressed roles of the framework. Roles that it is not subscribed to are ignored.
    pub suppressed_roles: BTreeSet<Role>,
    /// Capabilities of the framework.
    pub capabilities: FrameworkCapabilities,
    /// Minimum offers by role, which replace [`Config::min_allocatable`]:
    /// `offer_filters[role].min_allocatable_resources`. An empty list is not a minimum.
    pub min_allocatable: BTreeMap<Role, Vec<Quantities>>,
    /// Conditions on the agents that the framework is offered: `offer_constraints`.
    pub constraints: OfferConstraints,
}

/// Capabilities of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// MULTI_ROLE: the agent may be offered to frameworks of several roles.
    pub multi_role: bool,
    /// HIERARCHICAL_ROLE: the agent may be offered to roles with a `/`.
    pub hierarchical_role: bool,
}

/// Every agent since Mesos 1.5 has both.
impl Default for AgentCapabilities {
    fn default() -> AgentCapabilities {
        AgentCapabilities { multi_role: true, hierarchical_role: true }
    }
}

/// Properties of an agent other than its resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// Capabilities of the agent.
    pub capabilities: AgentCapabilities,
    /// Hostname of the agent, which the whitelist contains.
    pub hostname: String,
    /// Region of the agent's fault domain; `None` stands for the master's own.
    pub region: Option<String>,
    /// Zone of the agent's fault domain, for offer constraints.
    pub zone: Option<String>,
    /// Attributes of the agent, in the order of its info, for offer constraints.
    pub attributes: Vec<Attribute>,
    /// Reason why the agent is unhealthy, for explanations; `None` if it is healthy.
    pub unhealthy: Option<String>,
}

impl AgentOptions {
    /// Returns whether all properties are equal by which a framework may have judged the agent.
    pub(crate) fn is_same_place(&self, other: &AgentOptions) -> bool {
        (&self.hostname, &self.region, &self.zone, &self.attributes)
            == (&other.hostname, &other.region, &other.zone, &other.attributes)
    }
}

/// A refusal: the framework is not offered the returned resources for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Duration of the refusal, as [`Filter::from_refuse_seconds`] reads it from `refuse_seconds`. Zero: until the next
    /// interval run.
    pub refuse: Duration,
}

impl Filter {
    /// Mesos's `refuse_seconds` for a call that has none.
    pub const DEFAULT_REFUSE: Duration = Duration::from_secs(5);
    /// Longest duration of a refusal.
    pub const MAX_REFUSE: Duration = Duration::from_secs(365 * 24 * 3600);

    /// Reads `Filters.refuse_seconds`. A negative value or NaN counts as 5 seconds; the maximum is a year.
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

/// States of resources that a framework holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The resources are in an outstanding offer.
    Offered,
    /// Tasks, executors or operations use the resources.
    Used,
}

/// A framework that holds resources in a role on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Framework that holds the resources.
    pub framework: &'a base::FrameworkId,
    /// Role of the resources' allocation info.
    pub role: &'a Role,
    /// Agent that the resources belong to.
    pub agent: &'a base::AgentId,
}

/// One offer to be made. From now on, the resources are allocated to the framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    /// Framework that receives the offer.
    pub framework: base::FrameworkId,
    /// Role that the resources are offered to.
    pub role: Role,
    /// Agent whose resources are offered.
    pub agent: base::AgentId,
    /// Offered resources without allocation info: the caller sets the role.
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
