//! Explains why a framework has no (or few) offers in a role: for each agent the current reason, and the clients that
//! precede it.
//!
//! The explanation follows from the allocator's state by the rules of its run, in the same order, for one client and
//! all agents. It changes nothing. With a need, such as the resources of a task, smaller offers do not count. `text.rs`
//! formats it.

mod obstacles;
mod text;

use base::{AgentId, FrameworkId, Time};
use resources::{Quantities, Resources, Role};

use crate::agents::Agent;
use crate::allocator::Allocator;
use crate::{Held, Quota, Unavailability};

pub use crate::tree::Level;
use obstacles::Question;

/// Explanation of the offers of a framework in a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Id of the framework.
    pub framework: FrameworkId,
    /// Name of the framework; empty if it is not known.
    pub name: String,
    /// Role that is explained.
    pub role: Role,
    /// Time of the explanation.
    pub at: Time,
    /// Whether the framework is offered resources in the role at all.
    pub offer_state: OfferState,
    /// Number of agents that must have reregistered before offers are made, and the time at which offers start in any
    /// case; `None` if offers are made.
    pub paused: Option<(usize, Time)>,
    /// Places of the framework in the order, from the top-level roles down to the frameworks of its role. Empty if it
    /// has none.
    pub levels: Vec<Level>,
    /// Quota of the top-level role, which counts for all roles below it; `None` if it has none.
    pub quota: Option<QuotaUsage>,
    /// Least quantities of a useful offer; empty if any offer is useful.
    pub need: Quantities,
    /// Quantities that are withheld for unsatisfied guarantees, by role.
    pub withheld: Vec<(Role, Quantities)>,
    /// Result for every agent, sorted by id. Empty if the framework is not subscribed to the role.
    pub agents: Vec<AgentExplanation>,
    /// Names of the machines that are down for maintenance. The caller sets them, since the allocator does not know
    /// them.
    pub down: Vec<String>,
}

/// Obstacle to an offer of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentExplanation {
    /// Id of the agent.
    pub agent: AgentId,
    /// Hostname of the agent.
    pub hostname: String,
    /// Name of the agent in texts: its hostname, which several agents may share, or its id if that is not known.
    pub name: String,
    /// Quantities that are neither used nor offered.
    pub free: Quantities,
    /// Reason why an offer of the agent is or is not possible.
    pub obstacle: Obstacle,
    /// Whether the total of the agent is smaller than the need, whatever the obstacle is.
    pub is_too_small: bool,
    /// Maintenance window of the agent, if one is scheduled. Offers contain it, and frameworks may refuse them for
    /// that.
    pub maintenance: Option<Unavailability>,
}

/// Whether a framework is offered resources in a role at all, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// The framework is offered resources in the role.
    Wants,
    /// The allocator does not know the framework.
    Unknown,
    /// The framework is subscribed to these roles only.
    NotSubscribed(Vec<Role>),
    /// The framework is not connected, or not activated.
    Inactive,
    /// The framework has suppressed offers in the role.
    Suppressed,
}

/// Quota of a role, and the consumed part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUsage {
    /// Top-level role.
    pub role: Role,
    /// Guarantee and limit of the role.
    pub quota: Quota,
    /// Quantities that the role consumes, including offers.
    pub charged: Quantities,
}

/// Reason why an agent is not offered: the first that applies, in the order of this list.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// The framework has an offer of the agent, since this time.
    Offered(Time),
    /// The agent is inactive, for this reason.
    Inactive(Inactivity),
    /// The agent is unhealthy, for this reason.
    Unhealthy(String),
    /// The agent's host is not on the whitelist.
    NotWhitelisted,
    /// The framework's offer constraints exclude the agent.
    Constraints,
    /// The agent lacks a capability that a framework of this kind needs.
    OldAgent(&'static str),
    /// The framework lacks a capability that it needs for agents with GPUs, or of another region.
    Capability(&'static str),
    /// The total of the agent, these quantities, is too small.
    TooSmall(Quantities),
    /// Too little of the agent is free; these clients hold the rest.
    Held(Vec<HeldBy>),
    /// Free resources that would make an offer large enough are reserved for these roles.
    Reserved(Vec<Role>),
    /// Free resources are shared, revocable or refined, and the framework lacks this capability.
    Stripped(&'static str),
    /// The limits of this top-level role leave too little.
    Limit(Role),
    /// The quantities withheld for guarantees of other roles leave too little.
    Withheld,
    /// The framework has refused the resources that it would be offered, until this time; `None`: until the next
    /// interval run.
    Refused(Option<Time>),
    /// The framework holds as much in offers as it may.
    HoldsTooMuch,
    /// There is no obstacle: these resources would be offered, unless a client that precedes the framework is offered
    /// them.
    Nothing(Resources),
}

/// Reasons why an agent is inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inactivity {
    /// Any of the other reasons; the allocator does not know which.
    Any,
    /// The agent is not connected, or is reregistering.
    Disconnected,
    /// The agent's tasks are being killed by DRAIN_AGENT.
    Draining,
    /// The agent was drained, and not reactivated.
    Drained,
    /// The agent was deactivated by DEACTIVATE_AGENT.
    Deactivated,
}

/// A client that holds resources of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldBy {
    /// Framework that holds the resources.
    pub framework: FrameworkId,
    /// Name of the framework; empty if only agents have reported it.
    pub name: String,
    /// Role of the resources.
    pub role: Role,
    /// Whether the resources are offered or used.
    pub held: Held,
    /// Quantities that the client holds.
    pub amounts: Quantities,
    /// Time since which the client has held resources of the agent in this state.
    pub since: Time,
}

