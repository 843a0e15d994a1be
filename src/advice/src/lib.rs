//! Derives advice about tasks from measurements.
//!
//! - [`ClusterMeasurements`] collects measurements of agents, and [`ClusterMeasurements::report`] returns for each job
//!   and role what was requested, what was used and what to request ([`History`] and [`Advice`] do so for one job).
//! - [`agents`] finds agents whose tasks fail while the same work succeeds elsewhere.
//! - [`ends`] predicts how tasks and jobs will end.
//! - [`Risk`] is the risk of a shortage that the proposals keep to.
//!
//! It only computes. It neither obtains measurements nor applies proposals.
#![forbid(unsafe_code)]

pub mod agents;
mod amounts;
pub mod ends;
mod family;
mod history;
mod measurements;
mod propose;
mod quantile;
mod risk;
mod sketch;

pub use amounts::Amounts;
pub use family::family;
pub use history::{History, Reading};
pub use measurements::{ClusterMeasurements, JOBS_MAX, JobAdvice, Report, RoleAdvice, Sample};
pub use propose::{Advice, MEM_MIN, READINGS_MIN, ResourceAdvice, Verdict};
pub use quantile::{Interval, Usage};
pub use risk::{InvalidRisk, Risk};

#[cfg(test)]
mod tests;
