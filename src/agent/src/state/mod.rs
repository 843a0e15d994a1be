//! State of an agent: tables with private fields, which keep their indices consistent, and their rows.
//!
//! Rows are shared with snapshots and copied when they change. Changes are made in the file of each message and call.

mod checkpoint_failure;
mod container;
mod executor;
mod framework;
mod frameworks;
mod launch;
mod limits;
mod nested;
mod operations;
mod proof;
mod status;
mod streams;
mod task;

pub(crate) use checkpoint_failure::CheckpointFailure;
pub use container::{ContainerName, ContainerSpec, ExecutorKey, Prepare, Session, VolumeLink};
pub(crate) use executor::DeferredRegistration;
pub use executor::{Executor, ExecutorLink, ExecutorState, Queued};
pub use framework::{Framework, FrameworkState};
pub(crate) use frameworks::Frameworks;
pub(crate) use launch::{Launch, LaunchError};
pub use limits::Limits;
pub(crate) use nested::{Nested, Wait};
pub(crate) use operations::Operations;
pub use proof::{Claims, Proof};
pub use status::is_terminal;
pub(crate) use status::{GeneratedStatus, is_capable, loss_state, update_of};
pub(crate) use streams::{Acknowledged, RETRY_MAX, RETRY_MIN, Received, Streams};
pub(crate) use task::{note_status, task_for, task_of};
