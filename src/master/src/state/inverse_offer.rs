//! An outstanding inverse offer: a framework is asked to leave an agent.
//!
//! `offers/inverse.rs` decides which frameworks receive it.

use cores::TimerKey;
use protos::mesos::Unavailability;

use super::{AgentKey, FrameworkKey};

/// One framework is asked to give up what it has on one agent before the agent's machine goes.
#[derive(Clone, Debug)]
pub struct InverseOffer {
    /// The framework that receives it.
    pub framework: FrameworkKey,
    /// The agent.
    pub agent: AgentKey,
    /// When the agent is not to be counted on.
    pub unavailability: Unavailability,
    /// When it is too old.
    pub(crate) timeout: Option<TimerKey>,
}
