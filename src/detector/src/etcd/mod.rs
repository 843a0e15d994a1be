//! etcd: masters contend for a key that has a lease, and the leader keeps entries below the same prefix.
//!
//! The keys of a group:
//!
//! - `PREFIX/leader`: the leader's MasterInfo as JSON. Its lease ends with the leader. Its create revision is the
//!   leader's term.
//! - `PREFIX/owner`: changed by each write of entries, so that a write that was delayed changes nothing.
//! - `PREFIX/registry/...`: the entries.
//!
//! It uses the JSON gateway that each member of etcd has at its client address, and needs no library for that.

mod candidate;
mod client;
mod entries;
mod message;
mod replay;
mod url;

pub use candidate::Resignation;
pub use client::{EtcdError, Service};
pub use entries::{EtcdEntries, EtcdEntriesError};
pub use replay::{Answer, replay};
pub use url::{EtcdUrl, EtcdUrlError};
