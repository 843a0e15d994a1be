//! What must survive a crash: the registry and the agent checkpoints.
//!
//! It knows how bytes get onto a disk so that a crash at any instant leaves the old or the new, in which layout
//! an agent keeps them, and how files are made that others cannot read. It knows nothing of masters and agents, of what a message means, or of any reactor: calls
//! block until the disk has answered.
#![forbid(unsafe_code)]

mod batch;
mod change;
mod checkpoints;
mod create;
mod error;
mod framed;
mod health;
mod journal;
mod meta;
mod meta_directory;
mod registry;
mod replace;
mod trouble;

pub use batch::Batch;
pub use checkpoints::{CheckpointDisk, Checkpoints, Lasting, Written};
pub use cores::Change;
pub use create::{
    Access, append_file, create_directories, create_directory, create_file, create_new, create_private, make_private,
    write_file,
};
pub use error::{StoreError, Trouble, is_transient};
pub use framed::{FrameError, frame, read_frames};
pub use health::{Health, Waits};
pub use meta::{MetaTree, read_meta};
pub use meta_directory::MetaDirectory;
pub use registry::{
    Confirmed, EntryError, FileRegistry, Found, Loss, MemoryRegistry, Opening, RegistryStore, Update, changes,
    registry_of,
};
pub use replace::{replace_file, replace_link};
