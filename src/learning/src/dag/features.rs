//! Observations of jobs of stages as arrays: features of stages and jobs, edges and masks. This module decides nothing.
//!
//! The first five features of a stage are those of Decima's public code, with its scales.

use std::sync::Arc;

use dag::order::paths;
use dag::study::job::JobModel;

use super::pending::PendingDecision;
use crate::LearningError;
use crate::space::{Field, Row};

/// Number of features of a stage.
const NODE: usize = 8;

/// Number of features of a job.
const JOB: usize = 6;

/// Maximum number of edges, and of nodes, of an observation: both are stored as 16-bit numbers.
const MOST: usize = 32_000;

/// Indices of the fields.
const NODES: usize = 0;
const JOBS: usize = 1;
const GLOBAL: usize = 2;
const NODE_JOB: usize = 3;
const EDGES: usize = 4;
const LEAST_LIMIT: usize = 5;
const NODE_MASK: usize = 6;
const ACTION_MASK: usize = 7;

/// Sizes of the arrays of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Maximum number of visible jobs.
    pub jobs: usize,
    /// Maximum number of their stages.
    pub nodes: usize,
    edges: usize,
}

impl Layout {
    /// Creates the layout for this many visible jobs, each of which is one of `known`.
    pub fn new(known: &[Arc<JobModel>], jobs: usize) -> Result<Layout, LearningError> {
        let most = |of: &dyn Fn(&JobModel) -> usize| known.iter().map(|job| of(job)).max().unwrap_or(0);
        let edges = |job: &JobModel| job.stages.iter().map(|stage| stage.parents.len()).sum();
        let layout = Layout { jobs, nodes: jobs * most(&|job| job.stages.len()), edges: jobs * most(&edges) };
        match layout.nodes.max(layout.edges) {
            1..=MOST => Ok(layout),
            0 => Err(LearningError::setting("sizes", "must have queries")),
            _ => Err(LearningError::setting("visible", "must be fewer: a graph has 32,000 stages and edges at most")),
        }
    }

    /// Returns the arrays of an observation.
    pub fn fields(&self) -> Vec<Field> {
        let most = i16::try_from(self.nodes).unwrap_or(i16::MAX);
        vec![
            Field::floats("nodes", &[self.nodes, NODE]),
            Field::floats("jobs", &[self.jobs, JOB]),
            Field::floats("global", &[4]),
            Field::shorts("node_job", &[self.nodes], -1, self.jobs as i16 - 1),
            Field::shorts("edges", &[self.edges, 2], -1, most - 1),
            Field::shorts("least_limit", &[self.jobs], 0, i16::MAX),
            Field::mask("node_mask", &[self.nodes]),
            Field::mask("action_mask", &[self.nodes]),
        ]
    }

    /// Writes an observation into a row.
    pub fn write(&self, pending: &PendingDecision, row: &mut Row<'_>) {
        self.clear(row);
        let mut edges = 0;
        for job in 0..pending.held.len() {
            self.job(pending, job, &mut edges, row);
        }
        let observation = pending.observation();
        global(pending.free, observation.executors, observation.jobs.len(), observation.now, row);
    }

    /// Writes an observation without choices, for the end of an episode.
    pub fn write_end(&self, executors: u32, jobs: usize, now: u64, row: &mut Row<'_>) {
        self.clear(row);
        global(0, executors, jobs, now, row);
    }

    /// Writes that there are no stages and no edges.
    fn clear(&self, row: &mut Row<'_>) {
        row.shorts(NODE_JOB, 0, std::iter::repeat_n(-1, self.nodes));
        row.shorts(EDGES, 0, std::iter::repeat_n(-1, 2 * self.edges));
    }

    fn job(&self, pending: &PendingDecision, at: usize, edges: &mut usize, row: &mut Row<'_>) {
        let observation = pending.observation();
        let (job, first) = (&observation.jobs[at], pending.first[at]);
        let held = pending.held[at] as f32 / 20.0;
        let local = if pending.source == Some(at) { 2.0 } else { -2.0 };
        let free = pending.free as f32 / 20.0;
        let paths = paths(job);
        let mut left = 0.0;
        for (n, stage) in job.stages.iter().enumerate() {
            let node = &pending.nodes[first + n];
            let given = stage.tasks - node.tasks;
            let remaining = f64::from(node.tasks) * stage.duration as f64;
            left += remaining;
            let features = [
                held,
                local,
                free,
                (remaining / 1e5) as f32,
                node.tasks as f32 / 200.0,
                (stage.running + given) as f32 / 20.0,
                stage.duration as f32 / 1e4,
                (paths.work[n] as f64 / 1e6) as f32,
            ];
            row.floats(NODES, (first + n) * NODE, features);
            row.shorts(NODE_JOB, first + n, [at as i16]);
            row.mark(NODE_MASK, first + n);
            if pending.can_choose(node) {
                row.mark(ACTION_MASK, first + n);
            }
            for parent in &stage.parents {
                row.shorts(EDGES, 2 * *edges, [(first + *parent as usize) as i16, (first + n) as i16]);
                *edges += 1;
            }
        }
        let age = (observation.now - job.arrival.min(observation.now)) as f32 / 1e5;
        let length = paths.length.iter().max().copied().unwrap_or(0) as f32 / 1e5;
        row.floats(JOBS, at * JOB, [held, local, free, (left / 1e6) as f32, length, age]);
        row.shorts(LEAST_LIMIT, at, [i16::try_from(pending.held[at] + 1).unwrap_or(i16::MAX)]);
    }
}

/// Writes the features of the cluster.
fn global(free: u32, executors: u32, jobs: usize, now: u64, row: &mut Row<'_>) {
    row.floats(GLOBAL, 0, [free as f32, executors as f32, jobs as f32, now as f32 / 1000.0]);
}
