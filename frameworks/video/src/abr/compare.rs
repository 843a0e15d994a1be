//! Policies over the same traces with the same seeds, and what came of each chunk in the mean, with intervals over
//! traces.

use std::sync::Arc;

use serde::Serialize;

use super::{Kind, play};
use crate::bitrate::{BitrateError, Markov, Movie, Network, Quality, Session, Trace};

/// What is watched, and through what.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The movie.
    pub movie: Arc<Movie>,
    /// The network and the buffer.
    pub network: Network,
    /// What chunks are worth.
    pub quality: Quality,
}

impl Setting {
    /// The movie, the buffer and the score of Pensieve's comparison, with downloads that vary by a tenth.
    pub fn movie(seed: u64) -> Setting {
        Setting {
            movie: Arc::new(Movie::like_pensieve(seed)),
            network: Network { noise: 0.1, ..Network::default() },
            quality: Quality::default(),
        }
    }
}

/// A session in the mean over its chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Watched {
    /// The score of a chunk.
    pub score: f64,
    /// The bitrate in Mbit/s.
    pub bitrate: f64,
    /// Seconds for which the video stood, for each chunk, without its beginning.
    pub stall: f64,
    /// The difference to the bitrate before, in Mbit/s.
    pub change: f64,
}

/// Watches the movie over a trace.
///
/// # Errors
/// A setting that breaks its rule.
pub fn watch(setting: &Setting, kind: &Kind, trace: &Arc<Trace>, seed: u64) -> Result<Watched, BitrateError> {
    let mut session = Session::new(setting.movie.clone(), trace.clone(), setting.network, setting.quality, seed)?;
    let (mut sum, mut chunks) = (Watched::default(), 0_u32);
    play(kind, &mut session, |chunk| {
        sum.score += chunk.score;
        sum.bitrate += chunk.bitrate;
        sum.change += chunk.change;
        sum.stall += if chunks == 0 { 0.0 } else { chunk.rebuffer };
        chunks += 1;
    });
    let count = f64::from(chunks.max(1));
    Ok(Watched {
        score: sum.score / count,
        bitrate: sum.bitrate / count,
        stall: sum.stall / count,
        change: sum.change / count,
    })
}

/// A mean with half of its 95 % interval over traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half of the interval; 0 for a single trace.
    pub half: f64,
}

impl Spread {
    /// Of these values; 0 of none.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let (mean, half) = base::mean_and_interval(&values.collect::<Vec<_>>());
        Spread { mean, half }
    }
}

/// A policy over all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its name.
    pub policy: String,
    /// The score of a chunk.
    pub score: Spread,
    /// By how much that is above the first policy's, trace by trace.
    pub above_first: Spread,
    /// The bitrate in Mbit/s.
    pub bitrate: Spread,
    /// Seconds of standing for each minute of video.
    pub stall: Spread,
    /// The change of bitrate between chunks, in Mbit/s.
    pub change: Spread,
}

/// Watches the movie over each trace with each policy. Seeds are the same for all policies.
///
/// # Errors
/// A setting that breaks its rule.
pub fn compare(setting: &Setting, kinds: &[Kind], traces: &[Arc<Trace>]) -> Result<Vec<Compared>, BitrateError> {
    let mut all: Vec<(String, Vec<Watched>)> = Vec::new();
    for kind in kinds {
        let watched = (0_u64..).zip(traces).map(|(n, trace)| watch(setting, kind, trace, base::scramble(n)));
        all.push((kind.name(), watched.collect::<Result<_, _>>()?));
    }
    let minute = 60.0 / setting.movie.chunk_seconds();
    let first: Vec<f64> = all.first().map(|(_, first)| first.iter().map(|one| one.score).collect()).unwrap_or_default();
    Ok(all
        .into_iter()
        .map(|(policy, watched)| Compared {
            policy,
            score: Spread::of(watched.iter().map(|one| one.score)),
            above_first: Spread::of(watched.iter().zip(&first).map(|(one, first)| one.score - first)),
            bitrate: Spread::of(watched.iter().map(|one| one.bitrate)),
            stall: Spread::of(watched.iter().map(|one| one.stall * minute)),
            change: Spread::of(watched.iter().map(|one| one.change)),
        })
        .collect())
}

/// Traces that are made, no two of one seed alike.
///
/// # Errors
/// A chain that breaks its rule.
pub fn made_traces(markov: Markov, count: usize, seed: u64) -> Result<Vec<Arc<Trace>>, BitrateError> {
    (0..count as u64).map(|n| Trace::made(markov, base::scramble(seed).wrapping_add(n)).map(Arc::new)).collect()
}
