//! Policies that choose the bitrate of the next chunk: published baselines, and a linear policy with human-readable
//! weights (after ABRL, "Real-world video adaptation with reinforcement learning", 2020). Nothing is downloaded here.
//!
//! - [`Buffer`](BitratePolicy::Buffer) and [`BufferSizes`](BitratePolicy::BufferSizes): BBA-0 and BBA-1 ("A
//!   buffer-based approach to rate adaptation", SIGCOMM 2014);
//! - [`Rate`](BitratePolicy::Rate): the highest bitrate below the harmonic mean of the last downloads;
//! - [`Predictive`](BitratePolicy::Predictive): RobustMPC ("A control-theoretic approach for dynamic adaptive video
//!   streaming", SIGCOMM 2015), five chunks ahead;
//! - [`Linear`](BitratePolicy::Linear): the score of a rung is the sum of weights times [`Feature`]s; the rung with the
//!   highest score is chosen.
//!
//! [`train`](fn@train) finds weights, [`compare`](fn@compare) runs policies over the same traces, and [`Study`] has the
//! settings of both. [`live`] applies the policies to the live view of a query.

mod baseline;
mod compare;
mod linear;
pub mod live;
mod predictive;
mod steady;
mod study;
mod train;

#[cfg(test)]
mod tests;

use crate::bitrate::{Chunk, ScoreWeights, Session};

pub use compare::{PolicyResults, Setting, Spread, compare, made_traces, play_session};
pub use linear::{FEATURES, Feature, Weights, WeightsError};
pub use study::Study;
pub use train::{Training, train};

/// Number of downloads that are remembered.
const REMEMBERED: usize = 8;
/// Number of downloads in the harmonic mean.
const MEAN_OF: usize = 5;
/// Number of chunks in the look-ahead.
pub(crate) const AHEAD: usize = 5;

/// State that a policy sees before it chooses a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Bitrates of the rungs in Mbit/s, from the lowest.
    pub ladder: &'a [f64],
    /// Sizes of the next chunks in bytes, by chunk and rung, the next chunk first; at least one chunk.
    pub sizes: &'a [&'a [f64]],
    /// Length of a chunk in seconds.
    pub chunk_seconds: f64,
    /// Seconds of video in the buffer.
    pub buffer: f64,
    /// Capacity of the buffer in seconds.
    pub buffer_limit: f64,
    /// Rung of the previous chunk.
    pub last_rung: usize,
    /// Throughput of the last downloads.
    pub measured: &'a Measured,
    /// Coefficients of the score of a chunk.
    pub quality: ScoreWeights,
}

/// Throughput of the last downloads and the errors of its predictions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Throughput of each download in Mbit/s, the last one at the end.
    rates: Vec<f64>,
    /// Relative error of the prediction before each download, as a fraction of the measured value.
    errors: Vec<f64>,
}

impl Measured {
    /// Records a download with a throughput of `rate` Mbit/s.
    pub fn add(&mut self, rate: f64) {
        let rate = rate.max(1e-6);
        if let Some(predicted) = self.mean() {
            self.errors.push((predicted - rate).abs() / rate);
        }
        self.rates.push(rate);
        for list in [&mut self.rates, &mut self.errors] {
            if list.len() > REMEMBERED {
                list.remove(0);
            }
        }
    }

    /// Returns the harmonic mean of the last downloads in Mbit/s; `None` before the first.
    pub fn mean(&self) -> Option<f64> {
        let last = &self.rates[self.rates.len().saturating_sub(MEAN_OF)..];
        (!last.is_empty()).then(|| last.len() as f64 / last.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }

    /// Returns the harmonic mean of the last downloads, lowered by the largest error of the last predictions; `None`
    /// before the first.
    pub fn robust_mean(&self) -> Option<f64> {
        let last = &self.errors[self.errors.len().saturating_sub(MEAN_OF)..];
        Some(self.mean()? / (1.0 + last.iter().copied().fold(0.0, f64::max)))
    }
}

/// A policy that chooses bitrates.
#[derive(Clone, Debug, PartialEq)]
pub enum BitratePolicy {
    /// Always chooses this rung.
    Fixed(usize),
    /// BBA-0: chooses by the buffer.
    Buffer,
    /// BBA-1: chooses by the buffer and the sizes of chunks.
    BufferSizes,
    /// Chooses by the harmonic mean of the last downloads.
    Rate,
    /// RobustMPC: predicts the next chunks.
    Predictive,
    /// Chooses the highest sum of weights times features.
    Linear(Weights),
}

impl BitratePolicy {
    /// Returns the name of the policy in tables.
    pub fn name(&self) -> String {
        match self {
            BitratePolicy::Fixed(rung) => format!("fixed {rung}"),
            BitratePolicy::Buffer => "BBA-0".to_owned(),
            BitratePolicy::BufferSizes => "BBA-1".to_owned(),
            BitratePolicy::Rate => "rate".to_owned(),
            BitratePolicy::Predictive => "RobustMPC".to_owned(),
            BitratePolicy::Linear(_) => "linear".to_owned(),
        }
    }

    /// Chooses the rung of a session's next chunk.
    pub fn next(&self, session: &Session, measured: &Measured) -> usize {
        let movie = session.movie();
        let number = movie.chunks() - session.left();
        let sizes: Vec<&[f64]> = (number..number + AHEAD).map_while(|chunk| movie.sizes(chunk)).collect();
        if sizes.is_empty() {
            return 0;
        }
        self.choose(&Observation {
            ladder: movie.bitrates(),
            sizes: &sizes,
            chunk_seconds: movie.chunk_seconds(),
            buffer: session.buffer(),
            buffer_limit: session.buffer_limit(),
            last_rung: session.last_rung(),
            measured,
            quality: session.quality(),
        })
    }

    /// Chooses the rung of the next chunk; it is always one of the ladder.
    pub fn choose(&self, view: &Observation<'_>) -> usize {
        let rung = match self {
            BitratePolicy::Fixed(rung) => *rung,
            BitratePolicy::Buffer => baseline::buffer(view),
            BitratePolicy::BufferSizes => baseline::buffer_sizes(view),
            BitratePolicy::Rate => baseline::rate(view),
            BitratePolicy::Predictive => predictive::robust(view),
            BitratePolicy::Linear(weights) => weights.choose(view),
        };
        rung.min(view.ladder.len().saturating_sub(1))
    }
}

/// Plays a session to its end and calls `each` with the result of each chunk.
fn play(kind: &BitratePolicy, session: &mut Session, mut each: impl FnMut(&Chunk)) {
    let mut measured = Measured::default();
    while let Some(chunk) = session.step(kind.next(session, &measured)) {
        measured.add(chunk.throughput);
        each(&chunk);
    }
}
