//! Executors enter and leave the books.
//!
//! Those that agents make up for command tasks are not among them.

use std::sync::Arc;

use base::ExecutorId;

use crate::master::Master;
use crate::state::{AgentKey, Executor, FrameworkKey};

impl Master {
    /// Books an executor and what it takes.
    pub(crate) fn add_executor(&mut self, agent: AgentKey, id: ExecutorId, executor: Executor) {
        let Some(row) = self.agent_mut(agent) else { return };
        row.used += &executor.resources;
        row.executors.entry(executor.framework).or_default().insert(id, Arc::new(executor));
    }

    /// An executor is gone: its resources go back. Whether it was known.
    pub(crate) fn remove_executor(&mut self, agent: AgentKey, framework: FrameworkKey, id: &str) -> bool {
        let Some(row) = self.agent_mut(agent) else { return false };
        let Some(mine) = row.executors.get_mut(&framework) else { return false };
        let Some(executor) = mine.remove(id) else { return false };
        if mine.is_empty() {
            row.executors.remove(&framework);
        }
        self.release(framework, agent, &executor.resources);
        true
    }

    /// A framework ends: so do its executors.
    pub(crate) fn remove_executors_of(&mut self, framework: FrameworkKey) {
        let holders: Vec<AgentKey> = self
            .agents
            .iter()
            .filter(|(_, agent)| agent.executors.contains_key(&framework))
            .map(|(key, _)| AgentKey(key))
            .collect();
        for agent in holders {
            let mine = self.agent(agent).and_then(|row| row.executors.get(&framework));
            let ids: Vec<ExecutorId> = mine.into_iter().flat_map(|mine| mine.keys().cloned()).collect();
            for id in ids {
                self.remove_executor(agent, framework, id.as_str());
            }
        }
    }
}
