//! The allocator's state as values: for /roles, metrics and explanations.

use std::collections::BTreeMap;

use base::{AgentId, FrameworkId, Time};
use resources::{Quantities, Resources, Role};

use crate::allocator::Allocator;
use crate::clients::Client;
use crate::frameworks::Framework;
use crate::roles::RoleState;
use crate::{Quota, Weight};

/// A role that exists, and the sums over it and all below it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleView {
    /// Its name.
    pub role: Role,
    /// Its weight among its siblings.
    pub weight: Weight,
    /// The frameworks that are subscribed to it or hold something in it.
    pub frameworks: Vec<FrameworkId>,
    /// Largest part of any kind of resource that it has, not divided by the weight.
    pub dominant_share: f64,
    /// Offered or used.
    pub held: Quantities,
    /// In offers of frameworks in this very role.
    pub offered: Quantities,
    /// By tasks, executors and operations of frameworks in this very role.
    pub used: Quantities,
    /// Reserved on all agents, used or not.
    pub reserved: Quantities,
    /// Of what is reserved, offered or used.
    pub held_reserved: Quantities,
    /// Offered or used of what is neither reserved nor revocable.
    pub held_unreserved: Quantities,
    /// What it is guaranteed and may have at most; the default if it was given no quota.
    pub quota: Quota,
    /// Consumption of the quota as shown to operators (`/roles`, GET_QUOTA): all reservations, and what is used beside
    /// them. Offers do not count.
    pub consumed: Quantities,
    /// What is consumed of the quota as the allocator counts it: offers count as used.
    pub charged: Quantities,
    /// Refusals of frameworks in this very role that are in force.
    pub refusals: u64,
}

/// A framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientView {
    /// Its dominant share in this role.
    pub dominant_share: f64,
    /// In offers.
    pub offered: Quantities,
    /// By tasks, executors and operations.
    pub used: Quantities,
    /// Still one of the framework's roles; else only something is left in it.
    pub subscribed: bool,
    /// It has suppressed offers in the role.
    pub suppressed: bool,
    /// Refusals in force.
    pub refusals: u32,
}

/// A refusal in force.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusalView {
    /// The framework that refused.
    pub framework: FrameworkId,
    /// In which role.
    pub role: Role,
    /// An offer that is contained in this is not made.
    pub refused: Resources,
    /// Until when; none: until the next interval run.
    pub until: Option<Time>,
}

/// An agent as the allocator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentView {
    /// May be offered.
    pub active: bool,
    /// All that it has.
    pub total: Resources,
    /// Unallocated resources; shared resources are always free.
    pub free: Resources,
    /// What each framework was offered, by role.
    pub offered: Vec<(FrameworkId, Role, Resources)>,
    /// What each framework uses, by role.
    pub used: Vec<(FrameworkId, Role, Resources)>,
}

impl Allocator {
    /// All roles that exist, by name.
    #[must_use]
    pub fn roles(&self) -> Vec<RoleView> {
        let mut members: BTreeMap<u32, Vec<(FrameworkId, &Client)>> = BTreeMap::new();
        for (_, framework) in &self.frameworks {
            for client in framework.clients.values() {
                let client = self.clients.get(*client);
                members.entry(client.role).or_default().push((framework.id.clone(), client));
            }
        }
        let view = |(ix, state)| self.role(state, members.remove(&ix).unwrap_or_default());
        self.roles.iter().map(view).collect()
    }

    /// One role, if it exists.
    #[must_use]
    pub fn role_view(&self, role: &Role) -> Option<RoleView> {
        let state = self.roles.get(self.roles.find(role)?);
        let member =
            |framework: &Framework| Some((framework.id.clone(), self.clients.get(*framework.clients.get(role)?)));
        Some(self.role(state, self.frameworks.iter().filter_map(|(_, framework)| member(framework)).collect()))
    }

    fn role(&self, state: &RoleState, mut clients: Vec<(FrameworkId, &Client)>) -> RoleView {
        clients.sort_by(|a, b| a.0.cmp(&b.0));
        let sum = |of: fn(&Client) -> &Quantities| clients.iter().fold(Quantities::new(), |all, (_, c)| all + of(c));
        RoleView {
            role: state.role.clone(),
            weight: state.weight,
            dominant_share: self.tree.dominant_share(state.node),
            held: self.tree.allocation(state.node).clone(),
            offered: sum(|c| &c.offered),
            used: sum(|c| &c.used),
            reserved: state.books.reserved.clone(),
            held_reserved: state.books.held_reserved.clone(),
            held_unreserved: state.books.held_unreserved.clone(),
            quota: state.quota().clone(),
            consumed: state.books.consumed(),
            charged: state.books.charged(),
            refusals: clients.iter().map(|(_, c)| u64::from(c.refusals())).sum(),
            frameworks: clients.into_iter().map(|(id, _)| id).collect(),
        }
    }

