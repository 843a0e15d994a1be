//! Timers of a master, by purpose.
//!
//! The file of its subject handles a due timer.

use cores::StreamId;

use crate::state::{AgentKey, FrameworkKey, OfferKey};

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Send a heartbeat to a framework's stream. Void if the framework has subscribed again since (`epoch`).
    SchedulerHeartbeat { framework: FrameworkKey, epoch: u64 },
    /// Remove a disconnected framework whose failover timeout has passed. Void if it has subscribed again since
    /// (`epoch`).
    FrameworkFailover { framework: FrameworkKey, epoch: u64 },
    /// Send a heartbeat to an operator's stream.
    OperatorHeartbeat { stream: StreamId },
    /// Ping an agent, after checking whether its last ping was answered. Void if the agent has a new observer.
    Ping { agent: AgentKey, observer: u64 },
    /// Remove a disconnected agent whose reregistration timeout has passed. Void if it has reregistered since
    /// (`epoch`).
    AgentReregister { agent: AgentKey, epoch: u64 },
    /// Mark agents as unreachable that the removal rate limit has delayed.
    AgentRemoval,
    /// Handle messages that a rate limit has delayed.
    RateLimit,
    /// Remove the recovered agents that have not reregistered in time.
    RecoveredAgents,
    /// Rescind an offer that was not answered in time.
    OfferTimeout { offer: OfferKey },
    /// Run the allocator even if nothing has changed: operators monitor its runs.
    Allocation,
    /// Rescind an inverse offer that was not answered in time.
    InverseOfferTimeout { offer: OfferKey },
    /// Remove old agents from the registry.
    RegistryGc,
}

/// The timers of a master.
pub(crate) type Timers = cores::Timers<Timer>;
