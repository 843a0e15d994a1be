//! Disconnection of an agent (TSK-70, HA-42).

use protos::mesos::TaskState;
use protos::mesos::task_status::Reason;

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, TaskKey, is_terminal};
use crate::tasks::MasterStatus;

impl Master {
    /// Rescinds the offers of an agent whose link is broken, and starts its reregistration timeout.
    pub(crate) fn agent_exited(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agents.disconnect(key) else { return };
        out.info(format!("Agent {} ({}) is disconnected", agent.id, agent.info.hostname));
        self.update_activity(key);
        self.rescind_offers_on(key, out);
        self.end_tasks_without_checkpointing(key, out);
        let until = self.now + self.config.agent_reregister_timeout;
        self.agents.await_reregistration(key, until, &mut self.timers);
    }

    /// Ends the tasks and executors of frameworks without checkpointing: they do not survive the process of their
    /// agent.
    fn end_tasks_without_checkpointing(&mut self, key: AgentKey, out: &mut Outbox) {
        let unsaved = |framework: FrameworkKey| self.framework(framework).is_some_and(|f| !f.info.checkpoint());
        let tasks: Vec<(FrameworkKey, TaskKey)> = self.agents.tasks(key).filter(|(f, _)| unsaved(*f)).collect();
        let mut executors = self.agents.executors_on(key);
        executors.retain(|(framework, _)| unsaved(*framework));
        for (framework, task) in tasks {
            let Some(row) = self.task(framework, task) else { continue };
            if !is_terminal(row.state()) {
                let lost = TaskState::TaskLost;
                let status = MasterStatus::of(row, lost, Reason::SlaveDisconnected, "Agent disconnected");
                self.set_generated_state(framework, task, status, out);
            }
            self.complete_task(framework, task);
        }
        for (framework, id) in executors {
            self.remove_executor(key, framework, id.as_str());
        }
    }

    /// Schedules the removal of a disconnected agent whose reregistration timeout has passed, unless it has
    /// reregistered since.
    pub(crate) fn reregister_timeout(&mut self, key: AgentKey, epoch: u64, out: &mut Outbox) {
        if self.agents.reregistration_failed(key, epoch) {
            self.schedule_removal(key, "it has not reregistered in time after its connection broke", out);
        }
    }
}
