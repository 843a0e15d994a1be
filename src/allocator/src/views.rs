//! State of the allocator as values: for /roles, metrics and explanations.

use std::collections::BTreeMap;

use base::{AgentId, FrameworkId, Time};
use resources::{Quantities, Resources, Role};

use crate::allocator::Allocator;
use crate::clients::Client;
use crate::frameworks::Framework;
use crate::roles::RoleState;
use crate::{Quota, Weight};

/// A role that exists, with sums over it and all roles below it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleView {
    /// Name of the role.
    pub role: Role,
    /// Weight of the role among its siblings.
    pub weight: Weight,
    /// Frameworks that are subscribed to the role or hold resources in it.
    pub frameworks: Vec<FrameworkId>,
    /// Dominant share of the role, not divided by the weight.
    pub dominant_share: f64,
    /// Quantities that are offered or used.
    pub held: Quantities,
    /// Quantities in offers of frameworks in this role, without those below.
    pub offered: Quantities,
    /// Quantities that tasks, executors and operations of frameworks in this role use, without those below.
    pub used: Quantities,
    /// Reserved quantities on all agents, used or not.
    pub reserved: Quantities,
    /// Reserved quantities that are offered or used.
    pub held_reserved: Quantities,
    /// Offered or used quantities that are neither reserved nor revocable.
    pub held_unreserved: Quantities,
    /// Guarantee and limit of the role; the default if none was set.
    pub quota: Quota,
    /// Consumption of the quota as shown to operators (`/roles`, GET_QUOTA): all reservations, and other resources that
    /// are used. Offers do not count.
    pub consumed: Quantities,
    /// Consumption of the quota as the allocator counts it: offers count as used.
    pub charged: Quantities,
    /// Number of valid refusals of frameworks in this role, without those below.
    pub refusals: u64,
}

/// A framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientView {
    /// Dominant share of the framework in this role.
    pub dominant_share: f64,
    /// Quantities in offers.
    pub offered: Quantities,
    /// Quantities that tasks, executors and operations use.
    pub used: Quantities,
    /// Whether the framework is still subscribed to the role; if not, it only holds resources in it.
    pub subscribed: bool,
    /// Whether the framework has suppressed offers in the role.
    pub suppressed: bool,
    /// Number of valid refusals.
    pub refusals: u32,
}

/// A valid refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusalView {
    /// Framework that refused.
    pub framework: FrameworkId,
    /// Role in which the framework refused.
    pub role: Role,
    /// Refused resources: an offer that they contain is not made.
    pub refused: Resources,
    /// Time at which the refusal expires; `None` for the next interval run.
    pub until: Option<Time>,
}

/// State of an agent in the allocator.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentView {
    /// Whether the agent may be offered.
    pub active: bool,
    /// Total resources of the agent.
    pub total: Resources,
    /// Unallocated resources; shared resources are always free.
    pub free: Resources,
    /// Resources that each framework is offered, by role.
    pub offered: Vec<(FrameworkId, Role, Resources)>,
    /// Resources that each framework uses, by role.
    pub used: Vec<(FrameworkId, Role, Resources)>,
}

impl Allocator {
    /// Returns all roles that exist, by name.
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

    /// Returns a role, if it exists.
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
            reserved: state.role_sums.reserved.clone(),
            held_reserved: state.role_sums.held_reserved.clone(),
            held_unreserved: state.role_sums.held_unreserved.clone(),
            quota: state.quota().clone(),
            consumed: state.role_sums.consumed(),
            charged: state.role_sums.charged(),
            refusals: clients.iter().map(|(_, c)| u64::from(c.refusals())).sum(),
            frameworks: clients.into_iter().map(|(id, _)| id).collect(),
        }
    }

    /// Returns the roles of a framework, including those in which it only holds resources. Empty if the framework is
    /// not known.
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

    /// Returns an agent's resources with the frameworks that hold them.
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

    /// Returns the valid refusals on an agent.
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

    /// Returns the total quantities of all agents; shared resources count once per agent.
    #[must_use]
    pub fn total(&self) -> &Quantities {
        &self.cluster
    }

    /// Returns the quantities that are offered or used on all agents.
    #[must_use]
    pub fn held(&self) -> Quantities {
        let top = self.roles.iter().filter(|(_, state)| state.parent.is_none());
        top.fold(Quantities::new(), |all, (_, state)| all + self.tree.allocation(state.node))
    }

    /// Returns a role's weight; 1 if none was set.
    #[must_use]
    pub fn weight(&self, role: &Role) -> Weight {
        self.roles.find(role).map_or(Weight::ONE, |ix| self.roles.get(ix).weight)
    }

    /// Returns the agents that a framework's offer constraints exclude, in each of its roles that has constraints
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

    /// Returns the number of valid refusals of all frameworks.
    #[must_use]
    pub fn refusal_count(&self) -> u64 {
        self.clients.all_refusals()
    }

    pub(crate) fn names(&self, client: u32) -> (FrameworkId, Role) {
        let state = self.clients.get(client);
        (self.frameworks[state.framework as usize].id.clone(), self.roles.get(state.role).role.clone())
    }
}
