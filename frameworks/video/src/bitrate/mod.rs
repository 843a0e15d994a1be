//! Video on demand in chunks, each in one of several bitrates, over a network whose bandwidth varies: the model in
//! which policies of bitrates are compared. It chooses no bitrate and downloads nothing.
//!
//! The model is that of Pensieve (SIGCOMM 2017) and its public simulator:
//!
//! - a [`Movie`] has chunks of a few seconds, each in every rung of a ladder of bitrates;
//! - a [`Trace`] says how many bytes a second the network carries, and starts again at its end;
//! - a [`Session`] downloads one chunk after the other into a buffer that plays at the same time. A chunk that comes
//!   later than the buffer lasts stops the video (rebuffering); a full buffer delays the next download;
//! - [`Quality`] gives each chunk its score: the bitrate in Mbit/s, less 4.3 for each second that the video stood,
//!   less the change of bitrate.
//!
//! Traces are read from a file or made by a Markov chain; sizes of chunks are made. Both follow from a seed.

mod movie;
mod session;
mod trace;

#[cfg(test)]
mod tests;

pub use movie::Movie;
pub use session::{Chunk, Network, Quality, Session};
pub use trace::{Markov, Trace};

/// The bitrates of Pensieve's video, in kbit/s.
pub const LADDER: [u32; 6] = [300, 750, 1200, 1850, 2850, 4300];

/// The seconds of a chunk of that video.
pub const CHUNK_SECONDS: f64 = 4.0;

/// The chunks of that video.
pub const CHUNKS: usize = 48;

/// Why a session cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitrateError {
    /// A line of a trace cannot be used.
    #[error("line {line}: {rule}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What it must be.
        rule: &'static str,
    },
    /// A setting breaks a rule.
    #[error("invalid {setting}: {rule}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        rule: &'static str,
    },
}
