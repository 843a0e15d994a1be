//! Decisions: the configuration, the cores and the agent of each query.
//!
//! VideoStorm (NSDI 2017), section 5, as functions of values: no clocks, no I/O. Choices that the paper leaves open are
//! marked where they are made.

mod allocate;
mod correct;
mod decide;
mod goals;
mod place;
mod sampled;
mod shrink;

pub use allocate::{Demand, Horizon, Objective, Policy, Share, allocate};
pub use correct::Correction;
pub use decide::{AgentView, Decision, QueryView, decide};
pub use goals::Goals;
pub use place::{Load, PlacementRequest, better_place, place_score};
pub use sampled::{SampledQuality, SampledStatus};
pub use shrink::{ShrinkableTask, tasks_to_shrink};

#[cfg(test)]
mod tests;
