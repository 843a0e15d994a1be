//! ACKNOWLEDGE: a framework acknowledges a status update (docs/mesos/libprocess.md).

use protos::mesos::TaskState;
use protos::mesos::internal::StatusUpdateAcknowledgementMessage;
use protos::mesos::scheduler::call::Acknowledge;

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{FrameworkKey, TaskKey, is_terminal};

impl Master {
    /// Forwards the acknowledgement to the agent. That of a terminal update completes the task.
    pub(crate) fn acknowledge(&mut self, key: FrameworkKey, call: Acknowledge, out: &mut Outbox) {
        self.count(Counter::MessagesStatusUpdateAcknowledgement);
        if let Err(why) = self.pass_acknowledgement(key, call, out) {
            self.count(Counter::InvalidStatusUpdateAcknowledgements);
            out.warn(format!("Dropping an acknowledgement: {why}"));
        } else {
            self.count(Counter::ValidStatusUpdateAcknowledgements);
        }
    }

    fn pass_acknowledgement(&mut self, key: FrameworkKey, call: Acknowledge, out: &mut Outbox) -> Result<(), String> {
        let (agent_id, task_id) = (call.slave_id.value.as_str(), call.task_id.value.as_str());
        let agent_key = self.agent_by_id(agent_id);
        let agent = agent_key.and_then(|agent| self.agent(agent));
        let agent = agent.ok_or_else(|| format!("agent {agent_id} of task {task_id} is not registered"))?;
        if !agent.connected {
            return Err(format!("agent {agent_id} of task {task_id} is not connected"));
        }
        // Tasks of other agents are ignored: the agent in the call must have the task.
        let on_agent = |task: &TaskKey| self.task(key, *task).is_some_and(|row| Some(row.agent) == agent_key);
        let task = self.task_by_id(key, task_id).filter(on_agent);
        let row = task.and_then(|task| self.task(key, task));
        if row.is_some_and(|row| row.proto.status_update_state.is_none()) {
            return Err(format!("no update of task {task_id} has been sent"));
        }
        let done = row.is_some_and(|row| {
            let state = TaskState::try_from(row.proto.status_update_state.unwrap_or_default());
            state.is_ok_and(is_terminal) && row.proto.status_update_uuid.as_ref() == Some(&call.uuid)
        });
        let framework_id = self.framework(key).map(|framework| framework.proto_id()).unwrap_or_default();
        let message = StatusUpdateAcknowledgementMessage {
            slave_id: call.slave_id,
            framework_id,
            task_id: call.task_id,
            uuid: call.uuid,
        };
        out.push(Output::send(&agent.pid, message));
        if let Some(task) = task.filter(|_| done) {
            self.complete_task(key, task);
        }
        Ok(())
    }
}
