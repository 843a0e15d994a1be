//! Finds the leading master through ZooKeeper, as Mesos does (wire facts zookeeper.md): of the members of a group, the one with
//! the smallest number leads.
//!
//! A master is a candidate by the way, and may keep entries beside the candidates; all others only look. Sessions with ZooKeeper
//! are all the I/O that is here, and what a leader is asked or told is not its business.
#![forbid(unsafe_code)]

mod candidate;
mod detector;
mod entries;
mod lease;
mod member;
mod session;
mod url;

pub use detector::{Detector, Known, ask};
pub use entries::{Entries, EntriesError};
pub use lease::Lease;
pub use member::{DetectError, Leader};
pub use url::{Url, UrlError, without_credential};
