//! The framework's scheduler, without I/O: it launches a task for each query, receives the workers' reports, and
//! decides every second what each may use.
//!
//! Agents hold the cores: on an agent the queries share the cores of their tasks there. A task's own `cpus` are set at
//! its launch, from what its query could use at best; its worker is told what it may use from second to second, and
//! keeps to it. If there is no room for new queries, tasks that hold more than their queries must have are launched
//! again with less. A query that misses its goals moves to another agent with more cores for it, and one that could use
//! more cores moves to a larger task when there are any.

mod ask;
mod launch;
mod moves;
mod query;
mod room;
mod scheduler;
mod status;

pub use ask::{Answer, Orders, QualitySample, Question, Report, Start, Submission};
pub use launch::WorkerCommand;
pub use query::State;
pub use scheduler::{Options, VideoScheduler};
pub use status::{QueryStatus, Sample, Status};

#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod tests;
