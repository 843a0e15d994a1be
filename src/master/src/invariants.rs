//! Consistency of a master's tables. Rules that hold after every step:
//!
//! 1. An agent's `used` is the sum of its unreleased tasks and its executors, its `offered` that of its offers.
//! 2. The allocator has the same amounts: free = total - used - offered.
//! 3. Every task, offer and executor is in the tables of both its agent and its framework, and nothing else is.
//! 4. A task id is active at most once in its framework.
//!
//! `broken.rs` breaks them, one after the other.

mod broken;

use resources::Resources;

use crate::Master;
use crate::state::{AgentKey, FrameworkKey, OfferKey, TaskKey};
pub use broken::Breakage;

/// Checks that the rules above hold for a master.
///
/// # Errors
/// The rule that is broken, and where.
pub fn check_invariants(master: &Master) -> Result<(), String> {
    for (key, agent) in master.agents.iter() {
        let mut used = Resources::new();
        for (framework, task) in master.agents.tasks(key) {
            let row = master.task(framework, task).ok_or_else(|| format!("agent {} lists no task", agent.id))?;
            if row.agent != key {
                return Err(format!("task {} is listed by two agents", row.id));
            }
            if !row.released {
                used += &*row.resources;
            }
        }
        agent.executors.values().flat_map(|mine| mine.values()).for_each(|executor| used += &executor.resources);
        let mut offered = Resources::new();
        for offer in master.offers.on_agent(key) {
            let row = master.offers.get(offer).ok_or_else(|| format!("agent {} lists no offer", agent.id))?;
            offered += &row.resources;
        }
        if used != agent.used || offered != agent.offered {
            return Err(format!(
                "agent {}: used {used}, recorded {}; offered {offered}, recorded {}",
                agent.id, agent.used, agent.offered
            ));
        }
        allocator_agrees(master, key)?;
    }
    for (key, framework) in master.frameworks.rows().iter() {
        let key = FrameworkKey(key);
        for (task, row) in framework.tasks.iter() {
            if !master.agents.has_task(row.agent, key, TaskKey(task)) {
                return Err(format!("task {} is not listed by its agent", row.id));
            }
        }
    }
    for (key, offer) in master.offers.rows().iter() {
        if !master.offers.of_framework(offer.framework).contains(&OfferKey(key)) {
            return Err(format!("offer {key} is not listed by its framework"));
        }
    }
    if !master.operations.is_in_step(|agent| master.agents.get(agent).is_some()) {
        return Err("the indices of operations do not match the operations".to_owned());
    }
    if !master.agents.are_ids_in_step() {
        return Err("the ids of agents do not match the agents".to_owned());
    }
    master.frameworks.check()
}

fn allocator_agrees(master: &Master, key: AgentKey) -> Result<(), String> {
    let Some(agent) = master.agent(key) else { return Ok(()) };
    let view = master.allocation.allocator().agent_view(&agent.id);
    let view = view.ok_or_else(|| format!("the allocator does not know agent {}", agent.id))?;
    // Shared resources always count as free.
    let held = agent.used.unallocated() + &agent.offered.unallocated();
    let free = &agent.total - &held.non_shared();
    let active = master.agents.is_offerable(key);
    if view.free != free || view.total != agent.total || view.active != active {
        return Err(format!("the allocator has {} of agent {} free, the master {free}", view.free, agent.id));
    }
    Ok(())
}