impl Explanation {
    /// Returns the number of agents of which the framework can have an offer with all of the need, now or later. The
    /// obstacles of the other agents are permanent: size, capabilities, constraints, whitelist, and a limit below the
    /// need.
    #[must_use]
    pub fn possible_agents(&self) -> usize {
        if self.quota.as_ref().is_some_and(|quota| !quota.quota.limits.allows(&self.need)) {
            return 0;
        }
        let is_lasting = |obstacle: &Obstacle| {
            matches!(
                obstacle,
                Obstacle::NotWhitelisted
                    | Obstacle::Constraints
                    | Obstacle::OldAgent(_)
                    | Obstacle::Capability(_)
                    | Obstacle::TooSmall(_)
                    | Obstacle::Stripped(_)
            )
        };
        self.agents.iter().filter(|verdict| !verdict.is_too_small && !is_lasting(&verdict.obstacle)).count()
    }
}

impl Allocator {
    /// Explains why a framework has no or few offers in a role, or none with all of `need`. Takes time in proportion to
    /// the number of agents.
    #[must_use]
    pub fn explain(&self, framework: &FrameworkId, role: &Role, need: &Quantities, now: Time) -> Explanation {
        let mut explanation = Explanation {
            framework: framework.clone(),
            name: String::new(),
            role: role.clone(),
            at: now,
            offer_state: OfferState::Unknown,
            paused: self.recovering.filter(|(agents, until)| self.agents.len() < *agents && now < *until),
            levels: Vec::new(),
            quota: self.quota_usage(role),
            need: need.clone(),
            withheld: self.withheld(),
            agents: Vec::new(),
            down: Vec::new(),
        };
        let Some(state) = self.framework(framework).map(|ix| &self.frameworks[ix as usize]).filter(|f| f.known) else {
            return explanation;
        };
        explanation.name.clone_from(&state.title);
        let client = state.clients.get(role).copied().filter(|client| self.clients.get(*client).subscribed);
        let Some(client) = client else {
            let subscribed = state.clients.iter().filter(|(_, client)| self.clients.get(**client).subscribed);
            explanation.offer_state = OfferState::NotSubscribed(subscribed.map(|(role, _)| role.clone()).collect());
            return explanation;
        };
        explanation.offer_state = match self.clients.get(client) {
            _ if !state.active => OfferState::Inactive,
            client if client.suppressed => OfferState::Suppressed,
            _ => OfferState::Wants,
        };
        explanation.levels = self.clients.get(client).node.map_or_else(Vec::new, |node| self.tree.levels(node));
        if let Some(last) = explanation.levels.last_mut() {
            self.name_frameworks(last);
        }
        let verdict = |(ix, agent): (usize, &Agent)| AgentExplanation {
            agent: agent.id.clone(),
            hostname: agent.options.hostname.clone(),
            name: match agent.options.hostname.as_str() {
                "" => agent.id.to_string(),
                hostname => hostname.to_owned(),
            },
            free: agent.free.quantities(),
            obstacle: self.obstacle_of(ix as u32, &Question { client, need }),
            is_too_small: !agent.total.quantities().contains(need),
            maintenance: self.unavailability(&agent.id),
        };
        explanation.agents = self.agents.iter().map(verdict).collect();
        explanation.agents.sort_by(|a, b| a.agent.cmp(&b.agent));
        explanation
    }

    /// Replaces framework ids by names in the last level of the order, in which the tree has ids.
    fn name_frameworks(&self, level: &mut Level) {
        for name in std::iter::once(&mut level.name).chain(level.first.iter_mut().map(|(name, _)| name)) {
            let known = FrameworkId::new(name).ok().and_then(|id| self.framework(&id));
            if let Some(title) = known.map(|ix| &self.frameworks[ix as usize].title).filter(|title| !title.is_empty()) {
                name.clone_from(title);
            }
        }
    }

    fn quota_usage(&self, role: &Role) -> Option<QuotaUsage> {
        let state = self.roles.get(self.roles.find(&role.top_level())?);
        let account = state.account()?;
        Some(QuotaUsage { role: state.role.clone(), quota: account.quota.clone(), charged: account.charged.clone() })
    }

    fn withheld(&self) -> Vec<(Role, Quantities)> {
        let missing = |ix: &u32| {
            let state = self.roles.get(*ix);
            Some((state.role.clone(), state.account()?.unmet.clone()))
        };
        let mut list: Vec<_> = self.roles.accounts.unmet.iter().filter_map(missing).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    }
}
