//! The network's view of a job: scaled features of the stages that are not done, and their graph. It decides nothing.

use crate::order::{Job, Ready};

/// Number of features of a stage.
pub const NODE: usize = 6;

/// Number of features of a job at a decision.
pub const JOB: usize = 5;

/// Names of the features of a stage, in their order.
pub const NODE_NAMES: [&str; NODE] = ["executors", "work", "tasks", "duration", "running", "ready"];

/// Names of the features of a job, in their order.
pub const JOB_NAMES: [&str; JOB] = ["executors", "local", "free", "all executors", "remaining work"];

/// Longest chain of stages along which messages are passed (as in Decima's public code).
const DEPTH: u32 = 8;

/// A job as the network sees it. Equal states have equal embeddings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobState {
    /// Features, [`NODE`] for each stage that is not done.
    pub features: Vec<f32>,
    /// Index in the job of each of these stages.
    pub stages: Vec<u32>,
    /// For each of these stages, the index in `children` of its first child; one more entry at the end.
    pub starts: Vec<u32>,
    /// Children as indices among these stages; a stage beyond the depth limit has none.
    pub children: Vec<u32>,
    /// Number of executors that the job has.
    pub held: u32,
    /// Task-milliseconds of work that the job has left.
    pub remaining: u64,
}

/// Scales a value: as a logarithm for large values, and linearly for small ones.
fn compress(value: f64, unit: f64, scale: f64) -> f32 {
    ((value / unit).ln_1p() / scale) as f32
}

/// Scales an amount of work in milliseconds.
fn work(millis: u64) -> f32 {
    compress(millis as f64, 10_000.0, 3.0)
}

impl JobState {
    /// Returns the state of a job during a decision that has assigned some of its tasks already. `tasks` has the tasks
    /// that are left of each stage; `ready` returns whether a stage can get executors.
    pub fn of(job: &Job, tasks: &[u32], held: u32, ready: impl Fn(usize) -> Ready) -> JobState {
        let mut state = JobState { held, ..JobState::default() };
        // Index of each stage among those that are not done.
        let mut places = vec![u32::MAX; job.stages.len()];
        for (at, stage) in job.stages.iter().enumerate() {
            if stage.is_done() {
                continue;
            }
            places[at] = state.stages.len() as u32;
            state.stages.push(at as u32);
            let left = tasks.get(at).copied().unwrap_or(0);
            let running = stage.running.saturating_add(stage.tasks.saturating_sub(left));
            state.remaining = state.remaining.saturating_add(stage.remaining());
            state.features.extend([
                held as f32 / 20.0,
                work(stage.remaining()),
                compress(f64::from(left), 10.0, 2.0),
                compress(stage.duration as f64, 1000.0, 2.0),
                running as f32 / 20.0,
                match ready(at) {
                    Ready::Now => 1.0,
                    Ready::Soon => 0.5,
                    Ready::No => 0.0,
                },
            ]);
        }
        state.connect(job, &places);
        state
    }

    /// Fills in the children. Parents come before their children.
    fn connect(&mut self, job: &Job, places: &[u32]) {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (child, stage) in self.stages.iter().enumerate() {
            let parents = job.stages[*stage as usize].parents.iter();
            let open = parents.filter_map(|parent| places.get(*parent as usize).filter(|place| **place != u32::MAX));
            edges.extend(open.map(|parent| (*parent, child as u32)).filter(|(parent, child)| parent < child));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut heights = vec![0_u32; self.stages.len()];
        for (parent, child) in edges.iter().rev() {
            heights[*parent as usize] = heights[*parent as usize].max(heights[*child as usize] + 1);
        }
        self.starts = Vec::with_capacity(self.stages.len() + 1);
        let mut edges = edges.into_iter().peekable();
        for (parent, height) in heights.into_iter().enumerate() {
            self.starts.push(self.children.len() as u32);
            while let Some((_, child)) = edges.next_if(|(from, _)| *from as usize == parent) {
                if height <= DEPTH {
                    self.children.push(child);
                }
            }
        }
        self.starts.push(self.children.len() as u32);
    }

    /// Returns the number of stages that are not done.
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// Returns whether all stages are done.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Returns the features of a stage.
    pub fn node(&self, node: usize) -> &[f32] {
        &self.features[node * NODE..(node + 1) * NODE]
    }

    /// Returns the children of a stage.
    pub fn children(&self, node: usize) -> &[u32] {
        &self.children[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Returns the features of the job at a decision on `free` of `executors`.
    pub fn job(&self, is_source: bool, free: u32, executors: u32) -> [f32; JOB] {
        [
            self.held as f32 / 20.0,
            if is_source { 1.0 } else { -1.0 },
            free as f32 / 20.0,
            executors as f32 / 50.0,
            work(self.remaining),
        ]
    }
}

/// Returns the feature of a limit.
pub fn limit(limit: u32) -> f32 {
    limit as f32 / 50.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Stage;

    #[test]
    fn stages_that_are_done_are_left_out_and_children_found() {
        let stage =
            |tasks, parents: &[u32]| Stage { tasks, duration: 1000, parents: parents.into(), ..Stage::default() };
        let stages = vec![stage(0, &[]), stage(2, &[0]), stage(3, &[0]), stage(1, &[1, 2])];
        let job = Job { id: 1, arrival: 0, class: 0, weight: 1000, deadline: None, held: 4, stages };
        let state = JobState::of(&job, &[0, 2, 3, 1], 4, |_| Ready::Now);
        assert_eq!(state.stages, [1, 2, 3]);
        assert_eq!((state.children(0), state.children(1), state.children(2)), (&[2][..], &[2][..], &[][..]));
        assert_eq!((state.remaining, state.node(0)[0], state.node(0)[5]), (6000, 0.2, 1.0));
    }

    #[test]
    fn long_chains_pass_messages_to_a_depth_only() {
        let stage = |at: u32| Stage { tasks: 1, parents: at.checked_sub(1).into_iter().collect(), ..Stage::default() };
        let job = Job {
            id: 1,
            arrival: 0,
            class: 0,
            weight: 1000,
            deadline: None,
            held: 0,
            stages: (0..12).map(stage).collect(),
        };
        let state = JobState::of(&job, &[1; 12], 0, |_| Ready::No);
        let with: Vec<usize> = (0..12).filter(|node| !state.children(*node).is_empty()).collect();
        assert_eq!(with, [3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
