//! Which libprocess messages for a master ask for a change, and for which objects.
//!
//! The match is exhaustive: a new message needs a decision. Messages that report something, such as a task's state,
//! change nothing by themselves.

use master::Message;

use super::calls::{RequestedChange, framework, scheduler_call, task};
use super::entry::Target;

/// Returns the change that a message asks a master for; `None` if it changes nothing.
pub(crate) fn master_message(message: &Message) -> Option<RequestedChange> {
    let target = match message {
        Message::PongSlave { .. }
        | Message::SubmitScheduler(_)
        | Message::ResourceRequest(_)
        | Message::ReviveOffers(_)
        | Message::StatusUpdateAcknowledgement(_)
        | Message::FrameworkToExecutor(_)
        | Message::ReconcileTasks(_)
        | Message::StatusUpdate(_)
        | Message::ExecutorToFramework(_)
        | Message::UpdateOperationStatus(_)
        | Message::ExitedExecutor(_)
        | Message::UpdateSlave(_) => return None,
        Message::Call(call) => return scheduler_call(call),
        Message::RegisterFramework(message) => framework(&message.framework),
        Message::ReregisterFramework(message) => framework(&message.framework),
        Message::UnregisterFramework(message) => own(&message.framework_id),
        Message::DeactivateFramework(message) => own(&message.framework_id),
        // A LaunchTasksMessage without tasks declines.
        Message::LaunchTasks(message) if message.tasks.is_empty() => return None,
        Message::LaunchTasks(message) => message.tasks.iter().fold(own(&message.framework_id), task),
        Message::KillTask(message) => own(&message.framework_id).with("task", &message.task_id.value),
        Message::RegisterSlave(message) => Target::default().with("hostname", &message.slave.hostname),
        Message::ReregisterSlave(message) => {
            let agent = message.slave.id.iter().map(|id| &*id.value);
            Target::default().with_all("agent", agent).with("hostname", &message.slave.hostname)
        }
        Message::UnregisterSlave(message) => Target::default().with("agent", &message.slave_id.value),
    };
    Some(RequestedChange::new(message.name(), target))
}

fn own(id: &protos::mesos::FrameworkId) -> Target {
    Target::default().with("framework", &id.value)
}

#[cfg(test)]
mod tests {
    use protos::mesos::internal as m;

    use super::*;

    #[test]
    fn messages_that_ask_for_a_change() {
        let mut message = m::RegisterSlaveMessage::default();
        message.slave.hostname = "h".to_owned();
        let requested = master_message(&Message::RegisterSlave(Box::new(message)));
        assert_eq!(
            requested,
            Some(RequestedChange::new("RegisterSlaveMessage", Target::default().with("hostname", "h")))
        );
        let mut message = m::KillTaskMessage::default();
        message.task_id.value = "t".into();
        let requested = master_message(&Message::KillTask(Box::new(message)));
        assert_eq!(requested, Some(RequestedChange::new("KillTaskMessage", Target::default().with("task", "t"))));
        assert_eq!(master_message(&Message::PongSlave { observer: 1 }), None);
        assert_eq!(master_message(&Message::LaunchTasks(Box::default())), None);
    }
}
