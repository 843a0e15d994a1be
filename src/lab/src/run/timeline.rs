//! External events of a run in the order of time: arrivals, starts and ends of windows, samples.
//!
//! The timeline serves modelled worlds and real clusters, and does not depend on either.

use std::time::Duration;

use resources::Quantities;

use super::sampler::{Head, Sampler};
use super::source::Sources;
use crate::bundled::Diary;
use crate::measure::{Outcome, Recorder, Series};
use crate::scenario::{PreparedFramework, Scenario};

/// The external events that were handled in a step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Frameworks with new work.
    pub submitted: Vec<usize>,
    /// Whether a sample was taken.
    pub looked: bool,
}

/// The external events of a run.
pub(crate) struct Timeline {
    sources: Sources,
    sampler: Sampler,
    /// Events that bundled frameworks report, by framework.
    diaries: Vec<Diary>,
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
        let diaries = frameworks.iter().map(|framework| framework.diary.clone()).collect();
        let sources = Sources::new(scenario, frameworks, &total);
        Timeline {
            sources,
            sampler,
            diaries,
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
    pub fn step(&mut self, at: Duration, books: &mut Recorder) -> Step {
        while let Some(edge) = self.edges.pop_if(|edge| *edge <= at) {
            self.sampler.edge(edge, books);
        }
        let mut step = Step { submitted: self.sources.submit(books, at), looked: false };
        if self.next_sample <= at {
            self.read(books);
            self.sampler.sample(at, books);
            self.next_sample = at + self.sample;
            self.sources.look(books, at);
            self.done = self.sources.is_dry() && books.all_done();
            step.looked = true;
        }
        step
    }

    /// Adds the events of bundled frameworks to the records.
    fn read(&self, books: &mut Recorder) {
        for (who, diary) in self.diaries.iter().enumerate() {
            diary.take().into_iter().for_each(|entry| books.said(who, entry));
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
    pub fn outcome(self, head: Head, books: &Recorder) -> Outcome {
        self.sampler.outcome(head, books, &self.sources)
    }
}
