//! Trains weights by the cross-entropy method: candidates are drawn about a mean, all play the same sessions (common
//! random numbers), and the best of them make the next mean. Equal seeds give equal weights.

use super::Weights;
use super::compare::{Setting, play_session};
use super::linear::COUNT;
use crate::abr::BitratePolicy;
use crate::bitrate::{BitrateError, Trace};
use crate::random::SplitMix64;

/// Size and seed of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Number of rounds.
    pub rounds: u32,
    /// Number of candidates in a round.
    pub candidates: usize,
    /// Number of candidates that make the next mean.
    pub best: usize,
    /// Number of traces in a round; each round draws others.
    pub traces: usize,
    /// Seed of the training.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Training {
        Training { rounds: 80, candidates: 96, best: 12, traces: 80, seed: 1 }
    }
}

/// Smallest deviation, so that exploration continues to the end.
const DEVIATION_MIN: f64 = 0.02;

/// Trains weights on the given traces. Calls `each` with the round and the mean score of a chunk of its best
/// candidates.
///
/// # Errors
/// Returns an error if a setting is invalid.
pub fn train(
    setting: &Setting,
    traces: &[std::sync::Arc<Trace>],
    training: Training,
    mut each: impl FnMut(u32, f64),
) -> Result<Weights, BitrateError> {
    let mut rng = SplitMix64::new(base::scramble(training.seed ^ 0x7472_6169_6e00));
    // Starts from a rule of thumb: bitrate is good, stalls are bad.
    let mut mean: [f64; COUNT] = [1.0, -2.0, -1.0, 0.0, 0.0, -0.3, -0.3, 0.0];
    let mut deviation = [1.0; COUNT];
    for round in 0..training.rounds {
        let chosen: Vec<(usize, u64)> = (0..training.traces.min(traces.len()))
            .map(|_| (rng.below(traces.len() as u64) as usize, rng.bits()))
            .collect();
        let mut scored = Vec::with_capacity(training.candidates);
        for candidate in 0..training.candidates.max(2) {
            let drawn = std::array::from_fn(|n| mean[n] + deviation[n] * rng.normal());
            // The mean itself is one of the candidates.
            let weights = Weights(if candidate == 0 { mean } else { drawn });
            let kind = BitratePolicy::Linear(weights.clone());
            let mut score = 0.0;
            for (trace, seed) in &chosen {
                score += play_session(setting, &kind, &traces[*trace], *seed)?.score;
            }
            scored.push((score / chosen.len().max(1) as f64, weights));
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = &scored[..training.best.clamp(1, scored.len())];
        let count = best.len() as f64;
        for n in 0..COUNT {
            mean[n] = best.iter().map(|(_, weights)| weights.0[n]).sum::<f64>() / count;
            let variance = best.iter().map(|(_, weights)| (weights.0[n] - mean[n]).powi(2)).sum::<f64>() / count;
            deviation[n] = variance.sqrt().max(DEVIATION_MIN);
        }
        each(round, best.iter().map(|(score, _)| score).sum::<f64>() / count);
    }
    // Only the proportions of the weights matter: the largest becomes 1, so that two trainings can be compared.
    let largest = mean.iter().map(|weight| weight.abs()).fold(f64::MIN_POSITIVE, f64::max);
    Ok(Weights(mean.map(|weight| weight / largest)))
}
