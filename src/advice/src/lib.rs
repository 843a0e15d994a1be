//! Derives advice about tasks from measurements.
//!
//! - [`Book`] collects measurements of agents, and [`Book::report`] returns for each job and role what was requested,
//!   what was used and what to request ([`History`] and [`Advice`] do so for one job).
//! - [`agents`] finds agents whose tasks fail while the same work succeeds elsewhere.
//! - [`ends`] predicts how tasks and jobs will end.
//! - [`Risk`] is the risk of a shortage that the proposals keep to.
//!
//! It only computes. It neither obtains measurements nor applies proposals.
#![forbid(unsafe_code)]

pub mod agents;
mod amounts;
mod book;
pub mod ends;
mod family;
mod history;
mod propose;
mod quantile;
mod risk;
mod sketch;

pub use amounts::Amounts;
pub use book::{Book, JOBS_MAX, JobAdvice, Report, RoleAdvice, Sample};
pub use family::family;
pub use history::{History, Reading};
pub use propose::{Advice, MEM_MIN, Part, READINGS_MIN, Verdict};
pub use quantile::{Interval, Use};
pub use risk::{InvalidRisk, Risk};

#[cfg(test)]
mod tests;
