//! The offline profiler: cost and quality of a query's configurations.
//!
//! Quality is the F1 score against the golden configuration on the same clip. Cost is in cores: core-seconds for each
//! second of video. Few configurations are tried, and results of steps are cached for all that share them. It schedules
//! nothing.

mod clip;
mod file;
mod search;

pub use clip::{Clip, ClipOptions, core_seconds};
pub use file::{EVENTS_FEW, PROFILE_VERSION, Profile, ProfileError, VideoIdentity};
pub use search::{Evaluate, Point, Search, climb, exhaustive, frontier};

#[cfg(test)]
mod tests;
