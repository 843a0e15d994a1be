//! From choices and what they were worth to the gradient of all weights.

use std::collections::BTreeMap;
use std::sync::Arc;

use dag::learned::{Embedded, Gradient, JobState, Network, OfJob, WIDTH, evaluate, evaluate_limits};

use crate::rollout::Step;

/// Choices whose jobs are embedded once: the same jobs are there again and again.
const TOGETHER: usize = 64;

/// Of slopes below this only every eighth counts, eight times: most candidates are unlikely. Leaving them out would
/// let all scores grow.
const LEAST: f32 = 2e-3;
const SPARSE: usize = 8;

/// The slope as it counts; `small` counts the small ones.
fn thinned(slope: f32, scale: f32, small: &mut usize) -> Option<f32> {
    if slope.abs() >= LEAST * scale {
        return Some(slope);
    }
    *small += 1;
    small.is_multiple_of(SPARSE).then_some(slope * SPARSE as f32)
}

/// What a choice is to be changed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Make it likelier: it is the teacher's.
    Imitate,
    /// Make it likelier by this advantage, within the limits of PPO.
    Reward {
        /// Scaled.
        advantage: f32,
        /// How far the probability may go from that of the rollout.
        clip: f32,
        /// What the entropy counts.
        entropy: f32,
    },
}

/// Sums over the choices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Choices.
    pub count: f64,
    /// Of the entropy of both parts.
    pub entropy: f64,
    /// Of minus the logarithm of the probability.
    pub surprise: f64,
    /// Choices that counted no more, since they had changed enough.
    pub clipped: f64,
    /// Small slopes so far.
    small: usize,
}

impl Sums {
    /// Adds others.
    pub fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.entropy += other.entropy;
        self.surprise += other.surprise;
        self.clipped += other.clipped;
    }
}

/// Adds the gradient of these choices, each times `scale`.
pub fn learn(
    network: &Network,
    steps: &[Step],
    goal: &dyn Fn(usize) -> Goal,
    scale: f32,
    gradient: &mut Gradient,
) -> Sums {
    let mut sums = Sums::default();
    for (chunk, steps) in steps.chunks(TOGETHER).enumerate() {
        let (mut places, mut jobs) = (BTreeMap::<*const JobState, usize>::new(), Vec::<Embedded>::new());
        for state in steps.iter().flat_map(|step| &step.chosen.situation.jobs) {
            places.entry(Arc::as_ptr(state)).or_insert_with(|| {
                jobs.push(network.embed(state));
                jobs.len() - 1
            });
        }
        let mut of_jobs: Vec<OfJob> = jobs.iter().map(OfJob::new).collect();
        for (at, step) in steps.iter().enumerate() {
            let seen: Vec<(&Embedded, usize)> = step
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

/// The slopes of the scores: of `-weight * log p(chosen) - entropy * H`.
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
    seen: &[(&Embedded, usize)],
    (goal, scale): (Goal, f32),
    gradient: &mut Gradient,
    of_jobs: &mut [OfJob],
    sums: &mut Sums,
) {
    let (situation, choice) = (&step.chosen.situation, step.chosen.choice);
    let jobs: Vec<&Embedded> = seen.iter().map(|(job, _)| *job).collect();
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
