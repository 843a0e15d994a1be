//! State of an outstanding offer.
//!
//! Its form on the wire is made when it is sent; see `offers/mod.rs`.

use base::Time;
use cores::TimerKey;
use resources::{Resources, Role};

use super::{AgentKey, FrameworkKey};

/// Resources of one agent that are offered to one framework in one role. They count as allocated until the offer is
/// answered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Framework that receives the offer.
    pub framework: FrameworkKey,
    /// Agent whose resources are offered.
    pub agent: AgentKey,
    /// Role that the resources are offered to.
    pub role: Role,
    /// Offered resources, allocated to the role.
    pub resources: Resources,
    /// Time at which the offer was sent.
    pub sent: Time,
    /// Timer after which the offer is rescinded; `None` without an offer timeout.
    pub(crate) timeout: Option<TimerKey>,
}
