//! What comes to a run from outside, in the order of time: jobs arrive, windows begin and end, the books are looked at.
//!
//! It is the same for a world and for a real cluster, and knows neither.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::time::Duration;

use base::Time;
use resources::Quantities;

use super::sampler::{Head, Sampler};
use crate::measure::{Outcome, Recorder};
use crate::scenario::{Arrivals, PreparedFramework, Scenario};
use crate::users::{Inbox, Job};
use crate::world::BEGIN;

/// Where a framework's work comes from.
struct Source {
    inbox: Inbox,
    kinds: Vec<Peekable<Arrivals>>,
}

impl Source {
    /// When the next job arrives, after the beginning.
    fn next_at(&mut self) -> Option<Duration> {
        self.kinds.iter_mut().filter_map(|kind| kind.peek().map(|arrival| arrival.at)).min()
    }
}

/// What was done at a moment.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The frameworks for which there is new work.
    pub submitted: Vec<usize>,
    /// The books were looked at.
    pub looked: bool,
}

/// What comes to a run from outside.
pub(crate) struct Course {
    sources: Vec<Source>,
    sampler: Sampler,
    /// Beginnings and ends of windows, the last first.
    edges: Vec<Duration>,
    next_sample: Duration,
    /// When each framework's next job arrives.
    jobs: BinaryHeap<Reverse<(Duration, usize)>>,
    sample: Duration,
    end: Duration,
    until_done: bool,
    done: bool,
}

impl Course {
    /// The course of a scenario on a cluster that has `total`.
    pub fn new(scenario: &Scenario, frameworks: Vec<PreparedFramework>, total: Quantities) -> Course {
        let sampler = Sampler::new(scenario, total, &frameworks);
        let mut edges = sampler.edges();
        edges.sort_unstable_by(|a, b| b.cmp(a));
        edges.dedup();
        let source = |framework: PreparedFramework| Source {
            inbox: framework.inbox,
            kinds: framework.arrivals.into_iter().map(Iterator::peekable).collect(),
        };
        let mut sources: Vec<Source> = frameworks.into_iter().map(source).collect();
        let first = sources.iter_mut().enumerate().filter_map(|(who, source)| Some(Reverse((source.next_at()?, who))));
        let jobs = first.collect();
        Course {
            sources,
            sampler,
            edges,
            next_sample: Duration::ZERO,
            jobs,
            sample: scenario.sample.0,
            end: scenario.duration.0,
            until_done: scenario.until_done,
            done: false,
        }
    }

    /// When the next thing is due; none when the run's time is over.
    pub fn next_at(&self) -> Option<Duration> {
        let job = self.jobs.peek().map(|Reverse((at, _))| *at);
        let next = job.into_iter().chain(self.edges.last().copied()).chain([self.next_sample]).min();
        next.filter(|at| *at <= self.end)
    }

    /// Does what is due at this moment, or was before.
    pub fn step(&mut self, at: Duration, books: &mut Recorder) -> Step {
        while let Some(edge) = self.edges.pop_if(|edge| *edge <= at) {
            self.sampler.edge(edge, books);
        }
        let mut step = Step::default();
        while self.jobs.peek().is_some_and(|Reverse((due, _))| *due <= at)
            && let Some(Reverse((job_at, who))) = self.jobs.pop()
        {
            submit(books, &mut self.sources[who], who, job_at);
            step.submitted.push(who);
            self.jobs.extend(self.sources[who].next_at().map(|at| Reverse((at, who))));
        }
        if self.next_sample <= at {
            self.sampler.sample(at, books);
            self.next_sample = at + self.sample;
            self.done = self.jobs.is_empty() && books.all_done();
            step.looked = true;
        }
        step
    }

    /// Every job has arrived and was done when the books were looked at last.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// All is done, and that is what the scenario waits for.
    pub fn is_over(&self) -> bool {
        self.until_done && self.done
    }

    /// Sums up.
    pub fn outcome(self, head: Head, books: &Recorder) -> Outcome {
        self.sampler.outcome(head, books)
    }
}

/// All jobs of a framework that arrive now.
fn submit(books: &mut Recorder, source: &mut Source, who: usize, at: Duration) {
    let now: Time = BEGIN + at;
    for kind in &mut source.kinds {
        while let Some(arrival) = kind.next_if(|arrival| arrival.at <= at) {
            let tasks = arrival.spans.len() as u32;
            let first = books.submit(who, &arrival.needs, tasks, arrival.retries, now);
            source.inbox.borrow_mut().push_back(Job {
                first,
                needs: arrival.needs,
                spans: arrival.spans,
                gang: arrival.gang,
                retries: arrival.retries,
            });
        }
    }
}
