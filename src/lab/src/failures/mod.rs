//! The study of failures: measures how well `advice::ends` predicts how jobs and tasks of a trace end.
//!
//! [`study`] plays a trace in the order of time. In its first part the classifier only learns; in the rest its
//! predictions are counted, and it continues to learn, as it would in use. [`made_trace`] generates a trace of the same
//! format with stated mechanisms, for use without the public one; results with it say nothing about other clusters.

mod made;
mod play;

pub use made::{MadeTrace, made_trace};
pub use play::{Outcome, Running, study};

#[cfg(test)]
mod tests;
