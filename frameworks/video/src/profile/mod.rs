//! The offline profiler: what a query costs in which configuration, and how good it is then.
//!
//! Quality is the F1 score against the golden configuration on the same clip; cost is in cores: seconds of a core for
//! each second of video. Few configurations are tried, and what steps gave is kept for all that share them. It
//! schedules nothing.

mod clip;
mod file;
mod search;

pub use clip::{Clip, ClipOptions, core_seconds};
pub use file::{EVENTS_FEW, PROFILE_VERSION, Profile, ProfileError, VideoMark};
pub use search::{Evaluate, Point, Search, climb, exhaustive, frontier};

#[cfg(test)]
mod tests;
