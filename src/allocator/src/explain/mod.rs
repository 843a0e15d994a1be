//! Explains why a framework has no (or few) offers in a role: for each agent the current reason, and the clients that
//! come before it.
//!
//! The explanation follows from the allocator's state by the rules of its run, in the same order, for one client and
//! all agents. It changes nothing. With a need, such as that of a task, an offer that is smaller is not an answer.
//! `text.rs` formats it.

mod judge;
mod text;

use base::{AgentId, FrameworkId, Time};
use resources::{Quantities, Resources, Role};

use crate::agents::Agent;
use crate::allocator::Allocator;
use crate::{Held, Quota, Unavailability};

pub use crate::tree::Level;
use judge::Asked;

/// The explanation of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The framework's id.
    pub framework: FrameworkId,
    /// Its name; empty if it is not known.
    pub name: String,
    /// In which of its roles.
    pub role: Role,
    /// When this was true.
    pub at: Time,
    /// Whether it has suppressed offers.
    pub standing: Standing,
    /// No offers are made before that many agents have reregistered, or before that time.
    pub paused: Option<(usize, Time)>,
    /// Its place in the order, from the top-level roles down to the frameworks of its role. Empty if it has none.
    pub levels: Vec<Level>,
    /// The quota of its top-level role, if it has one: what counts for all roles below.
    pub quota: Option<QuotaStanding>,
    /// What a useful offer contains at least; empty if any offer is useful.
    pub need: Quantities,
    /// What is withheld for guarantees that are not met, by role.
    pub set_aside: Vec<(Role, Quantities)>,
    /// Every agent, by id. Empty if the framework is not subscribed to the role.
    pub agents: Vec<Verdict>,
    /// Names of the machines that are down for maintenance, whose agents are away. The allocator does not know them.
    pub down: Vec<String>,
}

/// What stops an offer of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which agent.
    pub agent: AgentId,
    /// Its host's name.
    pub hostname: String,
    /// What texts call it: its host's name, which several agents may share, or its id if that is not known.
    pub name: String,
    /// What no framework uses or is offered.
    pub free: Quantities,
    /// Why it is not offered.
    pub obstacle: Obstacle,
    /// Whether the whole agent is smaller than the need, whatever else is in the way.
    pub is_too_small: bool,
    /// When it will be away, if that is scheduled: offers of it say so, and frameworks may refuse them for it.
    pub maintenance: Option<Unavailability>,
}

/// Whether a framework is offered resources in a role at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Wants,
    /// The allocator does not know the framework.
    Unknown,
    /// It is subscribed to these roles only.
    NotSubscribed(Vec<Role>),
    /// It is not connected, or not activated.
    Inactive,
    /// It has suppressed offers in the role.
    Suppressed,
}

/// A role's quota, and what is consumed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaStanding {
    /// The top-level role.
    pub role: Role,
    /// What it is guaranteed and may have.
    pub quota: Quota,
    /// What it consumes; offers count.
    pub charged: Quantities,
}

/// What stops an offer of an agent; the first that applies, in the order of this list.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// The framework has an offer of it, since then.
    Offered(Time),
    /// The agent gets no offers, for this reason.
    Inactive(Inactivity),
    /// The agent is unhealthy, for this reason.
    Unhealthy(String),
    /// Its host is not on the whitelist.
    NotWhitelisted,
    /// The framework's offer constraints exclude it.
    Constraints,
    /// The agent lacks a capability that the framework's needs.
    OldAgent(&'static str),
    /// The framework lacks a capability: for agents with GPUs, or of another region.
    Capability(&'static str),
    /// All of the agent, this much, is too little.
    TooSmall(Quantities),
    /// What is free is too little; these hold the rest.
    Held(Vec<HeldBy>),
    /// What is free is reserved for these roles, at least the part that would make it enough.
    Reserved(Vec<Role>),
    /// What is free is shared, revocable or refined, and the framework lacks the capability.
    Stripped(&'static str),
    /// The limits of this top-level role leave too little.
    Limit(Role),
    /// Too little is left beside what is withheld for guarantees of others.
    SetAside,
    /// The framework has refused what it would be offered; none: until the next interval run.
    Refused(Option<Time>),
    /// It holds as much in offers as it may.
    HoldsTooMuch,
    /// Nothing: these resources would be offered, unless a client before it gets them.
    Nothing(Resources),
}

/// Why an agent is inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inactivity {
    /// One of the others: the allocator does not know which.
    Any,
    /// It is not connected, or is reregistering.
    Disconnected,
    /// Its tasks are being killed, by DRAIN_AGENT.
    Draining,
    /// It was drained, and not reactivated.
    Drained,
    /// It was deactivated by DEACTIVATE_AGENT.
    Deactivated,
}

/// A client that holds resources of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldBy {
    /// The framework.
    pub framework: FrameworkId,
    /// Its name; empty if only agents have reported it.
    pub name: String,
    /// In which role.
    pub role: Role,
    /// In an offer, or in use.
    pub held: Held,
    /// How much.
    pub amounts: Quantities,
    /// Since when it has held something there in this way.
    pub since: Time,
}

