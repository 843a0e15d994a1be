//! A framework as the master knows it.
//!
//! When a framework is added, changed or removed is decided in `frameworks/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use allocator::fairness::Sampled;
use base::{FrameworkId, Pid, Time};
use cores::StreamId;
use protos::mesos::{self, scheduler};

use super::{FrameworkCapabilities, Task};
use crate::table::Table;

/// How a framework is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Connection {
    /// Known from agents only, since this master began.
    Recovered,
    /// Its last connection is gone.
    Disconnected,
    /// By HTTP.
    Http {
        /// The stream of its events.
        stream: StreamId,
        /// What its calls must name.
        stream_text: Arc<str>,
    },
    /// By libprocess.
    Driver(Pid),
}

/// What has been counted for one framework (docs/mesos/metrics.md, "per framework").
#[derive(Clone, Debug, Default)]
pub struct FrameworkCounts {
    /// Messages of its driver, without HTTP calls.
    pub messages: u64,
    /// Messages of its driver that wait for a rate limit.
    pub held: u64,
    /// Messages of its driver that were too many.
    pub dropped: u64,
    /// Calls by type's number.
    pub calls: BTreeMap<i32, u64>,
    /// Events by type's number.
    pub events: BTreeMap<i32, u64>,
    /// Operations by type's number.
    pub operations: BTreeMap<i32, u64>,
    /// Terminal tasks by state's number.
    pub terminal: BTreeMap<i32, u64>,
    /// Offers that were sent.
    pub offers_sent: u64,
    /// Offers that were accepted.
    pub offers_accepted: u64,
    /// Offers that were declined.
    pub offers_declined: u64,
    /// Offers that were taken back.
    pub offers_rescinded: u64,
    /// Of one that has ended: its share over time, and how long it waited for offers. Of others the allocator knows it.
    pub over_time: Option<(Sampled, Duration)>,
}

/// A framework.
#[derive(Clone, Debug)]
pub struct Framework {
    /// Its id.
    pub id: FrameworkId,
    /// Its `FrameworkInfo`; `id` is set.
    pub info: Arc<mesos::FrameworkInfo>,
    /// Its capabilities.
    pub capabilities: FrameworkCapabilities,
    /// The roles it is subscribed to.
    pub roles: BTreeSet<String>,
    /// The suppressed ones of them.
    pub suppressed: BTreeSet<String>,
    /// Its offer constraints, as sent.
    pub offer_constraints: Option<Arc<scheduler::OfferConstraints>>,
    /// The same, parsed.
    pub constraints: allocator::OfferConstraints,
    /// How it is reached.
    pub connection: Connection,
    /// Whether it gets offers.
    pub active: bool,
    /// When it subscribed with this master, or was learned of.
    pub registered: Time,
    /// When it last subscribed again.
    pub reregistered: Option<Time>,
    /// When it ended.
    pub unregistered: Option<Time>,
    /// Its tasks that are not done with, in the order of their launch, by [`TaskKey`](super::TaskKey).
    pub tasks: Table<Task>,
    /// The last tasks on agents that became unreachable, oldest first.
    pub unreachable_tasks: Table<Task>,
    /// The last tasks that ended, oldest first.
    pub completed_tasks: Table<Task>,
    /// What has been counted.
    pub counts: FrameworkCounts,
}

impl Framework {
    /// Whether it has a connection.
    pub fn connected(&self) -> bool {
        matches!(self.connection, Connection::Http { .. } | Connection::Driver(_))
    }

    /// Whether it is known from agents only.
    pub fn recovered(&self) -> bool {
        self.connection == Connection::Recovered
    }

    /// Its process, if it is a v0 driver's.
    pub fn pid(&self) -> Option<&Pid> {
        match &self.connection {
            Connection::Driver(pid) => Some(pid),
            _ => None,
        }
    }

    /// The id as a message.
    pub fn proto_id(&self) -> mesos::FrameworkId {
        mesos::FrameworkId { value: (&self.id).into() }
    }
}
