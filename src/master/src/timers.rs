//! What the timers of a master are for.
//!
//! What a due timer does is in the file of its subject.

use cores::StreamId;

use crate::state::{AgentKey, FrameworkKey, OfferKey};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A heartbeat of a framework's stream is due. Void if the framework has subscribed again since (`epoch`).
    SchedulerHeartbeat { framework: FrameworkKey, epoch: u64 },
    /// A disconnected framework's time is over. Void if it has subscribed again since (`epoch`).
    FrameworkFailover { framework: FrameworkKey, epoch: u64 },
    /// A heartbeat of an operator's stream is due.
    OperatorHeartbeat { stream: StreamId },
    /// An agent is to be pinged, and its last ping judged. Void if the agent has a new observer.
    Ping { agent: AgentKey, observer: u64 },
    /// A disconnected agent's time is over. Void if it has reregistered since (`epoch`).
    AgentReregister { agent: AgentKey, epoch: u64 },
    /// Agents that the removal rate limit has held back may go now.
    AgentRemoval,
    /// A message that a rate limit has held back may pass.
    Gate,
    /// The agents that the registry knew at the start had time enough.
    RecoveredAgents,
    /// An offer is too old.
    OfferTimeout { offer: OfferKey },
    /// The allocator is to run although nothing has happened: operators watch that it does.
    Allocation,
    /// An inverse offer is too old.
    InverseOfferTimeout { offer: OfferKey },
    /// The registry is to be swept.
    RegistryGc,
}

/// The timers of a master.
pub(crate) type Timers = cores::Timers<Timer>;
