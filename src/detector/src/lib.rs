//! Finds the leading master: through ZooKeeper, as Mesos does (docs/mesos/zookeeper.md), where the member of a group
//! with the smallest number leads (feature `zookeeper`), or by asking the masters of a list, each of which names the
//! leader at `/redirect`. Masters may contend in etcd, too (feature `etcd`).
//!
//! A master is a candidate, and may keep entries beside the candidates; all other processes only detect the leader. The
//! crate does no I/O except sessions with ZooKeeper, requests to etcd and to the masters of a list.
#![forbid(unsafe_code)]

#[cfg(feature = "zookeeper")]
mod candidate;
mod detection;
#[cfg(feature = "zookeeper")]
mod entries;
#[cfg(feature = "etcd")]
pub mod etcd;
mod follower;
#[cfg(feature = "zookeeper")]
mod lease;
mod list;
#[cfg(feature = "zookeeper")]
mod member;
mod redirect;
mod search;
#[cfg(feature = "zookeeper")]
mod session;
#[cfg(feature = "zookeeper")]
mod url;
#[cfg(feature = "zookeeper")]
mod watcher;

pub use detection::{DetectionState, Detector, Leader};
#[cfg(feature = "zookeeper")]
pub use entries::{Change, Entries, EntriesError, SharedEntries, key_of as entry_of_node, name_of as node_of_entry};
pub use follower::{LeaderActivity, RequestIntervals, SILENCE_LIMIT};
#[cfg(feature = "zookeeper")]
pub use lease::Lease;
pub use list::{ListError, MasterList};
#[cfg(feature = "zookeeper")]
pub use member::DetectError;
pub use redirect::{LEADER_HEADER, MASTER_HEADER, PREVIOUS_HEADER, Problem, WAIT_HEADER};
pub use search::{NoLeader, find};
#[cfg(feature = "zookeeper")]
pub use url::{Url, UrlError, without_credential};
#[cfg(feature = "zookeeper")]
pub use watcher::ask;
