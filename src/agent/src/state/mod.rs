//! What an agent knows: tables with private fields, which keep their indices in step, and their rows.
//!
//! Rows are shared with snapshots and copied when they change. What changes them is in the file of each message and call.

mod frameworks;
mod operations;

pub(crate) use frameworks::Frameworks;
pub(crate) use operations::Operations;
