//! Custom executors without I/O: launches and kills are inputs, status updates are outputs.
//!
//! An executor is a value with one method, [`Executor::on_event`], like a scheduler. It may run tasks in threads, child
//! processes or coroutines, which report through a queue (such as [`requests`](crate::requests())) and a wake-up.
//!
//! [`Session`] does everything between executor and agent that needs no I/O: it subscribes, subscribes again with
//! unacknowledged updates, numbers updates and repeats them, and ends with a grace period. `driver::executor` runs it
//! against an agent.

mod calls;
mod environment;
mod session;

use std::time::Duration;

use base::Time;

use crate::v1::executor::event::Type;
use crate::v1::{AgentInfo, ExecutorInfo, FrameworkInfo, TaskId, TaskInfo, executor};

pub use calls::Calls;
pub use environment::{Environment, EnvironmentError, Recovery};
pub use session::{Ending, Input, Output, Session};

/// An executor: handles events and reports updates.
///
/// `on_event` is called for one event at a time, never at once from two threads. The calls that it makes are sent after
/// it returns, in order.
pub trait Executor {
    /// Handles `event`, which happened at `now`, and makes calls through `calls`.
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls);
}

impl<E: Executor + ?Sized> Executor for &mut E {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        (**self).on_event(event, now, calls);
    }
}

/// An event of an executor's session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The agent accepted the subscription.
    Subscribed {
        /// This executor, as its framework described it; its field `data` is for the framework's own use.
        executor: Box<ExecutorInfo>,
        /// The executor's framework.
        framework: Box<FrameworkInfo>,
        /// The agent that the executor runs on.
        agent: Box<AgentInfo>,
        /// Whether the executor was subscribed before; the agent was restarted meanwhile.
        again: bool,
    },
    /// Tasks to launch: one, or the tasks of a group, which start and end together.
    Launch(Vec<TaskInfo>),
    /// Request to kill a task, with a grace period if the framework sets one.
    Kill {
        /// Id of the task.
        task_id: TaskId,
        /// Time between the request and the forced kill.
        grace: Option<Duration>,
    },
    /// A message of the scheduler.
    Message(Vec<u8>),
    /// The connection to the agent is lost; the agent may return. Updates that are made meanwhile are sent later.
    Disconnected {
        /// Reason, for people.
        why: String,
    },
    /// Request to end all tasks and to [`stop`](Calls::stop). When the grace period is over the session ends in any
    /// case.
    Shutdown {
        /// Grace period of the shutdown.
        grace: Duration,
    },
    /// The time given to [`Calls::wake_at`] has come, or another thread has woken the executor.
    Wake,
}

impl Event {
    /// Converts an event of the v1 API. Returns `None` for kinds that the session handles itself or does not know.
    fn from_wire(event: executor::Event, again: bool) -> Option<Event> {
        Some(match event.r#type() {
            Type::Subscribed => {
                let part = event.subscribed?;
                Event::Subscribed {
                    executor: Box::new(part.executor_info),
                    framework: Box::new(part.framework_info),
                    agent: Box::new(part.agent_info),
                    again,
                }
            }
            Type::Launch => Event::Launch(vec![event.launch?.task]),
            Type::LaunchGroup => Event::Launch(event.launch_group?.task_group.tasks),
            Type::Kill => {
                let part = event.kill?;
                let grace = part.kill_policy.and_then(|p| p.grace_period);
                let grace = grace.map(|g| Duration::from_nanos(u64::try_from(g.nanoseconds).unwrap_or(0)));
                Event::Kill { task_id: part.task_id, grace }
            }
            Type::Message => Event::Message(event.message?.data),
            Type::Acknowledged | Type::Shutdown | Type::Error | Type::Heartbeat | Type::Unknown => return None,
        })
    }
}