    /// The roles of a framework, and those in which it still holds something. Empty if it is not known.
    #[must_use]
    pub fn framework_roles(&self, id: &FrameworkId) -> BTreeMap<Role, ClientView> {
        let Some(ix) = self.framework(id) else { return BTreeMap::new() };
        let view = |client: &Client| ClientView {
            dominant_share: client.node.map_or(0.0, |node| self.tree.dominant_share(node)),
            offered: client.offered.clone(),
            used: client.used.clone(),
            subscribed: client.subscribed,
            suppressed: client.suppressed,
            refusals: client.refusals(),
        };
        let clients = &self.frameworks[ix as usize].clients;
        clients.iter().map(|(role, client)| (role.clone(), view(self.clients.get(*client)))).collect()
    }

    /// An agent's resources, and their clients.
    #[must_use]
    pub fn agent_view(&self, id: &AgentId) -> Option<AgentView> {
        let agent = &self.agents[self.agent(id)? as usize];
        let mut view = AgentView {
            active: agent.active,
            total: Resources::clone(&agent.total),
            free: Resources::clone(&agent.free),
            offered: Vec::new(),
            used: Vec::new(),
        };
        for (client, holding) in agent.holdings() {
            let (framework, role) = self.names(client);
            for (list, resources) in [(&mut view.offered, holding.offered()), (&mut view.used, holding.used())] {
                if !resources.is_empty() {
                    list.push((framework.clone(), role.clone(), resources.clone()));
                }
            }
        }
        Some(view)
    }

    /// The refusals in force on an agent.
    #[must_use]
    pub fn refusals(&self, id: &AgentId) -> Vec<RefusalView> {
        let Some(ix) = self.agent(id) else { return Vec::new() };
        let in_force = self.agents[ix as usize].refusals.iter(&self.clients);
        let view = |(client, refused, until): (u32, &Resources, Option<Time>)| {
            let (framework, role) = self.names(client);
            RefusalView { framework, role, refused: refused.clone(), until }
        };
        in_force.map(view).collect()
    }

    /// What all agents have; shared resources count once per agent.
    #[must_use]
    pub fn total(&self) -> &Quantities {
        &self.cluster
    }

    /// What is offered or used on all agents.
    #[must_use]
    pub fn held(&self) -> Quantities {
        let top = self.roles.iter().filter(|(_, state)| state.parent.is_none());
        top.fold(Quantities::new(), |all, (_, state)| all + self.tree.allocation(state.node))
    }

    /// A role's weight; 1 if it was given none.
    #[must_use]
    pub fn weight(&self, role: &Role) -> Weight {
        self.roles.find(role).map_or(Weight::ONE, |ix| self.roles.get(ix).weight)
    }

    /// The agents that a framework's offer constraints keep from it, in each of its roles that has constraints
    /// (`/allocator/offer_constraints_debug`). Empty if the framework is not known.
    #[must_use]
    pub fn excluded_by_constraints(&self, id: &FrameworkId) -> BTreeMap<Role, Vec<AgentId>> {
        let Some(ix) = self.framework(id) else { return BTreeMap::new() };
        let framework = &self.frameworks[ix as usize];
        let roles = framework.clients.keys().filter(|role| framework.constraints.are_for(role));
        let excluded = |role: &Role| {
            let agents = self.agents.iter().filter(|(_, agent)| !framework.constraints.allow(role, &agent.options));
            let mut agents: Vec<AgentId> = agents.map(|(_, agent)| agent.id.clone()).collect();
            agents.sort();
            (role.clone(), agents)
        };
        roles.map(excluded).collect()
    }

    /// Number of refusals that are in force.
    #[must_use]
    pub fn refusal_count(&self) -> u64 {
        self.clients.all_refusals()
    }

    pub(crate) fn names(&self, client: u32) -> (FrameworkId, Role) {
        let state = self.clients.get(client);
        (self.frameworks[state.framework as usize].id.clone(), self.roles.get(state.role).role.clone())
    }
}
