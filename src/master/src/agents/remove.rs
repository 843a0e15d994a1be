//! An agent leaves the master's books, for whatever reason.

use protos::mesos::task_status::Reason;
use protos::mesos::{self, TaskState};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::{AgentKey, FrameworkKey, is_terminal};
use crate::tasks::{MasterStatus, lost_or};

/// What becomes of the tasks of an agent that is taken out.
pub(crate) struct Removal {
    /// For frameworks that can tell partitions apart; TASK_LOST for others.
    pub state: TaskState,
    pub reason: Reason,
    pub message: String,
    pub unreachable_time: Option<mesos::TimeInfo>,
}

impl Master {
    /// An agent is gone for good: its tasks are lost, whatever their framework can tell apart (TSK-73).
    pub(crate) fn remove_agent(&mut self, key: AgentKey, why: &str, cause: Option<Counter>, out: &mut Outbox) {
        let Some(agent) = self.agent(key).cloned() else { return };
        out.info(format!("Removing agent {} ({}): {why}", agent.id, agent.info.hostname));
        out.persist.push(RegistryOp::RemoveAgent(agent.proto_id()));
        self.count(Counter::SlaveRemovals);
        if let Some(cause) = cause {
            self.count(cause);
        }
        let removal = Removal {
            state: TaskState::TaskLost,
            reason: Reason::SlaveRemoved,
            message: format!("Agent {} removed: {why}", agent.info.hostname),
            unreachable_time: None,
        };
        self.take_agent_out(key, removal, out);
        self.announce_agent_removed(agent.proto_id(), out);
    }

    /// Takes an agent out with all that is on it, and tells the frameworks.
    pub(crate) fn take_agent_out(&mut self, key: AgentKey, removal: Removal, out: &mut Outbox) {
        let Some(agent) = self.agent(key).cloned() else { return };
        // First of all nothing of it may be offered again.
        self.allocation.remove_agent(&agent.id);
        self.rescind_offers_on(key, out);
        let tasks = self.agent_books.get(&key).map(|book| book.tasks.clone()).unwrap_or_default();
        for (framework, task) in tasks {
            self.take_task_out(framework, task, &removal, out);
        }
        let executors = agent.executors.iter();
        for (framework, id) in executors.flat_map(|(framework, mine)| mine.keys().map(|id| (*framework, id.clone()))) {
            self.remove_executor(key, framework, id.as_str());
        }
        self.forget_operations(key);
        self.snapshot = None;
        self.agents.remove(key.0);
        self.agent_ids.remove(&agent.id);
        if self.agent_pids.get(&agent.pid) == Some(&key) {
            self.agent_pids.remove(&agent.pid);
            self.forget_authentication(&agent.pid);
            out.push(Output::Unlink { pid: agent.pid.clone() });
        }
        if let Some(book) = self.agent_books.remove(&key) {
            self.observers.remove(&book.observer);
            book.ping.into_iter().chain(book.reregister).for_each(|token| self.timers.cancel(token));
        }
        self.tell_all_lost(&agent.proto_id(), out);
    }

    fn take_task_out(
        &mut self,
        framework: FrameworkKey,
        task: crate::state::TaskKey,
        removal: &Removal,
        out: &mut Outbox,
    ) {
        let (Some(row), Some(entry)) = (self.task(framework, task), self.framework(framework)) else { return };
        if is_terminal(row.state()) {
            self.retire_task(framework, task);
            return;
        }
        let state = lost_or(removal.state, entry.capabilities);
        let mut status = MasterStatus::of(row, state, removal.reason, removal.message.clone());
        status.unreachable_time = removal.unreachable_time;
        self.declare_task(framework, task, status, out);
        match removal.unreachable_time {
            Some(_) => self.strand_task(framework, task),
            None => self.retire_task(framework, task),
        }
    }

    /// FAILURE for every connected framework.
    pub(crate) fn tell_all_lost(&mut self, id: &mesos::SlaveId, out: &mut Outbox) {
        let keys: Vec<FrameworkKey> = self.frameworks.iter().map(|(key, _)| FrameworkKey(key)).collect();
        for key in keys {
            self.tell_lost_agent(key, id.clone(), out);
        }
    }

    /// The master's records of operations on an agent that is taken out.
    fn forget_operations(&mut self, key: AgentKey) {
        if let Some(agent) = self.agent_mut(key) {
            agent.operations.clear();
        }
    }
}
