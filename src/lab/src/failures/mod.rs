//! The study of failures: how well `advice::ends` predicts how jobs and tasks of a trace end.
//!
//! [`study`] plays a trace in the order of time. In its first part the classifier only learns; in the rest its
//! predictions are counted, and it continues to learn, as it would in use. [`made_trace`] makes a trace of the same
//! format with stated mechanisms, for where the public one is not at hand: what comes out of it says nothing about
//! other clusters.

mod made;
mod play;

pub use made::{MadeTrace, made_trace};
pub use play::{Outcome, Running, study};

#[cfg(test)]
mod tests;
