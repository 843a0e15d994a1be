//! The network of Decima (SIGCOMM 2019): embeddings of stages, of jobs and of the whole, and scores of stages and
//! limits. It knows features, and neither jobs nor clusters. [`Network::new`] draws weights; other weights come from
//! training.
//!
//! `e_v = g(sum f(e_w)) + prep(x_v)` over the children `w` of a stage, `y_i = g'(sum f'(e_v))` over the stages of a
//! job, `z = g''(sum f''(y_i))` over the jobs. What changes with every decision (free executors, locality) is an input
//! of the scores only, so that the embedding of a job stays as long as the job does.

use std::sync::Arc;

use super::mlp::Mlp;
use super::state::{JOB, JobState, NODE, limit};
use crate::study::random::Random;

/// Width of an embedding.
pub const WIDTH: usize = 8;

pub(super) const PREP: Mlp = Mlp::embedding("prep", 0, NODE);
pub(super) const MESSAGE: Mlp = Mlp::embedding("message", PREP.end(), WIDTH);
pub(super) const UPDATE: Mlp = Mlp::embedding("update", MESSAGE.end(), WIDTH);
pub(super) const OF_STAGE: Mlp = Mlp::embedding("of_stage", UPDATE.end(), WIDTH);
pub(super) const TO_JOB: Mlp = Mlp::embedding("to_job", OF_STAGE.end(), WIDTH);
pub(super) const OF_JOB: Mlp = Mlp::embedding("of_job", TO_JOB.end(), WIDTH);
pub(super) const TO_ALL: Mlp = Mlp::embedding("to_all", OF_JOB.end(), WIDTH);
pub(super) const STAGE: Mlp = Mlp::score("stage", TO_ALL.end(), NODE + JOB + 3 * WIDTH);
pub(super) const LIMIT: Mlp = Mlp::score("limit", STAGE.end(), JOB + 2 * WIDTH + 1);

/// All perceptrons of the network, in the order of their weights.
pub const PARTS: [Mlp; 9] = [PREP, MESSAGE, UPDATE, OF_STAGE, TO_JOB, OF_JOB, TO_ALL, STAGE, LIMIT];

/// Number of weights of the network.
pub const WEIGHTS: usize = LIMIT.end();

/// Length of the trace of an embedding's evaluation.
pub(super) const TRACE: usize = PREP.trace();

/// The weights of Decima's network.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// All [`WEIGHTS`] weights, in the order of [`PARTS`].
    pub weights: Vec<f32>,
}

/// A job with its embeddings, and the traces that their gradients need.
#[derive(Clone, Debug)]
pub struct EmbeddedJob {
    /// State of the job that was embedded.
    pub state: Arc<JobState>,
    pub(super) prep: Vec<f32>,
    pub(super) sums: Vec<f32>,
    pub(super) updates: Vec<f32>,
    /// Embeddings `e`, [`WIDTH`] numbers for each stage.
    pub(super) stages: Vec<f32>,
    pub(super) messages: Vec<f32>,
    pub(super) parts: Vec<f32>,
    pub(super) total: [f32; WIDTH],
    pub(super) job: [f32; TRACE],
}

impl EmbeddedJob {
    /// Returns the embedding `e` of a stage.
    pub fn stage(&self, node: usize) -> &[f32] {
        &self.stages[node * WIDTH..(node + 1) * WIDTH]
    }

    /// Returns the embedding `y` of the job.
    pub fn job(&self) -> &[f32] {
        &self.job[TRACE - WIDTH..]
    }
}

/// The summary of all jobs.
#[derive(Clone, Debug)]
pub struct GlobalEmbedding {
    pub(super) parts: Vec<f32>,
    pub(super) total: [f32; WIDTH],
    pub(super) all: [f32; TRACE],
}

