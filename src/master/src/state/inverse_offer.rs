//! An outstanding inverse offer: a framework is asked to leave an agent.
//!
//! Whom it is made to is decided in `offers/inverse.rs`.

use cores::TimerKey;
use protos::mesos::Unavailability;

use super::{AgentKey, FrameworkKey};

/// One framework is asked to give up what it has on one agent before the agent's machine goes.
#[derive(Clone, Debug)]
pub struct InverseOffer {
    /// Whom.
    pub framework: FrameworkKey,
    /// Where.
    pub agent: AgentKey,
    /// When the agent is not to be counted on.
    pub unavailability: Unavailability,
    /// When it is too old.
    pub(crate) timeout: Option<TimerKey>,
}
