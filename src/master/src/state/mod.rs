//! Entities of a master, and their references to each other.
//!
//! Snapshots share all of it with readers. Private data of the core is in `agents/table/` and `frameworks/table/`.

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
pub use framework::{Connection, Framework, FrameworkCounts};
pub use inverse_offer::InverseOffer;
pub use keys::{AgentKey, FrameworkKey, OfferKey, TaskKey};
pub use machine::{Machine, MachineKey, Maintenance};
pub use offer::Offer;
pub use task::Task;
pub(crate) use task::{drop_repetition, is_terminal, kept_status};
