//! State of the detection of the leader, and the detector that reports each change.
//!
//! `watcher` (ZooKeeper) and `follower` (a list of masters) find the leader.

use std::sync::{Arc, Mutex};

use base::{Pid, lock};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use wire::client::Address;

#[cfg(feature = "zookeeper")]
use crate::Lease;

/// A leading master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Name of its node in the group: a master that was restarted has another one. Empty without ZooKeeper.
    pub member: String,
    /// PID of the master: its libprocess address.
    pub pid: Pid,
    /// HTTP address at which this process reaches the master.
    pub address: Address,
    /// Host name or address at which clients reach the master by HTTP.
    pub host: String,
    /// Port at which clients reach the master by HTTP.
    pub port: u16,
    /// Region of the master's fault domain, if it has one.
    pub region: Option<String>,
    /// Whether the leader is this candidate itself, for candidates through ZooKeeper.
    pub is_own: bool,
}

/// State of the detection of the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DetectionState {
    /// The leader is unknown: no answer has arrived yet, a session with ZooKeeper has ended, the leader's node cannot
    /// be read, or no master of the list answers.
    #[default]
    Unknown,
    /// No master leads.
    NoLeader,
    /// This master leads. With ZooKeeper the state lasts as long as the session, with or without a connection; with a
    /// list of masters, until the leader was silent for [`SILENCE_LIMIT`](crate::SILENCE_LIMIT) or another one leads.
    Leader(Leader),
    /// The candidate is refused for good; the text is the reason. There are no further changes.
    Refused(String),
}

impl DetectionState {
    /// Returns the leader, if it is known.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            DetectionState::Leader(leader) => Some(leader),
            DetectionState::Unknown | DetectionState::NoLeader | DetectionState::Refused(_) => None,
        }
    }
}

/// A task that finds the leader and reports changes. It ends when this is dropped.
#[derive(Debug)]
pub struct Detector {
    pub(crate) known: watch::Receiver<DetectionState>,
    #[cfg(feature = "zookeeper")]
    pub(crate) lease: Arc<Lease>,
    pub(crate) recheck_leader: Arc<Notify>,
    pub(crate) no_leader_reason: Arc<Mutex<String>>,
    pub(crate) task: AbortHandle,
}

impl Drop for Detector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Detector {
    /// Returns the current state.
    pub fn known(&self) -> DetectionState {
        self.known.borrow().clone()
    }

    /// Waits until the state differs from that at the return of the last call.
    pub async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Asks the leader of a list of masters at once whether it still leads, because the connection to it is lost, or it
    /// has answered that it does not. With ZooKeeper it has no effect.
    pub fn recheck_leader(&self) {
        self.recheck_leader.notify_one();
    }

    /// Returns the reason why no leader is known, for people; it is empty if one is known, or before the first answers.
    pub fn no_leader_reason(&self) -> String {
        lock(&self.no_leader_reason).clone()
    }

    /// Returns the lease: the time for which a candidate may rely on the state.
    #[cfg(feature = "zookeeper")]
    pub fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }
}

/// Sets the state, and wakes waiting tasks if it has changed.
pub(crate) fn tell(sender: &watch::Sender<DetectionState>, known: DetectionState) {
    sender.send_if_modified(|before| {
        let new = *before != known;
        *before = known;
        new
    });
}