impl Explanation {
    /// Number of agents that can have an offer with all of the need, now or later. The reasons that stop the others do
    /// not pass by themselves: size, capabilities, constraints, whitelist, and a limit below the need.
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
    /// Why a framework has no, or few, offers in a role, or none with all of `need`. Costs time in proportion to the
    /// agents.
    #[must_use]
    pub fn explain(&self, framework: &FrameworkId, role: &Role, need: &Quantities, now: Time) -> Explanation {
        let mut explanation = Explanation {
            framework: framework.clone(),
            name: String::new(),
            role: role.clone(),
            at: now,
            standing: Standing::Unknown,
            paused: self.recovering.filter(|(agents, until)| self.agents.len() < *agents && now < *until),
            levels: Vec::new(),
            quota: self.quota_standing(role),
            need: need.clone(),
            set_aside: self.set_aside(),
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
            explanation.standing = Standing::NotSubscribed(subscribed.map(|(role, _)| role.clone()).collect());
            return explanation;
        };
        explanation.standing = match self.clients.get(client) {
            _ if !state.active => Standing::Inactive,
            client if client.suppressed => Standing::Suppressed,
            _ => Standing::Wants,
        };
        explanation.levels = self.clients.get(client).node.map_or_else(Vec::new, |node| self.tree.levels(node));
        if let Some(last) = explanation.levels.last_mut() {
            self.name_frameworks(last);
        }
        let verdict = |(ix, agent): (usize, &Agent)| Verdict {
            agent: agent.id.clone(),
            hostname: agent.options.hostname.clone(),
            name: match agent.options.hostname.as_str() {
                "" => agent.id.to_string(),
                hostname => hostname.to_owned(),
            },
            free: agent.free.quantities(),
            obstacle: self.judge(ix as u32, &Asked { client, need }),
            is_too_small: !agent.total.quantities().contains(need),
            maintenance: self.unavailability(&agent.id),
        };
        explanation.agents = self.agents.iter().map(verdict).collect();
        explanation.agents.sort_by(|a, b| a.agent.cmp(&b.agent));
        explanation
    }

    /// The last level of the order is of frameworks, which the tree knows by their ids.
    fn name_frameworks(&self, level: &mut Level) {
        for name in std::iter::once(&mut level.name).chain(level.first.iter_mut().map(|(name, _)| name)) {
            let known = FrameworkId::new(name).ok().and_then(|id| self.framework(&id));
            if let Some(title) = known.map(|ix| &self.frameworks[ix as usize].title).filter(|title| !title.is_empty()) {
                name.clone_from(title);
            }
        }
    }

    fn quota_standing(&self, role: &Role) -> Option<QuotaStanding> {
        let state = self.roles.get(self.roles.find(&role.top_level())?);
        let account = state.account()?;
        Some(QuotaStanding { role: state.role.clone(), quota: account.quota.clone(), charged: account.charged.clone() })
    }

    fn set_aside(&self) -> Vec<(Role, Quantities)> {
        let missing = |ix: &u32| {
            let state = self.roles.get(*ix);
            Some((state.role.clone(), state.account()?.unmet.clone()))
        };
        let mut list: Vec<_> = self.roles.accounts.unmet.iter().filter_map(missing).collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    }
}
