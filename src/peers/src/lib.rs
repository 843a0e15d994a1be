//! A group of masters that elects its leader and keeps the registry in its own replicated log, without another service.
//!
//! [`Peer`] is a core without I/O and without a clock, so that election and log run in the laboratory as in production.
//! [`Journal`] keeps the durable state of a member on a disk. The crate does not depend on the meaning of the
//! registry's entries, and sends nothing itself.
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
pub use peer::{Leader, MembershipState, Note, Output, Peer, Settings};
pub use records::{RecordError, Records, Stored, Write};
