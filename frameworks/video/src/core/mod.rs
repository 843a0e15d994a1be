//! The framework's scheduler, without I/O: queries become tasks, workers report, and every second it is decided anew
//! what each may use.
//!
//! Agents hold the cores: on an agent the queries share what their tasks have there together. A task's own `cpus` are set
//! when it is launched, from what its query could use at best; what it may use from second to second is told to its worker,
//! which keeps to it. When there is no room for a new query, a task with more than its share is launched again with less. A
//! query that misses its goals moves to another agent that has more for it, and one that could do better with more cores
//! moves to a larger task when there are any.

mod ask;
mod launch;
mod moves;
mod query;
mod room;
mod scheduler;
mod status;

pub use ask::{Answer, Orders, Question, Report, Start, Submission};
pub use launch::WorkerCommand;
pub use query::State;
pub use scheduler::{Options, VideoScheduler};
pub use status::{QueryStatus, Sample, Status};

#[cfg(test)]
mod tests;
