//! Changes of tasks, shared by all messages and calls.

mod end;
mod executors;
mod status;
mod tables;
mod update;

pub(crate) use status::{MasterStatus, state_or_lost};
pub(crate) use tables::task_of;
