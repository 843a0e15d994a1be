//! Finds the leading master through ZooKeeper, as Mesos does (docs/mesos/zookeeper.md): the member of a group with the
//! smallest number leads.
//!
//! A master is a candidate, and may keep entries beside the candidates; all other processes only watch. The crate does
//! no I/O except sessions with ZooKeeper.
#![forbid(unsafe_code)]

mod candidate;
mod detector;
mod entries;
mod lease;
mod member;
mod session;
mod url;

pub use detector::{Detector, Known, ask};
pub use entries::{Entries, EntriesError, key_of as entry_of_node, name_of as node_of_entry};
pub use lease::Lease;
pub use member::{DetectError, Leader};
pub use url::{Url, UrlError, without_credential};
