//! A query as a sequence of steps: sampling, scaling, change detection, boxes, tracks, and the query's own counts.
//!
//! Each step can run alone, so that the profiler can reuse its result for all configurations that share it.

mod config;
mod events;
mod labelled;
mod learn;
mod notice;
mod query;
mod run;
mod sample;
mod score;
mod view;

pub use crate::scope::{CORNERS_MAX, Count, LINES_MAX, Line, Point, Scope};
pub use config::{Config, Knobs};
pub use events::{Finding, true_findings};
pub use labelled::{compare, labels, vertical_line};
pub use learn::Learner;
pub use notice::{NOTICES_MAX, Notice, notice};
pub use query::{QueryKind, UnknownKind};
pub use run::{Analyst, Pipeline, STILL_FRAMES, STILL_WITHIN_SECONDS, learn_still, objects};
pub use sample::{SAMPLE_SECONDS, Sample, SampleProgress};
pub use score::{Score, score};

#[cfg(test)]
mod tests;
