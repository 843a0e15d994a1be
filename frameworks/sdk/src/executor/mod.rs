//! Custom executors without I/O: launches and kills in, status updates out.
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

/// An executor: answers events with updates.
///
/// `on_event` is called for one event at a time, never at once from two threads. What it calls is sent after it
/// returns, in its order.
pub trait Executor {
    /// Answers `event`, which happened at `now`, with `calls`.
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
    /// The agent took the executor in.
    Subscribed {
        /// Which executor this is, as its framework described it; its `data` are the framework's to use.
        executor: Box<ExecutorInfo>,
        /// Its framework.
        framework: Box<FrameworkInfo>,
        /// Where it runs.
        agent: Box<AgentInfo>,
        /// Whether it had been subscribed before, and the agent was restarted meanwhile.
        again: bool,
    },
    /// Tasks to run: one, or the tasks of a group, which are to start and end together.
    Launch(Vec<TaskInfo>),
    /// A task must end, with a grace period between request and force if the framework sets one.
    Kill {
        /// The id of the task.
        task_id: TaskId,
        /// The grace period.
        grace: Option<Duration>,
    },
    /// The scheduler sends bytes.
    Message(Vec<u8>),
    /// The agent is away: it may come back. What is called meanwhile is not lost.
    Disconnected {
        /// Why, in words.
        why: String,
    },
    /// The executor is to end its tasks and [`stop`](Calls::stop); after the grace period the session ends without it.
    Shutdown {
        /// How long there is.
        grace: Duration,
    },
    /// The time given to [`Calls::wake_at`] has come, or another thread has woken the executor.
    Wake,
}

impl Event {
    /// The executor's view of a wire event; `None` for kinds that the session keeps to itself or does not know.
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
