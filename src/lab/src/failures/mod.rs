//! The study of failures: measures how well `advice::ends` predicts how jobs and tasks of a trace end.
//!
//! [`evaluate`] plays a trace in the order of time. In its first part the classifier only learns; in the rest its
//! predictions are counted, and it continues to learn, as it would in use. [`generate_trace`] generates a trace of the
//! same format with stated mechanisms, for use without the public one; results with it say nothing about other
//! clusters.

mod evaluation;
mod generator;

pub use evaluation::{Outcome, Running, evaluate};
pub use generator::{GeneratedTrace, generate_trace};

#[cfg(test)]
mod tests;
