//! The agent's checkpoints: their paths below the meta directory, and their encoding (docs/mesos/disk.md).
//!
//! Nothing here accesses a disk: entries leave through the outbox, and a [`Tree`] is the input.

mod directory;
mod framing;
pub(crate) mod paths;
mod recovered;

pub use cores::Tree;
pub(crate) use directory::Directory;
pub(crate) use framing::{frame, frame_update, unframe};
pub use recovered::{
    Recovered, RecoveredAgent, RecoveredExecutor, RecoveredFramework, RecoveredNested, RecoveredRun, RecoveredTask,
    RecoveryError, Skipped,
};
