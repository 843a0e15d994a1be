//! Measurements of a run: tasks from submission to their end, offers, and shares over time.
//!
//! They do not influence the run.

mod area;
mod bundled;
mod fairness;
mod outcome;
mod recorder;
mod stats;
mod window;

pub use area::{Area, Areas};
pub use fairness::Unfairness;
pub use outcome::{FrameworkOutcome, Live, Outcome, OwnTrack, Series, Track, WindowOutcome};
pub use recorder::{FrameworkState, Recorder, TaskRecord};
pub use stats::Summary;
pub use window::WindowSums;
