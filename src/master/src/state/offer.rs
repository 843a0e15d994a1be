//! An outstanding offer.
//!
//! Its form on the wire is made when it is sent; see `offers/mod.rs`.

use base::Time;
use cores::TimerKey;
use resources::{Resources, Role};

use super::{AgentKey, FrameworkKey};

/// One agent's resources for one framework in one role. They count as taken until it is answered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The framework.
    pub framework: FrameworkKey,
    /// Of which agent.
    pub agent: AgentKey,
    /// In which role.
    pub role: Role,
    /// What; allocated to the role.
    pub resources: Resources,
    /// When it was sent.
    pub sent: Time,
    /// When it is too old.
    pub(crate) timeout: Option<TimerKey>,
}
