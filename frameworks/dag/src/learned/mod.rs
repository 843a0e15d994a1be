//! An order of stages that was learned: the network of Decima (SIGCOMM 2019), and the policy that uses it. The crate
//! `training` trains it; here it is evaluated, and its gradients are computed.

mod fair_time;
mod feature_ranges;
mod gradient;
mod guard;
mod mlp;
mod network;
mod order;
mod policy;
mod round;
mod score;
mod shadow;
mod state;
mod weights;

#[cfg(test)]
pub(crate) mod tests;

pub use feature_ranges::{FeatureRanges, UnseenFeature};
pub use gradient::{Gradient, JobGradient};
pub use guard::{Guard, GuardedOrder};
pub use network::{EmbeddedJob, GlobalEmbedding, Network, WEIGHTS, WIDTH};
pub use order::{Order, UnknownOrder};
pub use policy::{Decima, Mode, RecordedChoice, Replay};
pub use round::{Candidate, Choice, Limits, Situation};
pub use score::{Scored, evaluate, evaluate_limits, pick};
pub use state::{JOB, JOB_NAMES, JobState, NODE, NODE_NAMES};
pub use weights::{BYTES_MAX, Model, ModelError};
