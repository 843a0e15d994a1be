//! What the timers of an agent are for.
//!
//! What a due timer does is in the file of its subject.

use std::time::Duration;

use base::{ExecutorId, FrameworkId};

use crate::state::ContainerName;

/// What an instant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Send the registration (again).
    Register,
    /// An attempt to authenticate has taken too long.
    Authentication,
    /// No ping has arrived for the master's timeout.
    PingTimeout,
    /// The executor of this container should have registered by now.
    ExecutorRegistration { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// The executor of this container was shut down and should have ended by now.
    ExecutorShutdown { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// Executors that have not come back after a restart are given up.
    ExecutorReregistration,
    /// It is to be estimated what may be offered a second time.
    Estimate,
    /// Executors with too many revocable resources in use are to be found.
    CorrectUsage,
    /// Executors that have not come back are called again.
    ExecutorReconnect,
    /// Heartbeats for executors with an event stream.
    ExecutorHeartbeats,
    /// Some garbage may be old enough.
    CollectGarbage,
    /// Report the status of an operation again, and after `wait` once more.
    OperationRetry { uuid: Vec<u8>, wait: Duration },
}

/// The timers of an agent.
pub(crate) type Timers = cores::Timers<Timer>;
