//! Gradients of the network: from the scores of decisions back to all weights. They are written by hand and checked
//! against finite differences. The objective is defined elsewhere.

use super::network::{
    EmbeddedJob, GlobalEmbedding, LIMIT, MESSAGE, Network, OF_JOB, OF_STAGE, PARTS, PREP, STAGE, TO_ALL, TO_JOB, TRACE,
    UPDATE, WEIGHTS, WIDTH, limit_inputs, stage_inputs,
};
use super::state::{JOB, NODE};

/// Gradients that are accumulated over decisions.
#[derive(Debug)]
pub struct Gradient {
    /// Gradient of each weight.
    pub weights: Vec<f32>,
    /// Weights of the network, ordered by outputs instead of inputs.
    transposed: Vec<f32>,
}

/// The gradient of a job's embeddings, accumulated over all decisions that used it.
#[derive(Clone, Debug)]
pub struct JobGradient {
    stages: Vec<f32>,
    job: [f32; WIDTH],
    is_used: bool,
}

impl JobGradient {
    /// Creates a gradient of zero for a job.
    pub fn new(job: &EmbeddedJob) -> JobGradient {
        JobGradient { stages: vec![0.0; job.state.len() * WIDTH], job: [0.0; WIDTH], is_used: false }
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

impl Gradient {
    /// Creates a gradient of zero for decisions of this network.
    pub fn new(network: &Network) -> Gradient {
        let mut transposed = vec![0.0; WEIGHTS];
        PARTS.iter().for_each(|part| part.transpose(&network.weights, &mut transposed));
        Gradient { weights: vec![0.0; WEIGHTS], transposed }
    }

    /// Adds the gradient of a stage's score with this slope.
    pub fn of_stage(
        &mut self,
        (job, of_job): (&EmbeddedJob, &mut JobGradient),
        (features, node): (&[f32; JOB], usize),
        (whole, of_whole): (&GlobalEmbedding, &mut [f32; WIDTH]),
        (slope, trace): (f32, &[f32; STAGE.trace()]),
    ) {
        let inputs = stage_inputs(job, features, node, whole);
        let mut of_inputs = [0.0; STAGE.inputs()];
        STAGE.back(&self.transposed, (&inputs, trace), &[slope], &mut self.weights, &mut of_inputs);
        let embeddings = &of_inputs[NODE + JOB..];
        add(&mut of_job.stages[node * WIDTH..(node + 1) * WIDTH], &embeddings[..WIDTH]);
        add(&mut of_job.job, &embeddings[WIDTH..2 * WIDTH]);
        add(of_whole, &embeddings[2 * WIDTH..]);
        of_job.is_used = true;
    }

    /// Adds the gradient of a limit's score with this slope.
    pub fn of_limit(
        &mut self,
        (job, of_job): (&EmbeddedJob, &mut JobGradient),
        (features, at): (&[f32; JOB], u32),
        (whole, of_whole): (&GlobalEmbedding, &mut [f32; WIDTH]),
        (slope, trace): (f32, &[f32; LIMIT.trace()]),
    ) {
        let inputs = limit_inputs(job, features, at, whole);
        let mut of_inputs = [0.0; LIMIT.inputs()];
        LIMIT.back(&self.transposed, (&inputs, trace), &[slope], &mut self.weights, &mut of_inputs);
        add(&mut of_job.job, &of_inputs[JOB..JOB + WIDTH]);
        add(of_whole, &of_inputs[JOB + WIDTH..JOB + 2 * WIDTH]);
        of_job.is_used = true;
    }

    /// Propagates the gradient of the summary of all jobs to each of them. `jobs` has each job's embedding and its
    /// index in `of_jobs`.
    pub fn of_whole(
        &mut self,
        whole: &GlobalEmbedding,
        of_whole: &[f32; WIDTH],
        jobs: &[(&EmbeddedJob, usize)],
        of_jobs: &mut [JobGradient],
    ) {
        let mut of_total = [0.0; WIDTH];
        TO_ALL.back(&self.transposed, (&whole.total, &whole.all), of_whole, &mut self.weights, &mut of_total);
        for (at, (job, place)) in jobs.iter().enumerate() {
            let trace = &whole.parts[at * TRACE..(at + 1) * TRACE];
            let of_job = &mut of_jobs[*place];
            OF_JOB.back(&self.transposed, (job.job(), trace), &of_total, &mut self.weights, &mut of_job.job);
            of_job.is_used = true;
        }
    }

    /// Propagates the gradient of a job's embeddings to the weights.
    pub fn of_job(&mut self, job: &EmbeddedJob, mut of: JobGradient) {
        if !of.is_used {
            return;
        }
        let (weights, state) = (&self.transposed, &job.state);
        let mut of_total = [0.0; WIDTH];
        TO_JOB.back(weights, (&job.total, &job.job), &of.job, &mut self.weights, &mut of_total);
        let mut of_messages = vec![0.0; state.len() * WIDTH];
        // Parents come first, so a stage has received the gradients of all its parents when it is processed.
        for node in 0..state.len() {
            let (trace, width) = (node * TRACE..(node + 1) * TRACE, node * WIDTH..(node + 1) * WIDTH);
            let mut of_stage = [0.0; WIDTH];
            of_stage.copy_from_slice(&of.stages[width.clone()]);
            let stage = job.stage(node);
            let parts = &job.parts[trace.clone()];
            OF_STAGE.back(weights, (stage, parts), &of_total, &mut self.weights, &mut of_stage);
            let of_message = &of_messages[width.clone()];
            if of_message.iter().any(|slope| *slope != 0.0) {
                let messages = &job.messages[trace.clone()];
                MESSAGE.back(weights, (stage, messages), of_message, &mut self.weights, &mut of_stage);
            }
            if !state.children(node).is_empty() {
                let mut of_sum = [0.0; WIDTH];
                let (sum, updates) = (&job.sums[width.clone()], &job.updates[trace.clone()]);
                UPDATE.back(weights, (sum, updates), &of_stage, &mut self.weights, &mut of_sum);
                for child in state.children(node) {
                    let at = *child as usize * WIDTH;
                    add(&mut of_messages[at..at + WIDTH], &of_sum);
                }
            }
            PREP.back(weights, (state.node(node), &job.prep[trace]), &of_stage, &mut self.weights, &mut [0.0; NODE]);
        }
        of.stages.clear();
    }
}
