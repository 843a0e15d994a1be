//! A query as a chain of steps: frames at a rate, made smaller, what has changed, boxes, tracks, and what the query
//! wants to know of them.
//!
//! Each step can be run alone, so that the profiler can keep what a step gave for all configurations that share it.

mod config;
mod events;
mod query;
mod run;
mod score;

pub use config::{Config, Knobs};
pub use events::{Finding, true_findings};
pub use query::{QueryKind, UnknownKind};
pub use run::{Analyst, Pipeline, STILL_FRAMES, STILL_WITHIN_SECONDS, learn_still};
pub use score::{Score, score};

#[cfg(test)]
mod tests;
