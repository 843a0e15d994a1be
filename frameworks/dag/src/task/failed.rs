//! The reason of a failure outside of a task's program. The runner decides what follows.

use super::{Fault, Missing};

/// A failure of a task outside of its program.
#[derive(Debug)]
pub(super) struct Failed {
    /// Kind of the fault.
    pub(super) fault: Fault,
    /// Description of the fault.
    pub(super) message: String,
    /// Outputs of other tasks that cannot be read.
    pub(super) missing: Vec<Missing>,
}

impl Failed {
    pub(super) fn new(fault: Fault, message: String) -> Failed {
        Failed { fault, message, missing: Vec::new() }
    }
}
