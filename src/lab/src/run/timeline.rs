//! External events of a run in the order of time: arrivals, starts and ends of windows, samples.
//!
//! It serves worlds and real clusters, and does not depend on either.

use std::time::Duration;

use resources::Quantities;

use super::sampler::{Head, Sampler};
use super::source::Sources;
use crate::bundled::Diary;
use crate::measure::{Outcome, Recorder, Series};
use crate::scenario::{PreparedFramework, Scenario};

/// What was done at a moment.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The frameworks for which there is new work.
    pub submitted: Vec<usize>,
    /// A sample was taken.
    pub looked: bool,
}

/// External events of a run.
pub(crate) struct Timeline {
    sources: Sources,
    sampler: Sampler,
    /// What bundled frameworks say of themselves, by framework.
    diaries: Vec<Diary>,
    /// Beginnings and ends of windows, the last first.
    edges: Vec<Duration>,
    next_sample: Duration,
    sample: Duration,
    end: Duration,
    until_done: bool,
    done: bool,
}

impl Timeline {
    /// The timeline of a scenario on a cluster that has `total`.
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

    /// When the next thing is due; none when the run's time is over.
    pub fn next_at(&self) -> Option<Duration> {
        let job = self.sources.next_at();
        let next = job.into_iter().chain(self.edges.last().copied()).chain([self.next_sample]).min();
        next.filter(|at| *at <= self.end)
    }

    /// Does what is due at this moment, or was before.
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

    /// Every job has arrived, and was done at the last sample.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// All is done, and that is what the scenario waits for.
    pub fn is_over(&self) -> bool {
        self.until_done && self.done
    }

    /// What was sampled until now.
    pub fn series(&self) -> &Series {
        self.sampler.series()
    }

    /// Sums up.
    pub fn outcome(self, head: Head, books: &Recorder) -> Outcome {
        self.sampler.outcome(head, books, &self.sources)
    }
}
