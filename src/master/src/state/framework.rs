//! State of a framework in the master.
//!
//! `frameworks/` adds, changes and removes frameworks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use allocator::fairness::Sampled;
use base::{FrameworkId, Pid, Time};
use cores::StreamId;
use protos::mesos::{self, scheduler};

use super::{FrameworkCapabilities, Task};
use crate::table::Table;

/// Connection of a framework.
#[derive(Clone, Debug, PartialEq)]
pub enum Connection {
    /// The framework has not subscribed with this master, but an agent lists it.
    Recovered,
    /// The framework has lost its connection.
    Disconnected,
    /// The framework is connected by HTTP.
    Http {
        /// Stream of the framework's events.
        stream: StreamId,
        /// Value that the framework's calls must have in the `Mesos-Stream-Id` header.
        stream_text: Arc<str>,
    },
    /// The framework is connected by libprocess.
    Driver(Pid),
}

/// Counters of one framework (docs/mesos/metrics.md, "per framework").
#[derive(Clone, Debug, Default)]
pub struct FrameworkCounts {
    /// Number of messages of its driver; HTTP calls are not counted.
    pub messages: u64,
    /// Number of messages of its driver that wait for a rate limit.
    pub held: u64,
    /// Number of messages of its driver that were dropped because too many were waiting.
    pub dropped: u64,
    /// Numbers of calls by the number of the type.
    pub calls: BTreeMap<i32, u64>,
    /// Numbers of events by the number of the type.
    pub events: BTreeMap<i32, u64>,
    /// Numbers of operations by the number of the type.
    pub operations: BTreeMap<i32, u64>,
    /// Numbers of terminal tasks by the number of the state.
    pub terminal: BTreeMap<i32, u64>,
    /// Number of offers that were sent.
    pub offers_sent: u64,
    /// Number of offers that were accepted.
    pub offers_accepted: u64,
    /// Number of offers that were declined.
    pub offers_declined: u64,
    /// Number of offers that were rescinded.
    pub offers_rescinded: u64,
    /// Share over time of a completed framework, and how long it waited for offers. For other frameworks the allocator
    /// has them.
    pub over_time: Option<(Sampled, Duration)>,
}

/// A framework that has subscribed, or that an agent lists.
#[derive(Clone, Debug)]
pub struct Framework {
    /// Id of the framework.
    pub id: FrameworkId,
    /// `FrameworkInfo` of the framework; `id` is set.
    pub info: Arc<mesos::FrameworkInfo>,
    /// Capabilities of the framework.
    pub capabilities: FrameworkCapabilities,
    /// Roles that the framework is subscribed to.
    pub roles: BTreeSet<String>,
    /// Roles for which the framework has suppressed offers.
    pub suppressed: BTreeSet<String>,
    /// Offer constraints of the framework, as it has sent them.
    pub offer_constraints: Option<Arc<scheduler::OfferConstraints>>,
    /// Compiled offer constraints of the framework.
    pub constraints: allocator::OfferConstraints,
    /// Connection of the framework.
    pub connection: Connection,
    /// Whether the framework is offered resources.
    pub active: bool,
    /// Time at which the framework subscribed with this master, or was first listed by an agent.
    pub registered: Time,
    /// Time of the last further subscription; `None` before the first.
    pub reregistered: Option<Time>,
    /// Time at which the framework was removed; `None` before.
    pub unregistered: Option<Time>,
    /// Tasks that are not completed, in the order of their launch, by [`TaskKey`](super::TaskKey).
    pub tasks: Table<Task>,
    /// Last tasks on agents that became unreachable, oldest first.
    pub unreachable_tasks: Table<Task>,
    /// Tasks that completed last, oldest first.
    pub completed_tasks: Table<Task>,
    /// Counters of the framework.
    pub counts: FrameworkCounts,
}

impl Framework {
    /// Returns whether the framework has a connection.
    pub fn connected(&self) -> bool {
        matches!(self.connection, Connection::Http { .. } | Connection::Driver(_))
    }

    /// Returns whether the framework is known only from agents.
    pub fn recovered(&self) -> bool {
        self.connection == Connection::Recovered
    }

    /// Returns the process of the framework's driver, or `None` if it has no connected driver.
    pub fn pid(&self) -> Option<&Pid> {
        match &self.connection {
            Connection::Driver(pid) => Some(pid),
            _ => None,
        }
    }

    /// Returns the id as a message.
    pub fn proto_id(&self) -> mesos::FrameworkId {
        mesos::FrameworkId { value: (&self.id).into() }
    }
}
