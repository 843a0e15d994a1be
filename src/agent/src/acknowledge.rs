//! Handles StatusUpdateAcknowledgementMessage: a framework has received a status update.

use base::{FrameworkId, TaskId, Time};
use cores::Level;
use protos::mesos::internal::{StatusUpdateAcknowledgementMessage, StatusUpdateRecord, status_update_record};

use crate::agent::Agent;
use crate::disk::frame;
use crate::output::{Outbox, Persist};
use crate::state::{Acknowledged, ExecutorState};

impl Agent {
    /// Handles an acknowledgement of a status update.
    ///
    /// The next update of the task may then be sent. After the last one the task is completed.
    pub(crate) fn status_update_acknowledgement(
        &mut self,
        message: &StatusUpdateAcknowledgementMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let (Ok(framework), Ok(task)) =
            (FrameworkId::of(&message.framework_id.value), TaskId::of(&message.task_id.value))
        else {
            return;
        };
        let (update, last, file) = match self.streams.acknowledge(&framework, &task, &message.uuid, now) {
            Acknowledged::Delivered { update, last, file } => (update, last, file),
            outcome => {
                let text = format!("Ignored an acknowledgement for task {task} of framework {framework}: {outcome:?}");
                out.log(Level::Debug, text);
                return;
            }
        };
        if let Some(file) = file {
            let record = StatusUpdateRecord {
                r#type: status_update_record::Type::Ack as i32,
                update: None,
                uuid: update.uuid.clone(),
            };
            out.persist.push(Persist::Append { path: file.to_string(), at: None, bytes: frame(&record) });
        }
        if last {
            self.task_completed(&framework, update.executor_id.as_ref().map(|id| id.value.as_str()), &task, now, out);
        }
    }

    fn task_completed(
        &mut self,
        framework: &FrameworkId,
        executor: Option<&str>,
        task: &TaskId,
        now: Time,
        out: &mut Outbox,
    ) {
        let Some(target) = executor.and_then(|executor| self.executor_mut(framework.as_str(), executor)) else {
            return self.remove_framework_if_idle(framework, now, out);
        };
        target.complete(task);
        if target.state == ExecutorState::Terminated && !target.has_incomplete_tasks() {
            let id = target.id.clone();
            self.remove_executor(framework, &id, now, out);
        }
    }
}
