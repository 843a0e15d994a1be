//! Deciding: which query runs in which configuration, with how many cores, on which agent.
//!
//! VideoStorm (NSDI 2017), section 5, as functions of values: no clocks, no I/O. What the paper leaves open, or is not
//! known of it, is said where it is decided.

mod allocate;
mod correct;
mod decide;
mod goals;
mod place;

pub use allocate::{Demand, Horizon, Objective, Policy, Share, allocate};
pub use correct::Correction;
pub use decide::{AgentView, Decision, QueryView, decide};
pub use goals::Goals;
pub use place::{Load, Placing, better_place, place_score};

#[cfg(test)]
mod tests;
