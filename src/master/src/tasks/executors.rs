//! Removal of executors.
//!
//! The master does not know the executors that agents generate for command tasks.

use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey};

impl Master {
    /// Removes an executor, and releases its resources. Returns whether it was known.
    pub(crate) fn remove_executor(&mut self, agent: AgentKey, framework: FrameworkKey, id: &str) -> bool {
        let Some(executor) = self.agents.remove_executor(agent, framework, id) else { return false };
        self.recover_used(framework, agent, &executor.resources);
        true
    }

    /// Removes the executors of a framework that is removed.
    pub(crate) fn remove_executors_of(&mut self, framework: FrameworkKey) {
        for (agent, id) in self.agents.executors_of(framework) {
            self.remove_executor(agent, framework, id.as_str());
        }
    }
}
