//! The reason of a failure outside of a task's program. The runner decides what follows.

use super::{Fault, Missing};

/// A failure of a task outside of its program.
#[derive(Debug)]
pub(super) struct TaskFailure {
    /// Kind of the fault.
    pub(super) fault: Fault,
    /// Description of the fault.
    pub(super) message: String,
    /// Outputs of other tasks that cannot be read.
    pub(super) missing: Vec<Missing>,
}

impl TaskFailure {
    pub(super) fn new(fault: Fault, message: String) -> TaskFailure {
        TaskFailure { fault, message, missing: Vec::new() }
    }
}
