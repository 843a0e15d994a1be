//! Inputs of the master about frameworks: subscription, updates, removal, suppress and revive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{AgentId, FrameworkId};
use resources::{Resources, Role};

use crate::allocator::{Allocator, without_allocation};
use crate::clients::ClientIx;
use crate::policies::LearnedTimeout;
use crate::{FrameworkCapabilities, FrameworkOptions, Held, OfferConstraints};

/// State of a framework. Until it subscribes, it is known only from agents that run its tasks.
#[derive(Debug)]
pub(crate) struct Framework {
    pub(crate) id: FrameworkId,
    name: Arc<str>,
    pub(crate) known: bool,
    pub(crate) active: bool,
    /// Name of the framework, for policies.
    pub(crate) title: String,
    pub(crate) learned_timeout: LearnedTimeout,
    pub(crate) capabilities: FrameworkCapabilities,
    pub(crate) constraints: OfferConstraints,
    /// Clients of subscribed roles, and of roles in which the framework still holds resources.
    pub(crate) clients: BTreeMap<Role, ClientIx>,
}

impl Allocator {
    /// Adds a framework that has subscribed. `used` are the resources of its tasks; what agents reported before counts
    /// once.
    ///
    /// Adding a known framework updates it, allocates resources that were not known to be used, and sets whether it is
    /// active.
    pub fn add_framework(
        &mut self,
        id: &FrameworkId,
        options: &FrameworkOptions,
        active: bool,
        used: &[(AgentId, Role, Resources)],
    ) {
        let ix = self.ensure_framework(id);
        self.frameworks[ix as usize].known = true;
        for (agent, role, resources) in used {
            if let Some(agent) = self.agent(agent) {
                let client = self.ensure_client(ix, role);
                if self.agents[agent as usize].holding(client).is_none() {
                    self.allocate_used(agent, client, &without_allocation(resources));
                }
            }
        }
        self.list_clients(ix);
        self.update_framework(id, options);
        self.set_framework_active(id, active);
    }

    /// Updates a framework's roles, capabilities and suppressed roles. Roles that it has left keep their share until
    /// their resources are returned.
    pub fn update_framework(&mut self, id: &FrameworkId, options: &FrameworkOptions) {
        let Some(ix) = self.known(id) else { return };
        let widened = self.frameworks[ix as usize].capabilities != options.capabilities;
        self.frameworks[ix as usize].capabilities = options.capabilities;
        self.frameworks[ix as usize].title.clone_from(&options.name);
        let old = std::mem::replace(&mut self.frameworks[ix as usize].constraints, options.constraints.clone());
        for role in &options.roles {
            let client = self.ensure_client(ix, role);
            let state = self.clients.get_mut(client);
            let minimum = options.min_allocatable.get(role);
            let minimum_or_role = state.min_allocatable.as_ref() != minimum || !state.subscribed;
            let changed = widened || minimum_or_role || !old.same_in(role, &options.constraints);
            state.subscribed = true;
            state.suppressed = options.suppressed_roles.contains(role);
            self.clients.set_minimum(client, minimum.cloned());
            self.list_client(client, changed);
        }
        let left: Vec<(Role, ClientIx)> =
            self.frameworks[ix as usize].clients.iter().map(|(r, c)| (r.clone(), *c)).collect();
        for (role, client) in left {
            if !options.roles.contains(&role) {
                self.clients.get_mut(client).subscribed = false;
                self.clients.forget_refusals(client);
                self.list_client(client, false);
                self.drop_unused_client(client);
            }
        }
    }

    /// Removes a framework: all that it holds becomes free, and its refusals are removed.
    pub fn remove_framework(&mut self, id: &FrameworkId) {
        let Some(ix) = self.framework(id) else { return };
        let clients: Vec<ClientIx> = self.frameworks[ix as usize].clients.values().copied().collect();
        for client in clients {
            let mut agents: Vec<u32> = self.clients.get(client).agents.iter().copied().collect();
            agents.sort_unstable();
            for agent in agents {
                let holding = self.agents[agent as usize].holding(client).cloned().unwrap_or_default();
                self.release(agent, client, holding.offered(), Held::Offered);
                self.release(agent, client, holding.used(), Held::Used);
            }
            self.clients.get_mut(client).subscribed = false;
            self.drop_unused_client(client);
        }
        self.drop_framework(ix);
    }

    /// Marks a framework as connected: it may receive offers.
    pub fn activate_framework(&mut self, id: &FrameworkId) {
        self.set_framework_active(id, true);
    }

    /// Marks a framework as disconnected: it receives no offers, and its refusals are removed. Its holdings and
    /// suppressed roles remain.
    pub fn deactivate_framework(&mut self, id: &FrameworkId) {
        self.set_framework_active(id, false);
    }

    fn set_framework_active(&mut self, id: &FrameworkId, active: bool) {
        let Some(ix) = self.known(id) else { return };
        self.frameworks[ix as usize].active = active;
        for client in self.clients_of(ix) {
            if !active {
                self.clients.forget_refusals(client);
            }
            self.list_client(client, false);
        }
        match active {
            true => self.maintenance.forget_filters(ix),
            false => self.maintenance.disconnect(ix),
        }
    }

