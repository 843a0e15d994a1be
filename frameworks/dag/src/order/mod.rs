//! Orders of stages: which stage runs next, and how many tasks a job may run at once. They do not know offers.
//!
//! A [`Policy`] reads an [`Observation`] and answers with [`Action`]s in the order in which they should be carried out.
//! [`grants`] computes what they come to: how many tasks of which stage start where, within every limit. A policy can
//! be any program that reads and writes these as JSON, a learned one for example; the heuristics that Decima (SIGCOMM
//! 2019) was compared with are in [`Heuristic`].
//!
//! # Schema
//!
//! ```json
//! {
//!   "now": 12500, "executors": 50, "moving_delay": 2000, "ahead": false, "source": 7,
//!   "free": [{"count": 3, "amounts": {"cpus": 1000, "mem": 512000}}],
//!   "jobs": [{
//!     "id": 7, "arrival": 9000, "class": 0, "weight": 1000, "deadline": 60000, "held": 12,
//!     "stages": [
//!       {"tasks": 0, "running": 2, "finished": 14, "duration": 1800, "demand": {"cpus": 1000, "mem": 512000}},
//!       {"tasks": 4, "running": 0, "finished": 0, "duration": 900, "parents": [0]}
//!     ]
//!   }]
//! }
//! ```
//!
//! Times are milliseconds, amounts thousandths; the fields of [`Observation`], [`Job`], [`Stage`] and [`Free`] say what
//! they hold. The answer is a list such as `[{"job": 7, "stage": 1, "limit": 15}]`.

mod action;
mod deadline;
mod explain;
mod fair;
mod graph;
mod heuristic;
mod history;
mod observation;
mod packing;
mod plan;
mod shortest;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

pub use action::{Action, Grant, grants};
pub use explain::{ChoiceView, Explanation};
pub use graph::{Paths, paths};
pub use heuristic::{Heuristic, UnknownHeuristic};
pub use history::History;
pub use observation::{Amounts, Free, Job, Observation, ObservationError, Ready, Stage};
pub(crate) use plan::Plan;
pub(crate) use shortest::first;

/// Decides which stages run next.
///
/// A policy may keep state of its own, but the same observations in the same order must lead to the same actions.
pub trait Policy {
    /// Returns the stages that should get tasks now, the first one first; an empty list leaves free slots free.
    ///
    /// An action names a stage that is runnable, and the actions together assign no more than is free. Actions that
    /// break this are not carried out ([`grants`]).
    fn decide(&mut self, observation: &Observation) -> Vec<Action>;

    /// Decides on an observation that the policy may keep without a copy.
    fn decide_shared(&mut self, observation: Arc<Observation>) -> Vec<Action> {
        self.decide(&observation)
    }

    /// Returns the policy's name, for tables and logs.
    fn name(&self) -> String;

    /// Returns the explanation of the last decision, if the policy has one.
    fn explain(&self) -> Option<Explanation> {
        None
    }

    /// Takes the notes for users since the last call, in words: that the policy now decides in another way.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}
