//! Removal of an agent from the cluster.

use protos::mesos::task_status::Reason;
use protos::mesos::{self, TaskState};

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::{AgentKey, FrameworkKey, TaskKey, is_terminal};
use crate::tasks::{MasterStatus, state_or_lost};

/// Consequences of an agent's removal for its tasks.
pub(crate) struct Removal {
    /// Task state for partition-aware frameworks; others are sent TASK_LOST.
    pub state: TaskState,
    pub reason: Reason,
    pub message: String,
    pub unreachable_time: Option<mesos::TimeInfo>,
}

impl Master {
    /// Removes an agent permanently, also from the registry. Its tasks are lost, also for partition-aware frameworks
    /// (TSK-73).
    pub(crate) fn remove_agent(&mut self, key: AgentKey, why: &str, cause: Option<Counter>, out: &mut Outbox) {
        let Some(agent) = self.agents.get(key).cloned() else { return };
        out.info(format!("Removing agent {} ({}): {why}", agent.id, agent.info.hostname));
        out.persist.push(RegistryOp::RemoveAgent(agent.proto_id()));
        self.count(Counter::SlaveRemovals);
        cause.into_iter().for_each(|cause| self.count(cause));
        let removal = Removal {
            state: TaskState::TaskLost,
            reason: Reason::SlaveRemoved,
            message: format!("Agent {} removed: {why}", agent.info.hostname),
            unreachable_time: None,
        };
        self.remove_agent_with_tasks(key, removal, out);
        self.announce_agent_removed(agent.proto_id(), out);
    }

    /// Removes an agent in favor of another one at the same address. The authentication of that address stays valid.
    pub(crate) fn replace_agent(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(pid) = self.agents.get(key).map(|agent| agent.pid.clone()) else { return };
        let authentication = self.peers.forget(&pid);
        let why = "a new agent registered at the same address";
        self.remove_agent(key, why, Some(Counter::SlaveRemovalsRegistered), out);
        authentication
            .into_iter()
            .for_each(|authentication| self.peers.record_authentication(pid.clone(), authentication));
    }

    /// Removes an agent with its offers, tasks and executors, and notifies the frameworks.
    pub(crate) fn remove_agent_with_tasks(&mut self, key: AgentKey, removal: Removal, out: &mut Outbox) {
        let Some(id) = self.agents.get(key).map(|agent| agent.id.clone()) else { return };
        // First of all, so that none of its resources is offered again.
        self.allocation.remove_agent(&id);
        self.rescind_offers_on(key, out);
        let tasks: Vec<_> = self.agents.tasks(key).collect();
        for (framework, task) in tasks {
            self.end_task_of_removed_agent(framework, task, &removal, out);
        }
        for (framework, id) in self.agents.executors_on(key) {
            self.remove_executor(key, framework, id.as_str());
        }
        self.operations.remove_on(key, |_| true);
        let Some((agent, owns_pid)) = self.agents.remove(key, &mut self.timers) else { return };
        if owns_pid {
            self.peers.forget(&agent.pid);
            out.push(Output::Unlink { pid: agent.pid.clone() });
        }
        self.send_lost_agent_to_all(&agent.proto_id(), out);
    }

    fn end_task_of_removed_agent(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        removal: &Removal,
        out: &mut Outbox,
    ) {
        let row = self.task(framework, task);
        let (Some(row), Some(entry)) = (row, self.framework(framework)) else { return };
        if is_terminal(row.state()) {
            self.complete_task(framework, task);
            return;
        }
        let state = state_or_lost(removal.state, entry.capabilities);
        let mut status = MasterStatus::of(row, state, removal.reason, removal.message.clone());
        status.unreachable_time = removal.unreachable_time;
        self.set_generated_state(framework, task, status, out);
        match removal.unreachable_time {
            Some(_) => self.mark_task_unreachable(framework, task),
            None => self.complete_task(framework, task),
        }
    }

    /// Sends FAILURE for an agent to every connected framework.
    pub(crate) fn send_lost_agent_to_all(&mut self, id: &mesos::SlaveId, out: &mut Outbox) {
        for key in self.frameworks.keys() {
            self.frameworks.send_lost_agent(key, id.clone(), out);
        }
    }
}
