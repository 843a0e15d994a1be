//! Inputs of the master about agents: registration, updates, removal, activation.

use std::collections::BTreeSet;

use base::{AgentId, FrameworkId};
use resources::{Conversion, ConversionError, Resources, Role};

use crate::agents::Agent;
use crate::allocator::{Allocator, conversions_without_allocation, without_allocation};
use crate::clients::ClientIx;
use crate::{AgentOptions, Held, refusals};

/// Reasons why unallocated resources could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateAvailableError {
    /// The allocator does not know the agent.
    #[error("Agent {0} is not known to the allocator")]
    UnknownAgent(AgentId),
    /// The resources are allocated, or the agent does not have them.
    #[error("The unallocated resources of agent {agent} cannot be changed")]
    NotAvailable {
        /// Id of the agent.
        agent: AgentId,
        /// Resources that are needed, and those that exist.
        source: Box<ConversionError>,
    },
}

impl Allocator {
    /// Adds an agent that has registered. `used` are the resources of its tasks and executors. Those of an unknown
    /// framework count in the shares when it is added.
    ///
    /// A known agent is updated, and `used` replaces what was used there; its offers become void. Refusals of it stay
    /// valid, unless it has another hostname, domain or attributes now (see [`Allocator::update_agent`]).
    pub fn add_agent(
        &mut self,
        id: &AgentId,
        options: AgentOptions,
        total: &Resources,
        used: &[(FrameworkId, Role, Resources)],
    ) {
        if let Some(ix) = self.agent(id) {
            self.update_agent(id, options, total);
            self.replace_allocations_on(ix, used);
            return;
        }
        let agent = Agent::new(id.clone(), options, without_allocation(total).into_owned());
        let ix = self.agents.insert(agent) as u32;
        self.agent_ix.insert(id.clone(), ix);
        self.count_agent(ix, false);
        self.cluster_changed();
        self.free_changed(ix);
        self.allocate_all_used(ix, used);
        self.enqueue(ix);
    }

    fn allocate_all_used(&mut self, ix: u32, used: &[(FrameworkId, Role, Resources)]) {
        for (framework, role, resources) in used {
            let framework = self.ensure_framework(framework);
            let client = self.ensure_client(framework, role);
            self.allocate_used(ix, client, &without_allocation(resources));
        }
    }

    /// Replaces all that is held on an agent.
    fn replace_allocations_on(&mut self, ix: u32, used: &[(FrameworkId, Role, Resources)]) {
        let held = self.release_all_on(ix);
        self.allocate_all_used(ix, used);
        held.into_iter().for_each(|client| self.drop_unused_client(client));
        self.freed(ix);
    }

    /// Removes all allocations on an agent. Returns the clients that had some.
    fn release_all_on(&mut self, ix: u32) -> Vec<ClientIx> {
        let held: Vec<_> = self.agents[ix as usize].holdings().map(|(c, h)| (c, h.clone())).collect();
        for (client, holding) in &held {
            self.release(ix, *client, holding.offered(), Held::Offered);
            self.release(ix, *client, holding.used(), Held::Used);
        }
        held.into_iter().map(|(client, _)| client).collect()
    }

    /// Updates an agent's resources and options. Allocations stay, even if they exceed the new total. A new hostname,
    /// domain or other attributes make all refusals void.
    pub fn update_agent(&mut self, id: &AgentId, options: AgentOptions, total: &Resources) {
        let Some(ix) = self.agent(id) else { return };
        let agent = &mut self.agents[ix as usize];
        let changed = agent.options != options;
        let moved = changed && !agent.options.is_same_place(&options);
        agent.options = options;
        if *agent.total != *total {
            self.set_total(ix, without_allocation(total).into_owned());
            self.freed(ix);
        }
        if moved {
            self.forget_refusals(id);
        }
        if changed {
            self.freed(ix);
        }
    }

