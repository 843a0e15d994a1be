//! Kinds of timers that an agent sets.
//!
//! A due timer is handled in the file of its subject.

use std::time::Duration;

use base::{ExecutorId, FrameworkId};

use crate::state::ContainerName;

/// Purpose of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Send the next registration.
    Register,
    /// End an attempt to authenticate that has taken too long.
    Authentication,
    /// Detect the master again, as no ping has arrived within the master's timeout.
    PingTimeout,
    /// Destroy the executor of this container if it has not registered.
    ExecutorRegistration { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// Destroy this container if its executor has not shut down.
    ExecutorShutdown { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// Destroy the executors that have not reconnected after a restart of the agent.
    ExecutorReregistration,
    /// Estimate the resources that may be oversubscribed.
    Estimate,
    /// Ask the QoS controller for corrections.
    CorrectUsage,
    /// Ask executors again to reconnect.
    ExecutorReconnect,
    /// Send heartbeats to executors with an event stream.
    ExecutorHeartbeats,
    /// Delete garbage that is old enough.
    CollectGarbage,
    /// Report the status of an operation again, and once more after `wait`.
    OperationRetry { uuid: Vec<u8>, wait: Duration },
}

/// The timers of an agent.
pub(crate) type Timers = cores::Timers<Timer>;