impl GlobalEmbedding {
    /// Returns the embedding `z` of all jobs.
    pub fn all(&self) -> &[f32] {
        &self.all[TRACE - WIDTH..]
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

impl Network {
    /// Creates a network with weights drawn by Glorot's rule and biases of 0.
    pub fn new(seed: u64) -> Network {
        let mut random = Random::new(seed, "network");
        let mut weights = vec![0.0; WEIGHTS];
        for layer in PARTS.iter().flat_map(Mlp::layers) {
            let bound = (6.0 / (layer.inputs + layer.outputs) as f64).sqrt();
            let from = layer.first + layer.outputs;
            for weight in &mut weights[from..from + layer.inputs * layer.outputs] {
                *weight = ((2.0 * random.part() - 1.0) * bound) as f32;
            }
        }
        Network { weights }
    }

    /// Returns the embeddings of a job and its stages.
    pub fn embed(&self, state: &Arc<JobState>) -> EmbeddedJob {
        let count = state.len();
        let room = |width: usize| vec![0.0; count * width];
        let mut to = EmbeddedJob {
            state: state.clone(),
            prep: room(TRACE),
            sums: room(WIDTH),
            updates: room(TRACE),
            stages: room(WIDTH),
            messages: room(TRACE),
            parts: room(TRACE),
            total: [0.0; WIDTH],
            job: [0.0; TRACE],
        };
        let weights = &self.weights;
        for node in (0..count).rev() {
            let (trace, width) = (node * TRACE..(node + 1) * TRACE, node * WIDTH..(node + 1) * WIDTH);
            PREP.run(weights, state.node(node), &mut to.prep[trace.clone()]);
            let stage = &mut to.stages[width.clone()];
            stage.copy_from_slice(&to.prep[trace.end - WIDTH..trace.end]);
            if !state.children(node).is_empty() {
                let sum = &mut to.sums[width.clone()];
                for child in state.children(node) {
                    let end = (*child as usize + 1) * TRACE;
                    add(sum, &to.messages[end - WIDTH..end]);
                }
                UPDATE.run(weights, sum, &mut to.updates[trace.clone()]);
                add(stage, &to.updates[trace.end - WIDTH..trace.end]);
            }
            MESSAGE.run(weights, stage, &mut to.messages[trace.clone()]);
            OF_STAGE.run(weights, stage, &mut to.parts[trace.clone()]);
            add(&mut to.total, &to.parts[trace.end - WIDTH..trace.end]);
        }
        TO_JOB.run(weights, &to.total, &mut to.job);
        to
    }

    /// Returns the summary of these jobs.
    pub fn whole<'a>(&self, jobs: impl Iterator<Item = &'a EmbeddedJob>) -> GlobalEmbedding {
        let mut whole = GlobalEmbedding { parts: Vec::new(), total: [0.0; WIDTH], all: [0.0; TRACE] };
        for job in jobs {
            let mut part = [0.0; TRACE];
            OF_JOB.run(&self.weights, job.job(), &mut part);
            add(&mut whole.total, &part[TRACE - WIDTH..]);
            whole.parts.extend(part);
        }
        TO_ALL.run(&self.weights, &whole.total, &mut whole.all);
        whole
    }

    /// Returns the score of a stage of a job with these features, and fills `trace`.
    pub fn stage_score(
        &self,
        job: &EmbeddedJob,
        features: &[f32; JOB],
        node: usize,
        whole: &GlobalEmbedding,
        trace: &mut [f32; STAGE.trace()],
    ) -> f32 {
        STAGE.run(&self.weights, &stage_inputs(job, features, node, whole), trace);
        trace[STAGE.trace() - 1]
    }

    /// Returns the score of a limit for a job with these features, and fills `trace`.
    pub fn limit_score(
        &self,
        job: &EmbeddedJob,
        features: &[f32; JOB],
        at: u32,
        whole: &GlobalEmbedding,
        trace: &mut [f32; LIMIT.trace()],
    ) -> f32 {
        LIMIT.run(&self.weights, &limit_inputs(job, features, at, whole), trace);
        trace[LIMIT.trace() - 1]
    }
}

pub(super) fn stage_inputs(
    job: &EmbeddedJob,
    features: &[f32; JOB],
    node: usize,
    whole: &GlobalEmbedding,
) -> [f32; STAGE.inputs()] {
    let mut inputs = [0.0; STAGE.inputs()];
    let parts = [job.state.node(node), features, job.stage(node), job.job(), whole.all()];
    fill(&mut inputs, &parts);
    inputs
}

pub(super) fn limit_inputs(
    job: &EmbeddedJob,
    features: &[f32; JOB],
    at: u32,
    whole: &GlobalEmbedding,
) -> [f32; LIMIT.inputs()] {
    let mut inputs = [0.0; LIMIT.inputs()];
    fill(&mut inputs, &[features, job.job(), whole.all(), &[limit(at)]]);
    inputs
}

fn fill(inputs: &mut [f32], parts: &[&[f32]]) {
    let mut at = 0;
    for part in parts {
        inputs[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}
