//! StatusUpdateMessage: an agent reports a task's state (docs/mesos/libprocess.md).

use base::Pid;
use protos::mesos::internal::StatusUpdateMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::is_terminal;

impl Master {
    /// Forwards the update to its framework, if that is connected, and records the task's state.
    pub(crate) fn status_update(&mut self, from: &Pid, message: StatusUpdateMessage, out: &mut Outbox) {
        self.count(Counter::MessagesStatusUpdate);
        if let Err(why) = self.forward_update(from, message, out) {
            self.count(Counter::InvalidStatusUpdates);
            out.warn(format!("Ignoring a status update: {why}"));
        } else {
            self.count(Counter::ValidStatusUpdates);
        }
    }

    fn forward_update(&mut self, from: &Pid, message: StatusUpdateMessage, out: &mut Outbox) -> Result<(), String> {
        let StatusUpdateMessage { mut update, pid } = message;
        let task_id = update.status.task_id.value.as_str();
        let pid = pid.as_deref().unwrap_or_default();
        if !Pid::is_named(pid) {
            return Err(format!("that of task {task_id} names no agent's pid"));
        }
        let uuid = update.uuid.as_ref().or(update.status.uuid.as_ref());
        let uuid = uuid.ok_or_else(|| format!("that of task {task_id} has no uuid"))?;
        base::valid_uuid(uuid).map_err(|why| format!("the uuid of that of task {task_id}: {why}"))?;
        let agent_id = update.slave_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        let agent = self.reporting_agent(from, agent_id)?;
        let framework_id = update.framework_id.value.as_str();
        let framework =
            self.framework_by_id(framework_id).ok_or_else(|| format!("framework {framework_id} is not known"))?;
        // Updates of unknown tasks are forwarded too: the scheduler must acknowledge them, or the agent retries
        // forever.
        let task = self.task_by_id(framework, task_id);
        let task = task.filter(|task| self.task(framework, *task).is_some_and(|row| row.agent == agent));
        fill(&mut update);
        let known = match task {
            Some(task) => {
                self.update_task(framework, task, &update, out);
                Ok(())
            }
            None => Err(format!("task {} is not known on that agent", update.status.task_id.value)),
        };
        self.frameworks.send_update(framework, update, Some(pid), out);
        known
    }
}

/// Copies fields of the outer message into the status (docs/mesos/libprocess.md).
fn fill(update: &mut protos::mesos::internal::StatusUpdate) {
    let status = &mut update.status;
    if status.uuid.is_none() {
        status.uuid.clone_from(&update.uuid);
    }
    if update.uuid.is_none() {
        update.uuid.clone_from(&status.uuid);
    }
    if status.slave_id.is_none() {
        status.slave_id.clone_from(&update.slave_id);
    }
    if status.executor_id.is_none() {
        status.executor_id.clone_from(&update.executor_id);
    }
    status.timestamp.get_or_insert(update.timestamp);
    // A terminal status stays the latest one, whatever follows.
    if is_terminal(status.state()) {
        update.latest_state.get_or_insert(status.state);
    }
}
