//! Computes the probabilities of stages and limits in a situation. Only [`pick`] chooses.

use super::network::{EmbeddedJob, GlobalEmbedding, LIMIT, Network, STAGE};
use super::round::Situation;
use super::state::JOB;
use crate::study::random::Random;

/// The scores of alternatives as probabilities.
#[derive(Clone, Debug)]
pub struct Scored<const TRACE: usize> {
    /// Trace of each evaluation.
    pub traces: Vec<[f32; TRACE]>,
    /// Logarithm of the probability of each alternative.
    pub logs: Vec<f32>,
}

impl<const TRACE: usize> Scored<TRACE> {
    fn of(traces: Vec<[f32; TRACE]>) -> Scored<TRACE> {
        let mut logs: Vec<f32> = traces.iter().map(|trace| trace[TRACE - 1]).collect();
        let most = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logs.iter().map(|log| (log - most).exp()).sum();
        let all = most + sum.ln();
        logs.iter_mut().for_each(|log| *log -= all);
        Scored { traces, logs }
    }

    /// Returns the entropy `-sum p log p`.
    pub fn entropy(&self) -> f32 {
        -self.logs.iter().map(|log| log.exp() * log).sum::<f32>()
    }
}

/// Scores all candidates. `jobs` has the embeddings of [`Situation::jobs`].
pub fn evaluate(
    network: &Network,
    situation: &Situation,
    jobs: &[&EmbeddedJob],
) -> (GlobalEmbedding, Vec<[f32; JOB]>, Scored<{ STAGE.trace() }>) {
    let whole = network.whole(jobs.iter().copied());
    let features: Vec<[f32; JOB]> = (0..jobs.len() as u32).map(|job| situation.features(job)).collect();
    let mut traces = vec![[0.0; STAGE.trace()]; situation.candidates.len()];
    for (candidate, trace) in situation.candidates.iter().zip(&mut traces) {
        let job = candidate.job as usize;
        network.stage_score(jobs[job], &features[job], candidate.node as usize, &whole, trace);
    }
    (whole, features, Scored::of(traces))
}

/// Scores all limits of a candidate.
pub fn evaluate_limits(
    network: &Network,
    situation: &Situation,
    job: &EmbeddedJob,
    candidate: usize,
    (whole, features): (&GlobalEmbedding, &[f32; JOB]),
) -> Scored<{ LIMIT.trace() }> {
    let limits = situation.limits(candidate);
    let mut traces = vec![[0.0; LIMIT.trace()]; limits.count()];
    for (place, trace) in traces.iter_mut().enumerate() {
        network.limit_score(job, features, limits.at(place), whole, trace);
    }
    Scored::of(traces)
}

/// Returns the index of the most probable alternative, or of one drawn at random.
pub fn pick(logs: &[f32], random: Option<&mut Random>) -> usize {
    let Some(random) = random else {
        let best = (0..logs.len()).max_by(|a, b| logs[*a].total_cmp(&logs[*b]).then(b.cmp(a)));
        return best.unwrap_or(0);
    };
    let mut left = random.part();
    for (place, log) in logs.iter().enumerate() {
        left -= f64::from(log.exp());
        if left < 0.0 {
            return place;
        }
    }
    logs.len().saturating_sub(1)
}
