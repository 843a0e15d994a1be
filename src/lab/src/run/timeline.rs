//! External events of a run in the order of time: arrivals, starts and ends of windows, samples.
//!
//! The timeline serves modelled worlds and real clusters, and does not depend on either.

use std::time::Duration;

use resources::Quantities;

use super::sampler::{OutcomeHeader, Sampler};
use super::source::Sources;
use crate::bundled::EventLog;
use crate::measure::{Outcome, Recorder, Series};
use crate::scenario::{PreparedFramework, Scenario};

/// The external events that were handled in a step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Frameworks with new work.
    pub submitted: Vec<usize>,
    /// Whether a sample was taken.
    pub sampled: bool,
}

/// The external events of a run.
pub(crate) struct Timeline {
    sources: Sources,
    sampler: Sampler,
    /// Events that bundled frameworks report, by framework.
    event_logs: Vec<EventLog>,
    /// Beginnings and ends of windows, the last ones first.
    edges: Vec<Duration>,
    next_sample: Duration,
    sample: Duration,
    end: Duration,
    until_done: bool,
    done: bool,
}

impl Timeline {
    /// Creates the timeline of a scenario on a cluster with these total resources.
    pub fn new(scenario: &Scenario, frameworks: Vec<PreparedFramework>, total: Quantities) -> Timeline {
        let sampler = Sampler::new(scenario, total.clone(), &frameworks);
        let mut edges = sampler.edges();
        edges.sort_unstable_by(|a, b| b.cmp(a));
        edges.dedup();
        let event_logs = frameworks.iter().map(|framework| framework.event_log.clone()).collect();
        let sources = Sources::new(scenario, frameworks, &total);
        Timeline {
            sources,
            sampler,
            event_logs,
            edges,
            next_sample: Duration::ZERO,
            sample: scenario.sample.0,
            end: scenario.duration.0,
            until_done: scenario.until_done,
            done: false,
        }
    }

    /// Returns when the next event is due; `None` after the end of the run.
    pub fn next_at(&self) -> Option<Duration> {
        let job = self.sources.next_at();
        let next = job.into_iter().chain(self.edges.last().copied()).chain([self.next_sample]).min();
        next.filter(|at| *at <= self.end)
    }

    /// Handles the events that are due by this time.
    pub fn step(&mut self, at: Duration, recorder: &mut Recorder) -> Step {
        while let Some(edge) = self.edges.pop_if(|edge| *edge <= at) {
            self.sampler.edge(edge, recorder);
        }
        let mut step = Step { submitted: self.sources.submit(recorder, at), sampled: false };
        if self.next_sample <= at {
            self.read(recorder);
            self.sampler.sample(at, recorder);
            self.next_sample = at + self.sample;
            self.sources.look(recorder, at);
            self.done = self.sources.is_exhausted() && recorder.all_done();
            step.sampled = true;
        }
        step
    }

    /// Adds the events of bundled frameworks to the records.
    fn read(&self, recorder: &mut Recorder) {
        for (framework, event_log) in self.event_logs.iter().enumerate() {
            event_log.take().into_iter().for_each(|entry| recorder.record_event(framework, entry));
        }
    }

    /// Returns whether every job had arrived and ended at the last sample.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns whether all jobs are done and the scenario ends with them.
    pub fn is_over(&self) -> bool {
        self.until_done && self.done
    }

    /// Returns the samples so far.
    pub fn series(&self) -> &Series {
        self.sampler.series()
    }

    /// Returns the outcome of the run.
    pub fn outcome(self, head: OutcomeHeader, recorder: &Recorder) -> Outcome {
        self.sampler.outcome(head, recorder, &self.sources)
    }
}
