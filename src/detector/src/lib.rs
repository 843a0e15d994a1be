//! Finds the leading master through ZooKeeper, as Mesos does (wire facts zookeeper.md): of the members of a group, the one with
//! the smallest number leads.
//!
//! It only looks: it is no candidate, and writes nothing. Sessions with ZooKeeper are all the I/O that is here, and what a
//! leader is asked or told is not its business.
#![forbid(unsafe_code)]

mod detector;
mod member;
mod url;

pub use detector::{Detector, Known, ask};
pub use member::{DetectError, Leader};
pub use url::{Url, UrlError, without_credential};
