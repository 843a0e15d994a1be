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
    /// No ping has come for as long as the master said.
    PingTimeout,
    /// The executor of this container should have registered by now.
    ExecutorRegistration { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// The executor of this container was told to shut down and should be gone by now.
    ExecutorShutdown { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// Executors that have not come back after a restart are given up.
    ExecutorReregistration,
    /// It is to be estimated what may be offered a second time.
    Estimate,
    /// Those who use too much of what was offered a second time are to be found.
    CorrectUsage,
    /// Executors that have not come back are called again.
    ExecutorReconnect,
    /// Executors with a stream are told that it is still there.
    ExecutorHeartbeats,
    /// Some garbage may be old enough.
    CollectGarbage,
    /// The outcome of an operation is told again, and after `wait` once more.
    OperationRetry { uuid: Vec<u8>, wait: Duration },
}

/// The timers of an agent.
pub(crate) type Timers = cores::Timers<Timer>;
