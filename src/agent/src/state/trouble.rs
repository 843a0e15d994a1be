//! Why checkpoints cannot be written.

use std::sync::Arc;

/// Why checkpoints cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// "cannot write checkpoints to /w: No space left on device".
    pub why: Arc<str>,
    /// Whether there is too little room on the disk.
    pub needs_room: bool,
}
