//! The work of a run: arrivals of jobs, through a queue manager if there is one.
//!
//! This decides when a job arrives; frameworks decide what happens to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::time::Duration;

use base::Time;
use resources::Quantities;

use crate::measure::{Recorder, Summary};
use crate::scenario::{Arrival, Arrivals, ManagerPart, PreparedFramework, PreparedJobs, Scenario};
use crate::users::{Inbox, Job, Manager};
use crate::world::BEGIN;

/// Jobs of one kind of one framework.
struct Kind {
    name: Option<String>,
    arrivals: Peekable<Arrivals>,
    chain: Option<Chain>,
    /// First task and arrival of each job, if jobs of this kind are measured separately.
    jobs: Vec<(u64, f64)>,
}

/// A chain of jobs, each of which waits for the one before.
struct Chain {
    pause: Duration,
    /// First task of the job that has not ended; `None` if the next one may arrive.
    waits_for: Option<u64>,
    /// Time of the next job's arrival.
    next: Duration,
}

impl Kind {
    fn new(jobs: PreparedJobs) -> Kind {
        let mut arrivals = jobs.arrivals.peekable();
        let begin = arrivals.peek().map_or(Duration::ZERO, |first| first.at);
        let chain = jobs.chain.map(|pause| Chain { pause, waits_for: None, next: begin });
        Kind { name: jobs.name, arrivals, chain, jobs: Vec::new() }
    }

    fn next_at(&mut self) -> Option<Duration> {
        let arrival = self.arrivals.peek()?.at;
        match &self.chain {
            None => Some(arrival),
            Some(chain) => chain.waits_for.is_none().then_some(chain.next),
        }
    }

    fn next(&mut self, at: Duration) -> Option<Arrival> {
        if self.next_at()? > at { None } else { self.arrivals.next() }
    }

    /// Returns whether the job has just ended that the next one waits for.
    fn look(&mut self, framework: usize, recorder: &Recorder, now: Duration) -> bool {
        let Some(chain) = &mut self.chain else { return false };
        let ended = chain.waits_for.map(|task| recorder.job_end(framework, task)).filter(|end| end.is_finite());
        if let Some(ended) = ended {
            chain.waits_for = None;
            chain.next = (Duration::from_secs_f64(ended) + chain.pause).max(now);
        }
        ended.is_some()
    }
}

/// The work of one framework.
struct Source {
    inbox: Inbox,
    kinds: Vec<Kind>,
}

impl Source {
    fn next_at(&mut self) -> Option<Duration> {
        self.kinds.iter_mut().filter_map(Kind::next_at).min()
    }
}

/// The work of all frameworks.
pub(super) struct Sources {
    all: Vec<Source>,
    /// Time of each framework's next arrival.
    due: BinaryHeap<Reverse<(Duration, usize)>>,
    manager: Option<(Manager, Duration)>,
    /// Time when the manager runs next.
    next_release: Duration,
}

impl Sources {
    pub fn new(scenario: &Scenario, frameworks: Vec<PreparedFramework>, total: &Quantities) -> Sources {
        let source = |framework: PreparedFramework| Source {
            inbox: framework.inbox,
            kinds: framework.arrivals.into_iter().map(Kind::new).collect(),
        };
        let mut all: Vec<Source> = frameworks.into_iter().map(source).collect();
        let first =
            all.iter_mut().enumerate().filter_map(|(framework, source)| Some(Reverse((source.next_at()?, framework))));
        let due = first.collect();
        let managed = |part: &ManagerPart| (Manager::new(part.release, all.len(), total.clone()), part.every.0);
        let manager = scenario.manager.as_ref().map(managed);
        Sources { all, due, manager, next_release: Duration::ZERO }
    }

    /// Returns when the next job arrives or the manager runs, after the beginning; `None` if neither happens.
    pub fn next_at(&self) -> Option<Duration> {
        let next_release = self.manager.as_ref().map(|_| self.next_release);
        self.due.peek().map(|Reverse((at, _))| *at).into_iter().chain(next_release).min()
    }

