//! The entities that a master knows, and how they find each other.
//!
//! What a reader may see is in tables that a snapshot shares; what only the core needs is in books beside them.

mod agent;
mod capabilities;
mod framework;
mod inverse_offer;
mod keys;
mod machine;
mod offer;
mod task;

pub use agent::{Agent, Executor, ResourceProvider};
pub use capabilities::{AgentCapabilities, FrameworkCapabilities};
pub(crate) use framework::FrameworkBook;
pub use framework::{Connection, Framework, FrameworkCounts};
pub use inverse_offer::InverseOffer;
pub use keys::{AgentKey, FrameworkKey, OfferKey, TaskKey};
pub use machine::{Machine, MachineKey, Maintenance};
pub use offer::Offer;
pub use task::Task;
pub(crate) use task::{is_terminal, kept_status, without_repetition};
