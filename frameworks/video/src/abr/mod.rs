//! Policies that choose the bitrate of the next chunk: baselines that were published, and a linear one whose weights
//! can be read (after ABRL, "Real-world video adaptation with reinforcement learning", 2020). Nothing is downloaded
//! here.
//!
//! - [`Buffer`](Kind::Buffer) and [`BufferSizes`](Kind::BufferSizes): BBA-0 and BBA-1 ("A buffer-based approach to rate
//!   adaptation", SIGCOMM 2014);
//! - [`Rate`](Kind::Rate): the highest bitrate below the harmonic mean of the last downloads;
//! - [`Predictive`](Kind::Predictive): RobustMPC ("A control-theoretic approach for dynamic adaptive video streaming",
//!   SIGCOMM 2015), five chunks ahead;
//! - [`Linear`](Kind::Linear): each rung has a score, weights times [`Feature`]s, and the highest is taken.
//!
//! [`train`](fn@train) finds weights, [`compare`](fn@compare) runs policies over the same traces, [`Study`] has the
//! settings of both, and [`live`] is what the live view of a query makes of it.

mod baseline;
mod compare;
mod linear;
pub mod live;
mod predictive;
mod study;
mod train;

#[cfg(test)]
mod tests;

use crate::bitrate::{Chunk, Quality, Session};

pub use compare::{Compared, Setting, Spread, compare, made_traces, watch};
pub use linear::{FEATURES, Feature, Weights, WeightsError};
pub use study::Study;
pub use train::{Training, train};

/// Downloads that are remembered.
const REMEMBERED: usize = 8;
/// Downloads of which the harmonic mean is taken.
const MEAN_OF: usize = 5;
/// Chunks that are looked ahead.
pub(crate) const AHEAD: usize = 5;

/// What a policy sees before a chunk.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The bitrates in Mbit/s, from the lowest.
    pub ladder: &'a [f64],
    /// Bytes of the next chunks in each rung, the next one first; one at least.
    pub sizes: &'a [&'a [f64]],
    /// Seconds of a chunk.
    pub chunk_seconds: f64,
    /// Seconds of video in the buffer.
    pub buffer: f64,
    /// Seconds that it holds.
    pub buffer_limit: f64,
    /// The rung before.
    pub last_rung: usize,
    /// What was measured.
    pub measured: &'a Measured,
    /// What chunks are worth.
    pub quality: Quality,
}

/// The last downloads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Mbit/s, the last one at the end.
    rates: Vec<f64>,
    /// How far the prediction before each was off, as a part of what was measured.
    errors: Vec<f64>,
}

impl Measured {
    /// A download of this many Mbit/s.
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

    /// The harmonic mean of the last downloads in Mbit/s; none before the first.
    pub fn mean(&self) -> Option<f64> {
        let last = &self.rates[self.rates.len().saturating_sub(MEAN_OF)..];
        (!last.is_empty()).then(|| last.len() as f64 / last.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }

    /// The same, lower by the largest error of the last predictions.
    pub fn careful(&self) -> Option<f64> {
        let last = &self.errors[self.errors.len().saturating_sub(MEAN_OF)..];
        Some(self.mean()? / (1.0 + last.iter().copied().fold(0.0, f64::max)))
    }
}

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Always this rung.
    Fixed(usize),
    /// BBA-0: by the buffer.
    Buffer,
    /// BBA-1: by the buffer and the sizes of chunks.
    BufferSizes,
    /// By the harmonic mean of the last downloads.
    Rate,
    /// RobustMPC.
    Predictive,
    /// Weights times features.
    Linear(Weights),
}

impl Kind {
    /// Its name in tables.
    pub fn name(&self) -> String {
        match self {
            Kind::Fixed(rung) => format!("fixed {rung}"),
            Kind::Buffer => "BBA-0".to_owned(),
            Kind::BufferSizes => "BBA-1".to_owned(),
            Kind::Rate => "rate".to_owned(),
            Kind::Predictive => "RobustMPC".to_owned(),
            Kind::Linear(_) => "linear".to_owned(),
        }
    }

    /// The rung of a session's next chunk.
    pub fn next(&self, session: &Session, measured: &Measured) -> usize {
        let movie = session.movie();
        let number = movie.chunks() - session.left();
        let sizes: Vec<&[f64]> = (number..number + AHEAD).map_while(|chunk| movie.sizes(chunk)).collect();
        if sizes.is_empty() {
            return 0;
        }
        self.choose(&View {
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

    /// The rung of the next chunk; one of the ladder.
    pub fn choose(&self, view: &View<'_>) -> usize {
        let rung = match self {
            Kind::Fixed(rung) => *rung,
            Kind::Buffer => baseline::buffer(view),
            Kind::BufferSizes => baseline::buffer_sizes(view),
            Kind::Rate => baseline::rate(view),
            Kind::Predictive => predictive::robust(view),
            Kind::Linear(weights) => weights.choose(view),
        };
        rung.min(view.ladder.len().saturating_sub(1))
    }
}

/// Watches a session to its end; what came of each chunk.
fn play(kind: &Kind, session: &mut Session, mut each: impl FnMut(&Chunk)) {
    let mut measured = Measured::default();
    while let Some(chunk) = session.step(kind.next(session, &measured)) {
        measured.add(chunk.throughput);
        each(&chunk);
    }
}