    /// Makes all refusals of an agent void, because its attributes have changed.
    pub fn forget_refusals(&mut self, id: &AgentId) {
        let Some(ix) = self.agent(id) else { return };
        refusals::clear(&mut self.agents[ix as usize].refusals, &mut self.clients);
        self.freed(ix);
    }

    /// Removes an agent with all allocations on it. Later returns of its resources are ignored.
    pub fn remove_agent(&mut self, id: &AgentId) {
        let Some(ix) = self.agent(id) else { return };
        for client in self.release_all_on(ix) {
            self.drop_unused_client(client);
        }
        refusals::clear(&mut self.agents[ix as usize].refusals, &mut self.clients);
        self.count_agent(ix, true);
        self.cluster_changed();
        self.maintenance.forget_agent(ix);
        self.set_spare(ix, false);
        let agent = self.agents.remove(ix as usize);
        self.available -= &agent.free_counted;
        self.agent_ix.remove(id);
        // The slot may be reused for another agent before the next run.
        for (queued, queue) in [(agent.queued, &mut self.queue), (agent.queued_late, &mut self.queue_late)] {
            if queued {
                queue.retain(|other| *other != ix);
            }
        }
    }

    /// Allows offers of an agent's resources.
    pub fn activate_agent(&mut self, id: &AgentId) {
        if let Some(ix) = self.agent(id) {
            self.agents[ix as usize].active = true;
            self.maintenance.touch(ix);
            self.enqueue(ix);
        }
    }

    /// Stops offers of an agent's resources: it is disconnected, draining, or deactivated by an operator.
    pub fn deactivate_agent(&mut self, id: &AgentId) {
        if let Some(ix) = self.agent(id) {
            self.agents[ix as usize].active = false;
        }
    }

    /// Sets the hostnames whose agents may be offered. `None` allows all.
    pub fn set_whitelist(&mut self, hostnames: Option<BTreeSet<String>>) {
        self.whitelist = hostnames;
        self.request_all();
    }

    /// Queues every agent for the next run.
    pub fn request_all(&mut self) {
        let all: Vec<u32> = self.agents.iter().map(|(ix, _)| ix as u32).collect();
        for agent in all {
            self.enqueue(agent);
        }
        self.queue.sort_unstable();
    }

    /// Applies an operator's operation to unallocated resources.
    ///
    /// # Errors
    /// One of the steps needs resources that are missing or allocated. Nothing is changed then.
    pub fn update_available(&mut self, id: &AgentId, conversions: &[Conversion]) -> Result<(), UpdateAvailableError> {
        let ix = self.agent(id).ok_or_else(|| UpdateAvailableError::UnknownAgent(id.clone()))?;
        let agent = &self.agents[ix as usize];
        let apply = || {
            let conversions = conversions_without_allocation(conversions);
            agent.free.apply_conversions(&conversions)?;
            agent.total.apply_conversions(&conversions)
        };
        let total = apply()
            .map_err(|source| UpdateAvailableError::NotAvailable { agent: id.clone(), source: Box::new(source) })?;
        self.set_total(ix, total);
        self.freed(ix);
        Ok(())
    }

    /// Replaces the total resources of an agent. Allocations stay.
    pub(crate) fn set_total(&mut self, ix: u32, total: Resources) {
        self.count_agent(ix, true);
        self.agents[ix as usize].set_total(total);
        self.free_changed(ix);
        self.count_agent(ix, false);
        self.cluster_changed();
    }

    /// Adds an agent to the cluster's sums, or removes it from them.
    fn count_agent(&mut self, ix: u32, gone: bool) {
        let total = &self.agents[ix as usize].total;
        let amounts = total.quantities();
        if gone {
            self.cluster -= &amounts;
        } else {
            self.cluster += &amounts;
        }
        if total.iter().any(resources::Resource::is_reserved) {
            self.roles.count_reservations(total, gone, &mut self.tree);
        }
    }

    /// Updates all shares after a change of the cluster's total.
    fn cluster_changed(&mut self) {
        self.tree.set_total(&self.cluster);
        self.caps.mark_all_below_cap();
    }
}
