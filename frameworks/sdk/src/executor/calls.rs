//! Calls of an executor: status updates and messages, collected while it handles an event and sent afterwards.

use base::Time;

use crate::v1::{TaskId, TaskState, TaskStatus};

/// The calls that an executor makes while it handles one event, in their order.
#[derive(Debug, Default)]
pub struct Calls {
    pub(super) queue: Vec<QueuedCall>,
    pub(super) wake: Option<Time>,
    pub(super) stop: bool,
}

/// One call of the executor.
#[derive(Debug)]
pub(super) enum QueuedCall {
    Update(Box<TaskStatus>),
    Message(Vec<u8>),
}

impl Calls {
    /// Reports a task's state. The session repeats the update until the agent acknowledges it.
    pub fn update(&mut self, task_id: &TaskId, state: TaskState) {
        self.update_with(TaskStatus { task_id: task_id.clone(), state: state as i32, ..Default::default() });
    }

    /// Reports a task's state like [`update`](Calls::update), with a message for people.
    pub fn explain(&mut self, task_id: &TaskId, state: TaskState, message: impl Into<String>) {
        let message = Some(message.into());
        self.update_with(TaskStatus { task_id: task_id.clone(), state: state as i32, message, ..Default::default() });
    }

    /// Reports a task's state like [`update`](Calls::update), with any other field of a status, such as `data` or
    /// `labels`. Uuid, source, executor and time are filled in.
    pub fn update_with(&mut self, status: TaskStatus) {
        self.queue.push(QueuedCall::Update(Box::new(status)));
    }

    /// Sends bytes to the scheduler. They may be lost on the way.
    pub fn message(&mut self, data: Vec<u8>) {
        self.queue.push(QueuedCall::Message(data));
    }

    /// Requests an [`Event::Wake`](super::Event::Wake) at this instant. Of several instants the earliest counts.
    pub fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }

    /// Ends the session as soon as the agent has acknowledged all updates, or the time limit for that is over.
    pub fn stop(&mut self) {
        self.stop = true;
    }
}
