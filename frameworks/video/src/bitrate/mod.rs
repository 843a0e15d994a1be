//! Video on demand in chunks, each in one of several bitrates, over a network whose bandwidth varies: the model in
//! which bitrate policies are compared. It chooses no bitrate and downloads nothing.
//!
//! The model is that of Pensieve (SIGCOMM 2017) and its public simulator:
//!
//! - a [`Movie`] has chunks of a few seconds, each in every rung of a ladder of bitrates;
//! - a [`Trace`] has the bandwidth of the network over time, and starts again at its end;
//! - a [`Session`] downloads one chunk after the other into a buffer that plays at the same time. A chunk that comes
//!   later than the buffer lasts stops the video (rebuffering); a full buffer delays the next download;
//! - [`ScoreWeights`] gives each chunk its score: the bitrate in Mbit/s, less 4.3 for each second of rebuffering, less
//!   the change of bitrate.
//!
//! Traces are read from a file or made by a Markov chain; sizes of chunks are generated. Both follow from a seed.

mod movie;
mod session;
mod trace;

#[cfg(test)]
mod tests;

pub use movie::Movie;
pub use session::{Chunk, Network, ScoreWeights, Session};
pub use trace::{Markov, Trace};

/// Bitrates of Pensieve's video, in kbit/s.
pub const LADDER: [u32; 6] = [300, 750, 1200, 1850, 2850, 4300];

/// Length of a chunk of Pensieve's video, in seconds.
pub const CHUNK_SECONDS: f64 = 4.0;

/// Number of chunks of Pensieve's video.
pub const CHUNKS: usize = 48;

/// Reason why a session is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitrateError {
    /// A line of a trace is invalid.
    #[error("line {line}: {rule}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Rule that the line breaks.
        rule: &'static str,
    },
    /// A setting is invalid.
    #[error("invalid {setting}: {rule}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Rule that the setting breaks.
        rule: &'static str,
    },
}