    /// Stops offers in these roles, or in all roles if none is given, for SUPPRESS. Refusals remain.
    pub fn suppress(&mut self, id: &FrameworkId, roles: &BTreeSet<Role>) {
        for client in self.clients_in(id, roles) {
            self.clients.get_mut(client).suppressed = true;
            self.list_client(client, false);
        }
    }

    /// Makes offers in these roles again, or in all roles if none is given, for REVIVE. Removes their refusals and all
    /// filters of inverse offers.
    pub fn revive(&mut self, id: &FrameworkId, roles: &BTreeSet<Role>) {
        if let Some(ix) = self.known(id) {
            self.maintenance.forget_filters(ix);
        }
        for client in self.clients_in(id, roles) {
            self.clients.get_mut(client).suppressed = false;
            self.clients.forget_refusals(client);
            self.list_client(client, true);
        }
    }

    /// Returns a framework that has subscribed.
    fn known(&self, id: &FrameworkId) -> Option<u32> {
        self.framework(id).filter(|ix| self.frameworks[*ix as usize].known)
    }

    fn clients_of(&self, framework: u32) -> Vec<ClientIx> {
        self.frameworks[framework as usize].clients.values().copied().collect()
    }

    fn clients_in(&self, id: &FrameworkId, roles: &BTreeSet<Role>) -> Vec<ClientIx> {
        let Some(ix) = self.known(id) else { return Vec::new() };
        let clients = &self.frameworks[ix as usize].clients;
        let wanted = clients.iter().filter(|(role, _)| roles.is_empty() || roles.contains(*role));
        wanted.map(|(_, client)| *client).collect()
    }

    /// Returns the framework, created as one that has not subscribed if it is unknown.
    pub(crate) fn ensure_framework(&mut self, id: &FrameworkId) -> u32 {
        if let Some(ix) = self.framework(id) {
            return ix;
        }
        let framework = Framework {
            id: id.clone(),
            name: id.as_str().into(),
            known: false,
            active: false,
            title: String::new(),
            learned_timeout: LearnedTimeout::default(),
            capabilities: FrameworkCapabilities::default(),
            constraints: OfferConstraints::default(),
            clients: BTreeMap::new(),
        };
        let ix = self.frameworks.insert(framework) as u32;
        self.framework_ix.insert(id.clone(), ix);
        ix
    }

    /// Returns the client of a framework in a role, created without a subscription if it does not exist.
    pub(crate) fn ensure_client(&mut self, framework: u32, role: &Role) -> ClientIx {
        if let Some(client) = self.frameworks[framework as usize].clients.get(role) {
            return *client;
        }
        let role_ix = self.roles.ensure(role, &mut self.tree);
        self.roles.count_clients(role_ix, 1, 0);
        let client = self.clients.add(framework, role_ix);
        let state = &mut self.frameworks[framework as usize];
        state.clients.insert(role.clone(), client);
        if state.known {
            let node = self.tree.add_client(self.roles.get(role_ix).node, &state.name, client);
            self.clients.get_mut(client).node = Some(node);
        }
        client
    }

    /// Adds the clients of a framework that has subscribed to the tree.
    fn list_clients(&mut self, framework: u32) {
        let name = self.frameworks[framework as usize].name.clone();
        for client in self.clients_of(framework) {
            let state = self.clients.get(client);
            if state.node.is_none() {
                let node = self.tree.add_client(self.roles.get(state.role).node, &name, client);
                self.clients.get_mut(client).node = Some(node);
                self.count_holdings(client);
            }
        }
    }

    /// Adds a client to those that receive offers, or removes it, by its state. All agents are visited for a client
    /// that is added, or that has `changed`.
    fn list_client(&mut self, client: ClientIx, changed: bool) {
        let state = self.clients.get(client);
        let Some(node) = state.node else { return };
        let wants = state.subscribed && !state.suppressed && self.frameworks[state.framework as usize].active;
        let comes = self.tree.set_active(node, wants);
        self.note_waiting(client);
        if wants && (comes || changed) {
            self.open(client);
        }
    }

    /// Removes a client that is neither subscribed nor holds resources, and what existed only for it.
    pub(crate) fn drop_unused_client(&mut self, client: ClientIx) {
        let state = self.clients.get(client);
        if state.subscribed || !state.agents.is_empty() {
            return;
        }
        let Some(state) = self.clients.remove(client) else { return };
        let role = self.roles.get(state.role).role.clone();
        if let Some(node) = state.node {
            self.tree.remove_client(node);
        }
        self.roles.count_clients(state.role, 0, 1);
        self.roles.drop_unused(state.role, &mut self.tree);
        let framework = &mut self.frameworks[state.framework as usize];
        framework.clients.remove(&role);
        if !framework.known && framework.clients.is_empty() {
            self.drop_framework(state.framework);
        }
    }

    fn drop_framework(&mut self, ix: u32) {
        if let Some(framework) = self.frameworks.try_remove(ix as usize) {
            self.caps.forget(ix);
            self.maintenance.forget_framework(ix);
            self.framework_ix.remove(&framework.id);
        }
    }
}
