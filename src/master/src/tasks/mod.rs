//! Changes of tasks, shared by all messages and calls.

mod book;
mod end;
mod executors;
mod status;
mod update;

pub(crate) use book::task_of;
pub(crate) use status::{MasterStatus, lost_or};
