//! Why a task has failed apart from its program. What follows is decided by its runner.

use super::{Fault, Missing};

/// Why a task has failed apart from its program.
#[derive(Debug)]
pub(super) struct Failed {
    /// The kind of fault.
    pub(super) fault: Fault,
    /// What happened.
    pub(super) message: String,
    /// Outputs of other tasks that cannot be read.
    pub(super) missing: Vec<Missing>,
}

impl Failed {
    pub(super) fn new(fault: Fault, message: String) -> Failed {
        Failed { fault, message, missing: Vec::new() }
    }
}
