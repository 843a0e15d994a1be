//! The agent's checkpoints: where each lies below the meta folder, and in which bytes (wire/disk.md 3 and 4).
//!
//! Nothing here touches a disk: entries go out through the outbox, and a [`Tree`] comes in.

mod folder;
mod framing;
pub(crate) mod paths;
mod recovered;
mod tree;

pub(crate) use folder::Folder;
pub(crate) use framing::{frame, frame_update, unframe};
pub use recovered::{
    Recovered, RecoveredAgent, RecoveredExecutor, RecoveredFramework, RecoveredNested, RecoveredRun, RecoveredTask,
    RecoveryError, Skipped,
};
pub use tree::Tree;
