//! Builds the observation of a cluster for a policy. It changes nothing.

use super::Source;
use super::run::Run;
use crate::order::{Amounts, Free, History, Job, Observation, Stage};

impl Run {
    /// Returns the observation for executors of this source.
    pub(super) fn observe(&self, source: Option<usize>, count: u32, history: &History) -> Observation {
        let jobs = self.active.iter().map(|job| self.observe_job(*job, source, count, history)).collect();
        Observation {
            now: self.now,
            executors: self.setup.executors,
            free: vec![Free { count, amounts: Amounts::default() }],
            source: source.map(|job| job as u64),
            moving_delay: self.setup.moving_delay,
            ahead: self.setup.ahead,
            jobs,
        }
    }

    fn observe_job(&self, job: usize, source: Option<usize>, count: u32, history: &History) -> Job {
        let model = &self.arrivals[job].job;
        let mut held = self.executors.of_job(job) + self.executors.to_job(job);
        for (from, commits) in &self.commits {
            let of = match from {
                Source::General => None,
                Source::Job(job) | Source::Node((job, _)) => Some(*job),
            };
            if of != Some(job) {
                held += commits.iter().filter(|(to, _)| to.is_some_and(|to| to.0 == job)).map(|(_, n)| n).sum::<u32>();
            }
        }
        if source == Some(job) {
            held = held.saturating_sub(count);
        }
        let stages = (0..).zip(&model.stages).map(|(at, stage)| {
            let state = self.stages[job][at];
            let coming =
                (self.committed((job, at)) + self.executors.to_node((job, at))).min(stage.tasks - state.started);
            let known = if self.setup.knows_durations { None } else { Some(history.expect(&stage.key)) };
            Stage {
                tasks: stage.tasks - state.started - coming,
                running: state.started - state.finished + coming,
                finished: state.finished,
                duration: known.map_or(stage.rough, |known| known.map_or(1000, |known| known as u64)),
                demand: stage.demand,
                parents: stage.parents.clone(),
            }
        });
        Job {
            id: job as u64,
            arrival: self.arrivals[job].at,
            class: 0,
            weight: 1000,
            held,
            deadline: None,
            stages: stages.collect(),
        }
    }
}
