//! Computes the gradient of all weights from choices and their advantages.

use std::collections::BTreeMap;
use std::sync::Arc;

use dag::learned::{EmbeddedJob, Gradient, JobGradient, JobState, Network, WIDTH, evaluate, evaluate_limits};

use crate::rollout::Step;

/// Number of choices whose jobs are embedded once, since consecutive choices see mostly the same jobs.
const TOGETHER: usize = 64;

/// Slopes below this limit are sampled: every eighth counts, with eightfold weight. Most candidates are unlikely.
/// Omitting them all would let every score grow.
const LEAST: f32 = 2e-3;
const SPARSE: usize = 8;

/// Returns the slope with the weight with which it counts, or `None` if it is not sampled; `small` counts the small
/// slopes.
fn thinned(slope: f32, scale: f32, small: &mut usize) -> Option<f32> {
    if slope.abs() >= LEAST * scale {
        return Some(slope);
    }
    *small += 1;
    small.is_multiple_of(SPARSE).then_some(slope * SPARSE as f32)
}

/// The objective for a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Makes the choice more likely, because the teacher made it.
    Imitate,
    /// Makes the choice more likely in proportion to its advantage, within the limits of PPO.
    Reward {
        /// Advantage of the choice, scaled to deviation 1.
        advantage: f32,
        /// Limit of the change of the choice's probability relative to that in the rollout.
        clip: f32,
        /// Weight of the entropy in the objective.
        entropy: f32,
    },
}

/// Sums over the choices that were learned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of choices.
    pub count: f64,
    /// Sum of the entropies of both parts of a choice.
    pub entropy: f64,
    /// Sum of the negative logarithms of the probabilities of the choices.
    pub surprise: f64,
    /// Number of choices that PPO clipped, because their probability had changed enough.
    pub clipped: f64,
    /// Number of small slopes so far.
    small: usize,
}

impl Sums {
    /// Adds the sums of other choices.
    pub fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.entropy += other.entropy;
        self.surprise += other.surprise;
        self.clipped += other.clipped;
    }
}

/// Adds the gradient of these choices, each times `scale`, and returns their sums.
pub fn learn(
    network: &Network,
    steps: &[Step],
    goal: &dyn Fn(usize) -> Goal,
    scale: f32,
    gradient: &mut Gradient,
) -> Sums {
    let mut sums = Sums::default();
    for (chunk, steps) in steps.chunks(TOGETHER).enumerate() {
        let (mut places, mut jobs) = (BTreeMap::<*const JobState, usize>::new(), Vec::<EmbeddedJob>::new());
        for state in steps.iter().flat_map(|step| &step.chosen.situation.jobs) {
            places.entry(Arc::as_ptr(state)).or_insert_with(|| {
                jobs.push(network.embed(state));
                jobs.len() - 1
            });
        }
        let mut of_jobs: Vec<JobGradient> = jobs.iter().map(JobGradient::new).collect();
        for (at, step) in steps.iter().enumerate() {
            let seen: Vec<(&EmbeddedJob, usize)> = step
                .chosen
                .situation
                .jobs
                .iter()
                .map(|state| {
                    let place = places[&Arc::as_ptr(state)];
                    (&jobs[place], place)
                })
                .collect();
            one(network, step, &seen, (goal(chunk * TOGETHER + at), scale), gradient, &mut of_jobs, &mut sums);
        }
        for (job, of) in jobs.iter().zip(of_jobs) {
            gradient.of_job(job, of);
        }
    }
    sums
}

/// Returns the slopes by the scores of `-weight * log p(chosen) - entropy * H`.
fn slopes(logs: &[f32], chosen: usize, weight: f32, entropy: f32) -> Vec<f32> {
    let all: f32 = -logs.iter().map(|log| log.exp() * log).sum::<f32>();
    let slope = |(place, log): (usize, &f32)| {
        let p = log.exp();
        let is = if place == chosen { 1.0 } else { 0.0 };
        weight * (p - is) + entropy * p * (log + all)
    };
    logs.iter().enumerate().map(slope).collect()
}

fn one(
    network: &Network,
    step: &Step,
    seen: &[(&EmbeddedJob, usize)],
    (goal, scale): (Goal, f32),
    gradient: &mut Gradient,
    of_jobs: &mut [JobGradient],
    sums: &mut Sums,
) {
    let (situation, choice) = (&step.chosen.situation, step.chosen.choice);
    let jobs: Vec<&EmbeddedJob> = seen.iter().map(|(job, _)| *job).collect();
    let (whole, features, stages) = evaluate(network, situation, &jobs);
    let own = situation.candidates[choice.candidate].job as usize;
    let limits = evaluate_limits(network, situation, jobs[own], choice.candidate, (&whole, &features[own]));
    let log = stages.logs[choice.candidate] + limits.logs[choice.limit];
    sums.count += 1.0;
    sums.entropy += f64::from(stages.entropy() + limits.entropy());
    sums.surprise -= f64::from(log);
    let (weight, entropy) = match goal {
        Goal::Imitate => (1.0, 0.0),
        Goal::Reward { advantage, clip, entropy } => {
            let ratio = (log - step.chosen.log).exp();
            let is_far = if advantage > 0.0 { ratio > 1.0 + clip } else { ratio < 1.0 - clip };
            sums.clipped += f64::from(u8::from(is_far));
            (if is_far { 0.0 } else { advantage * ratio.min(10.0) }, entropy)
        }
    };
    let mut of_whole = [0.0; WIDTH];
    let of_stages = slopes(&stages.logs, choice.candidate, weight * scale, entropy * scale);
    for ((candidate, trace), slope) in situation.candidates.iter().zip(&stages.traces).zip(of_stages) {
        let Some(slope) = thinned(slope, scale, &mut sums.small) else { continue };
        let job = candidate.job as usize;
        let pair = (jobs[job], &mut of_jobs[seen[job].1]);
        let at = (&features[job], candidate.node as usize);
        gradient.of_stage(pair, at, (&whole, &mut of_whole), (slope, trace));
    }
    let of_limits = slopes(&limits.logs, choice.limit, weight * scale, entropy * scale);
    let known = situation.limits(choice.candidate);
    for (place, (trace, slope)) in limits.traces.iter().zip(of_limits).enumerate() {
        let Some(slope) = thinned(slope, scale, &mut sums.small) else { continue };
        let pair = (jobs[own], &mut of_jobs[seen[own].1]);
        gradient.of_limit(pair, (&features[own], known.at(place)), (&whole, &mut of_whole), (slope, trace));
    }
    gradient.of_whole(&whole, &of_whole, seen, of_jobs);
}
