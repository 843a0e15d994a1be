//! Reason why checkpoints cannot be written.

use std::sync::Arc;

/// Reason why checkpoints cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointFailure {
    /// Text of the reason: "cannot write checkpoints to /w: No space left on device".
    pub why: Arc<str>,
    /// Whether the disk has too little space.
    pub lacks_space: bool,
}
