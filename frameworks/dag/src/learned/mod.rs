//! An order of stages that was learned: the network of Decima (SIGCOMM 2019), and the policy that uses it. The crate
//! `training` trains it; here it is evaluated, and its gradients are computed.

mod fair_time;
mod gradient;
mod guard;
mod mlp;
mod network;
mod order;
mod policy;
mod round;
mod score;
mod seen;
mod shadow;
mod state;
mod weights;

#[cfg(test)]
pub(crate) mod tests;

pub use gradient::{Gradient, OfJob};
pub use guard::{Guard, Guarded};
pub use network::{Embedded, Network, WEIGHTS, WIDTH, Whole};
pub use order::{Order, UnknownOrder};
pub use policy::{Chosen, Decima, Mode, Replay};
pub use round::{Candidate, Choice, Limits, Situation};
pub use score::{Scored, evaluate, evaluate_limits, pick};
pub use seen::{Seen, Unseen};
pub use state::{JOB, JOB_NAMES, JobState, NODE, NODE_NAMES};
pub use weights::{BYTES_MAX, Model, ModelError};