    /// Returns whether no further job will arrive.
    pub fn is_exhausted(&mut self) -> bool {
        self.due.is_empty()
            && self.all.iter_mut().flat_map(|source| &mut source.kinds).all(|kind| kind.arrivals.peek().is_none())
    }

    /// Checks which jobs have ended that others wait for.
    pub fn look(&mut self, recorder: &Recorder, now: Duration) {
        for (framework, source) in self.all.iter_mut().enumerate() {
            for kind in &mut source.kinds {
                if kind.look(framework, recorder, now) {
                    self.due.extend(kind.next_at().map(|at| Reverse((at, framework))));
                }
            }
        }
    }

    /// Submits all due arrivals, and runs the manager if it is due. Returns the frameworks with new work.
    pub fn submit(&mut self, recorder: &mut Recorder, at: Duration) -> Vec<usize> {
        let mut frameworks = Vec::new();
        while self.due.peek().is_some_and(|Reverse((due, _))| *due <= at)
            && let Some(Reverse((job_at, framework))) = self.due.pop()
        {
            self.submit_to(framework, recorder, job_at);
            if self.manager.is_none() {
                frameworks.push(framework);
            }
            self.due.extend(self.all[framework].next_at().map(|at| Reverse((at, framework))));
        }
        frameworks.extend(self.release(recorder, at));
        frameworks
    }

    fn submit_to(&mut self, framework: usize, recorder: &mut Recorder, at: Duration) {
        let Source { inbox, kinds } = &mut self.all[framework];
        for (number, kind) in kinds.iter_mut().enumerate() {
            while let Some(arrival) = kind.next(at) {
                let job = Job { kind: number, ..register_job(recorder, framework, arrival, BEGIN + at) };
                if kind.name.is_some() {
                    kind.jobs.push((job.first, at.as_secs_f64()));
                }
                if let Some(chain) = &mut kind.chain {
                    chain.waits_for = Some(job.first);
                }
                match &mut self.manager {
                    Some((manager, _)) => manager.submit(framework, job),
                    None => inbox.borrow_mut().push_back(job),
                }
            }
        }
    }

    fn release(&mut self, recorder: &Recorder, at: Duration) -> Vec<usize> {
        let Some((manager, every)) = &mut self.manager else { return Vec::new() };
        if at < self.next_release {
            return Vec::new();
        }
        self.next_release = at + *every;
        let running = |framework: usize| {
            let state = recorder.state(framework);
            let mut running = state.used;
            running += &state.waiting.saturating_sub(manager.waiting(framework));
            running
        };
        let running: Vec<Quantities> = (0..self.all.len()).map(running).collect();
        let mut frameworks = Vec::new();
        for (framework, job) in manager.release(&running) {
            self.all[framework].inbox.borrow_mut().push_back(job);
            frameworks.push(framework);
        }
        frameworks.sort_unstable();
        frameworks.dedup();
        frameworks
    }

    /// Returns the times from submission to end of a framework's jobs, for each kind that has a name.
    pub fn kinds(&self, framework: usize, recorder: &Recorder) -> Vec<(String, Summary)> {
        let time = |(task, from): &(u64, f64)| recorder.job_end(framework, *task) - from;
        let summary = |jobs: &[(u64, f64)]| Summary::of(jobs.iter().map(time).filter(|t| t.is_finite()).collect());
        let named = self.all[framework].kinds.iter().filter_map(|kind| Some((kind.name.clone()?, summary(&kind.jobs))));
        named.collect()
    }
}

/// Returns the job of an arrival, and adds it to the records.
fn register_job(recorder: &mut Recorder, framework: usize, arrival: Arrival, now: Time) -> Job {
    let tasks = arrival.spans.len() as u32;
    let first = recorder.submit(framework, &arrival.needs, tasks, arrival.retries, now);
    Job { first, needs: arrival.needs, spans: arrival.spans, gang: arrival.gang, retries: arrival.retries, kind: 0 }
}
