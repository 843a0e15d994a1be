//! State of an outstanding inverse offer: a framework is asked to vacate an agent.
//!
//! `offers/inverse.rs` decides which frameworks receive it.

use cores::TimerKey;
use protos::mesos::Unavailability;

use super::{AgentKey, FrameworkKey};

/// A request to one framework to vacate its resources on one agent before the agent's machine goes down.
#[derive(Clone, Debug)]
pub struct InverseOffer {
    /// Framework that receives the request.
    pub framework: FrameworkKey,
    /// Agent to vacate.
    pub agent: AgentKey,
    /// Maintenance window of the agent's machine.
    pub unavailability: Unavailability,
    /// Timer after which the inverse offer is rescinded.
    pub(crate) timeout: Option<TimerKey>,
}
