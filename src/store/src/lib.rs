//! State that must survive a crash: the registry and the agent's checkpoints.
//!
//! It writes bytes to a disk so that a crash at any time leaves the old or the new state, implements the layout of an
//! agent's checkpoints, and creates files that other users cannot read. It does not depend on masters, agents, the
//! meaning of messages, or a reactor: calls block until the disk has answered.
#![forbid(unsafe_code)]

mod batch;
mod change;
mod checkpoints;
mod create;
mod error;
mod fault_injection;
mod framed;
mod health;
mod journal;
mod meta;
mod meta_directory;
mod registry;
mod replace;

pub use batch::Batch;
pub use checkpoints::{CheckpointDisk, Checkpoints, Durability, Written};
pub use cores::Change;
pub use create::{
    Access, append_file, create_directories, create_directory, create_file, create_new, create_private, make_private,
    write_file,
};
pub use error::{DiskFailure, StoreError, is_transient};
pub use framed::{FrameError, frame, read_frames};
pub use health::{DiskHealth, Waits};
pub use meta::read_meta;
pub use meta_directory::MetaDirectory;
pub use registry::{
    Confirmed, EntryError, FileRegistry, Found, Loss, MemoryRegistry, Opening, RegistryStore, Update, changes,
    registry_of,
};
pub use replace::{replace_file, replace_link};
