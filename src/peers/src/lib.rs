//! A group of masters that elects its leader and keeps the registry in a replicated log of its own, without another
//! service.
//!
//! [`Peer`] is a core without I/O and without a clock, so that election and log run in the laboratory as they do live.
//! [`Journal`] keeps on a disk what a member must not forget. The crate does not know what the registry's entries mean,
//! and sends nothing itself.
#![forbid(unsafe_code)]

mod entry;
mod journal;
mod lease;
mod link;
mod log;
mod members;
mod message;
mod peer;
mod records;

pub use entry::{Change, Claim, LogEntry, Number, State};
pub use journal::{Journal, JournalError};
pub use log::{Log, LogChange};
pub use members::{ChangeError, Cluster, Configuration, MEMBERS_MAX, Member};
pub use message::{MessageError, Secret, VERSION};
pub use peer::{Leader, Note, Output, Peer, Settings, Standing};
pub use records::{RecordError, Records, Stored, Write};
