//! The framework's scheduler, without I/O: it launches a task for each query, receives the workers' reports, and
//! decides every second how many cores and which configuration each query uses.
//!
//! Tasks hold the cores: on an agent the queries share the cores of their tasks there. The `cpus` of a task are fixed
//! at its launch and follow from what its query can use at best. The scheduler sends its worker a limit of cores each
//! second, and the worker enforces it. If there are no resources for new queries, tasks that hold more than their
//! queries need are launched again with less. A query that misses its goals moves to another agent with more cores for
//! it, and one that can use more cores moves to a larger task when cores are free.

mod launch;
mod moves;
mod query;
mod question;
mod resize;
mod scheduler;
mod status;

pub use launch::WorkerCommand;
pub use query::State;
pub use question::{Answer, Orders, QualitySample, Question, Report, Start, Submission};
pub use scheduler::{Options, VideoScheduler};
pub use status::{QueryStatus, Sample, Status};

#[cfg(test)]
mod resize_tests;
#[cfg(test)]
mod tests;
