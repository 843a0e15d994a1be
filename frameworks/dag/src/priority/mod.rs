//! Priority classes without evictions (after DiAS, Middleware 2019): dropped tasks, sprints, and a model of response
//! times. It launches nothing.
//!
//! An engine runs one job at a time on all of its slots. A job of a higher class goes before those that wait, and none
//! is evicted. Instead, jobs of low classes drop a fraction of their tasks ([`DropRatio`]); their results become
//! estimates, with intervals that contain the result of the whole ([`Sampled`]). Jobs of high classes run faster for a
//! while ([`SprintBudget`]). [`Model`] predicts the response times of all classes for a choice of both, and
//! [`search`](fn@search) finds the smallest drop and then the shortest sprint with which all targets are met.

mod budget;
mod drop;
mod estimate;
mod response;
mod search;
mod service;
pub mod sprinting;

#[cfg(test)]
mod tests;

pub use budget::SprintBudget;
pub use drop::{DropError, DropRatio};
pub use estimate::{Contribution, Interval, Sampled};
pub use response::{ClassModel, Model, Response, Sprint};
pub use search::{Choice, Target, search};
pub use service::Phases;
