//! What is known about the leader, and the detector that reports each change.
//!
//! How the leader is found is in `watcher` (ZooKeeper) and in `follower` (a list of masters).

use std::sync::{Arc, Mutex};

use base::{Pid, lock};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use wire::client::Address;

#[cfg(feature = "zookeeper")]
use crate::Lease;

/// A master that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The name of its node in the group: a master that was started again has another one. Empty without ZooKeeper.
    pub member: String,
    /// Where it is.
    pub pid: Pid,
    /// Where this process reaches it by HTTP.
    pub address: Address,
    /// Under which name, or at which address, clients find it by HTTP.
    pub host: String,
    /// And at which port.
    pub port: u16,
    /// The region that its domain is in, if it has one.
    pub region: Option<String>,
    /// Whether it is this candidate, of those that contend through ZooKeeper.
    pub is_own: bool,
}

/// The current knowledge about the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Nothing: nothing was asked yet, a session with ZooKeeper has ended, the leader's node cannot be read, or no
    /// master of the list answers.
    #[default]
    Nothing,
    /// No master leads.
    NoLeader,
    /// This one leads. Through ZooKeeper it stands for as long as the session does, with or without a connection; by a
    /// list of masters, until it was silent for [`HOLD`](crate::HOLD) or another one leads.
    Leader(Leader),
    /// A candidate is refused, and will not be let in by asking again. This is the last word.
    Refused(String),
}

impl Known {
    /// The leader, if it is known.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Known::Leader(leader) => Some(leader),
            Known::Nothing | Known::NoLeader | Known::Refused(_) => None,
        }
    }
}

/// A task that finds the leader, and what it knows. It ends with its owner.
#[derive(Debug)]
pub struct Detector {
    pub(crate) known: watch::Receiver<Known>,
    #[cfg(feature = "zookeeper")]
    pub(crate) lease: Arc<Lease>,
    pub(crate) doubt: Arc<Notify>,
    pub(crate) trouble: Arc<Mutex<String>>,
    pub(crate) task: AbortHandle,
}

impl Drop for Detector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Detector {
    /// What is known now.
    pub fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    /// Returns when something else is known than when it returned before.
    pub async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Asks the leader of a list of masters at once whether it still leads: the connection to it is lost, or it has
    /// answered that it does not. ZooKeeper reports by itself.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Why no leader is known, in words; empty if one is, or before the first answers.
    pub fn trouble(&self) -> String {
        lock(&self.trouble).clone()
    }

    /// For how long a candidate may rely on it.
    #[cfg(feature = "zookeeper")]
    pub fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }
}

/// Sets what is known, and wakes those that wait for it if it is new.
pub(crate) fn tell(sender: &watch::Sender<Known>, known: Known) {
    sender.send_if_modified(|before| {
        let new = *before != known;
        *before = known;
        new
    });
}
