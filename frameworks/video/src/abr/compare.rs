//! Compares policies over the same traces with the same seeds: means of the chunks, with confidence intervals over the
//! traces.

use std::sync::Arc;

use serde::Serialize;

use super::{BitratePolicy, play};
use crate::bitrate::{BitrateError, Markov, Movie, Network, ScoreWeights, Session, Trace};

/// The movie, the network and the score with which policies are compared.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Movie that is watched.
    pub movie: Arc<Movie>,
    /// Network and buffer of the player.
    pub network: Network,
    /// Coefficients of the score of a chunk.
    pub quality: ScoreWeights,
}

impl Setting {
    /// Returns the movie, the buffer and the score of Pensieve's comparison, with download times that vary by a tenth.
    pub fn movie(seed: u64) -> Setting {
        Setting {
            movie: Arc::new(Movie::like_pensieve(seed)),
            network: Network { noise: 0.1, ..Network::default() },
            quality: ScoreWeights::default(),
        }
    }
}

/// Means over the chunks of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SessionMeans {
    /// Mean score of a chunk.
    pub score: f64,
    /// Mean bitrate in Mbit/s.
    pub bitrate: f64,
    /// Mean rebuffering time for each chunk in seconds, without the initial delay.
    pub stall: f64,
    /// Mean difference between the bitrates of consecutive chunks, in Mbit/s.
    pub change: f64,
}

/// Plays the movie over a trace with a policy and returns the means over its chunks.
///
/// # Errors
/// Returns an error if a setting is invalid.
pub fn play_session(
    setting: &Setting,
    kind: &BitratePolicy,
    trace: &Arc<Trace>,
    seed: u64,
) -> Result<SessionMeans, BitrateError> {
    let mut session = Session::new(setting.movie.clone(), trace.clone(), setting.network, setting.quality, seed)?;
    let (mut sum, mut chunks) = (SessionMeans::default(), 0_u32);
    play(kind, &mut session, |chunk| {
        sum.score += chunk.score;
        sum.bitrate += chunk.bitrate;
        sum.change += chunk.change;
        sum.stall += if chunks == 0 { 0.0 } else { chunk.rebuffer };
        chunks += 1;
    });
    let count = f64::from(chunks.max(1));
    Ok(SessionMeans {
        score: sum.score / count,
        bitrate: sum.bitrate / count,
        stall: sum.stall / count,
        change: sum.change / count,
    })
}

/// A mean with half of its 95 % confidence interval over traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean of the values.
    pub mean: f64,
    /// Half of the confidence interval; 0 for a single trace.
    pub half: f64,
}

impl Spread {
    /// Returns the mean and the interval of the values; both are 0 for no values.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let (mean, half) = base::mean_and_interval(&values.collect::<Vec<_>>());
        Spread { mean, half }
    }
}

/// Results of one policy over all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyResults {
    /// Name of the policy.
    pub policy: String,
    /// Score of a chunk.
    pub score: Spread,
    /// Difference of the score to the first policy's on the same trace.
    pub above_first: Spread,
    /// Bitrate in Mbit/s.
    pub bitrate: Spread,
    /// Rebuffering time in seconds for each minute of video.
    pub stall: Spread,
    /// Change of bitrate between chunks, in Mbit/s.
    pub change: Spread,
}

/// Plays the movie over each trace with each policy. All policies get the same seeds.
///
/// # Errors
/// Returns an error if a setting is invalid.
pub fn compare(
    setting: &Setting,
    kinds: &[BitratePolicy],
    traces: &[Arc<Trace>],
) -> Result<Vec<PolicyResults>, BitrateError> {
    let mut all: Vec<(String, Vec<SessionMeans>)> = Vec::new();
    for kind in kinds {
        let means = (0_u64..).zip(traces).map(|(n, trace)| play_session(setting, kind, trace, base::scramble(n)));
        all.push((kind.name(), means.collect::<Result<_, _>>()?));
    }
    let minute = 60.0 / setting.movie.chunk_seconds();
    let first: Vec<f64> = all.first().map(|(_, first)| first.iter().map(|one| one.score).collect()).unwrap_or_default();
    Ok(all
        .into_iter()
        .map(|(policy, means)| PolicyResults {
            policy,
            score: Spread::of(means.iter().map(|one| one.score)),
            above_first: Spread::of(means.iter().zip(&first).map(|(one, first)| one.score - first)),
            bitrate: Spread::of(means.iter().map(|one| one.bitrate)),
            stall: Spread::of(means.iter().map(|one| one.stall * minute)),
            change: Spread::of(means.iter().map(|one| one.change)),
        })
        .collect())
}

/// Makes `count` traces; two traces of one seed always differ.
///
/// # Errors
/// Returns an error if the chain is invalid.
pub fn made_traces(markov: Markov, count: usize, seed: u64) -> Result<Vec<Arc<Trace>>, BitrateError> {
    (0..count as u64).map(|n| Trace::made(markov, base::scramble(seed).wrapping_add(n)).map(Arc::new)).collect()
}
