//! When a draining agent is empty (mesos-features.md MNT-06, AGT-32).

use protos::mesos::DrainState;

use crate::master::Master;
use crate::state::AgentKey;

impl Master {
    /// Looks whether a draining agent has become empty. What follows waits for the end of the input.
    pub(crate) fn check_drained(&mut self, key: AgentKey) {
        let Some(agent) = self.agent(key) else { return };
        let draining = agent.drain.as_ref().is_some_and(|drain| drain.state() == DrainState::Draining);
        if draining && self.is_empty_agent(key) {
            self.drained.push(key);
        }
    }

    /// Whether nothing runs on an agent and nothing waits for an acknowledgement.
    pub(crate) fn is_empty_agent(&self, key: AgentKey) -> bool {
        let no_tasks = self.agent_books.get(&key).is_none_or(|book| book.tasks.is_empty());
        no_tasks && self.agent(key).is_none_or(|agent| agent.operations.is_empty())
    }
}
