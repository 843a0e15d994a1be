//! Processes the events of a cluster one after the other. It knows no orders.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::executors::Executors;
use super::{Commits, Node, Outcome, Setup, Source};
use crate::order::{Grant, History};
use crate::study::job::{Arrival, Start};
use crate::study::random::Random;

/// An event of the simulation. Events of one instant happen in the order in which they were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// This job arrives.
    Arrives(usize),
    /// This executor finishes its task.
    Finishes(usize),
    /// This executor reaches the job to which it was sent.
    Reaches(usize),
}

/// The progress of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StageState {
    pub started: u32,
    pub finished: u32,
    /// Sum of the durations of the stage's tasks, in milliseconds.
    pub spent: u64,
}

/// Executors that are subject to a decision.
pub(super) struct PendingDecision {
    /// Job that the executors belong to.
    pub source: Option<usize>,
    /// Executors that are free now.
    free: VecDeque<usize>,
    /// Number of all executors, including those that will be free.
    pub count: u32,
}

/// A run in progress.
pub(super) struct Run {
    pub setup: Setup,
    pub arrivals: Vec<Arrival>,
    pub now: u64,
    pub active: Vec<usize>,
    pub executors: Executors,
    pub stages: Vec<Vec<StageState>>,
    pub commits: Commits,
    /// Number of executors that are promised to each stage.
    promised: Vec<Vec<u32>>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    /// Whether executors have become free, or stages runnable, since the last decision.
    unasked: bool,
    random: Random,
    /// Milliseconds that jobs have spent in the cluster, summed over the jobs.
    pub waited: u64,
    pub outcome: Outcome,
}

impl Run {
    pub fn new(setup: Setup, arrivals: Vec<Arrival>, random: Random) -> Run {
        let counts: Vec<usize> = arrivals.iter().map(|arrival| arrival.job.stages.len()).collect();
        let mut run = Run {
            setup,
            arrivals,
            now: 0,
            active: Vec::new(),
            executors: Executors::new(setup.executors, &counts),
            stages: counts.iter().map(|count| vec![StageState::default(); *count]).collect(),
            commits: Commits::new(),
            promised: counts.iter().map(|count| vec![0; *count]).collect(),
            events: BinaryHeap::new(),
            planned: 0,
            unasked: false,
            random,
            waited: 0,
            outcome: Outcome { completions: vec![f64::NAN; counts.len()], ..Outcome::default() },
        };
        for job in 0..counts.len() {
            match run.arrivals[job].at {
                0 => run.active.push(job),
                at => run.plan(at, Event::Arrives(job)),
            }
        }
        run
    }

    /// Returns the question about free executors before the first event.
    pub fn first_decision(&self) -> PendingDecision {
        self.about_free()
    }

    /// Returns the question about the executors that belong to no job.
    fn about_free(&self) -> PendingDecision {
        let free = self.executors.idle(None).clone();
        PendingDecision { source: None, count: free.len() as u32, free }
    }

    /// Processes events until a decision is needed; `None` when no events are left.
    pub fn next_decision(&mut self, history: &mut History) -> Option<PendingDecision> {
        while let Some(Reverse((next, ..))) = self.events.peek() {
            if *next > self.now
                && let Some(pending) = self.unasked_question()
            {
                return Some(pending);
            }
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.waited += (at - self.now) * self.active.len() as u64;
            self.now = at;
            let question = match event {
                Event::Arrives(job) => {
                    self.active.push(job);
                    self.unasked = !self.setup.ahead;
                    self.setup.ahead.then(|| self.about_free())
                }
                Event::Finishes(executor) => self.finishes(executor, history),
                Event::Reaches(executor) => {
                    self.reaches(executor);
                    None
                }
            };
            if let Some(pending) = question.filter(|pending| pending.count > 0) {
                return Some(pending);
            }
        }
        self.unasked_question()
    }

    /// Returns the question that is due at the end of an instant.
    fn unasked_question(&mut self) -> Option<PendingDecision> {
        let asks = std::mem::take(&mut self.unasked) && !self.active.is_empty();
        asks.then(|| self.about_free()).filter(|pending| pending.count > 0)
    }

    /// Returns the number of executors that are promised to a stage and have not arrived.
    pub fn committed(&self, (job, stage): Node) -> u32 {
        self.promised[job][stage]
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    /// Sends the executors of a question to the stages for which they were granted.
    pub fn answer(&mut self, pending: PendingDecision, grants: &[Grant]) {
        let Some(first) = pending.free.front() else { return };
        let source = self.executors.source(*first);
        let mut left = pending.count;
        for grant in grants {
            let node = (grant.job as usize, grant.stage as usize);
            self.promise(source, Some(node), grant.tasks);
            left -= grant.tasks;
        }
        if left > 0 {
            self.promise(source, None, left);
        }
        self.outcome.decisions += 1;
        self.fulfil(pending.free);
    }

    fn promise(&mut self, source: Source, to: Option<Node>, count: u32) {
        let commits = self.commits.entry(source).or_default();
        match commits.iter_mut().find(|(known, _)| *known == to) {
            Some((_, promised)) => *promised += count,
            None => commits.push((to, count)),
        }
        if let Some((job, stage)) = to {
            self.promised[job][stage] += count;
        }
    }

    /// Takes the next destination that is promised to executors of this source.
    fn redeem(&mut self, source: Source) -> Option<Option<Node>> {
        let commits = self.commits.get_mut(&source)?;
        let (to, count) = commits.first_mut()?;
        let to = *to;
        *count -= 1;
        if *count == 0 {
            commits.remove(0);
        }
        if commits.is_empty() {
            self.commits.remove(&source);
        }
        if let Some((job, stage)) = to {
            self.promised[job][stage] -= 1;
        }
        Some(to)
    }

    /// Sends executors of one source to their promised destinations.
    fn fulfil(&mut self, mut free: VecDeque<usize>) {
        let Some(first) = free.front() else { return };
        let source = self.executors.source(*first);
        while let Some(executor) = free.pop_front() {
            let Some(to) = self.redeem(source) else { break };
            let job = self.executors.get(executor).job;
            self.executors.take(executor);
            match to {
                None => {
                    let stays = job
                        .filter(|_| self.setup.ahead)
                        .filter(|job| (0..self.stages[*job].len()).any(|stage| self.has_tasks((*job, stage))));
                    self.executors.rest(executor, stays);
                }
                Some(node) if self.has_tasks(node) && job == Some(node.0) => match self.can_run(node) {
                    true => self.start(executor, node),
                    false => self.executors.rest(executor, job),
                },
                Some(node) if self.has_tasks(node) => self.send(executor, node),
                Some(_) => self.improvise(executor),
            }
        }
    }

    fn has_tasks(&self, (job, stage): Node) -> bool {
        self.stages[job][stage].started < self.arrivals[job].job.stages[stage].tasks
    }

    fn is_done(&self, (job, stage): Node) -> bool {
        self.stages[job][stage].finished == self.arrivals[job].job.stages[stage].tasks
    }

    fn can_run(&self, node: Node) -> bool {
        let parents = &self.arrivals[node.0].job.stages[node.1].parents;
        self.has_tasks(node) && parents.iter().all(|parent| self.is_done((node.0, *parent as usize)))
    }

    /// Returns whether a stage has as many executors, present or on their way, as tasks.
    fn is_saturated(&self, node: Node) -> bool {
        let coming = self.committed(node) + self.executors.to_node(node);
        self.stages[node.0][node.1].started + coming >= self.arrivals[node.0].job.stages[node.1].tasks
    }

    fn start(&mut self, executor: usize, node: Node) {
        let count = self.executors.of_job(node.0);
        let start = match self.executors.get(executor).node {
            Some(last) if last == node => Start::Rest,
            Some(last) if last.0 == node.0 => Start::First,
            _ => Start::Fresh,
        };
        let duration = self.arrivals[node.0].job.stages[node.1].draw(count, start, &mut self.random);
        self.executors.work(executor, node);
        let state = &mut self.stages[node.0][node.1];
        state.started += 1;
        state.spent += duration;
        self.outcome.tasks += 1;
        self.outcome.busy += duration as f64 / 1000.0;
        self.plan(self.now + duration, Event::Finishes(executor));
    }

    fn send(&mut self, executor: usize, node: Node) {
        self.executors.send(executor, node);
        self.outcome.moves += 1;
        self.plan(self.now + self.setup.moving_delay, Event::Reaches(executor));
    }

    /// Finds work for an executor whose destination has no tasks left: a stage of its job that can run, or else a stage
    /// of any job if executors may be sent ahead.
    fn improvise(&mut self, executor: usize) {
        let job = self.executors.get(executor).job;
        let nodes = |job: usize| (0..self.stages[job].len()).map(move |stage| (job, stage));
        let here = job.and_then(|job| nodes(job).find(|node| self.can_run(*node) && !self.is_saturated(*node)));
        if let Some(node) = here {
            return self.start(executor, node);
        }
        let saturated =
            |job: usize, parents: &[u32]| parents.iter().all(|parent| self.is_saturated((job, *parent as usize)));
        if !self.setup.ahead {
            return self.set_free(executor);
        }
        let any = self.active.iter().flat_map(|job| nodes(*job)).find(|node| {
            !self.is_saturated(*node) && saturated(node.0, &self.arrivals[node.0].job.stages[node.1].parents)
        });
        match any {
            Some(node) => self.send(executor, node),
            None => self.executors.rest(executor, job),
        }
    }

    /// Removes an executor from its job, and marks that a decision is needed.
    fn set_free(&mut self, executor: usize) {
        self.executors.rest(executor, None);
        self.unasked = true;
    }

    fn reaches(&mut self, executor: usize) {
        match self.executors.reach(executor) {
            Some(node) if self.has_tasks(node) && self.can_run(node) => self.start(executor, node),
            Some(node) if self.has_tasks(node) => self.executors.rest(executor, Some(node.0)),
            _ => self.improvise(executor),
        }
    }

    /// Handles the end of a task. Returns the question about executors that it causes.
    fn finishes(&mut self, executor: usize, history: &mut History) -> Option<PendingDecision> {
        // An executor that finishes a task is at its stage.
        let node = self.executors.get(executor).node?;
        self.stages[node.0][node.1].finished += 1;
        let mut opens = false;
        if self.is_done(node) {
            let stage = &self.arrivals[node.0].job.stages[node.1];
            history.observe(&stage.key, self.stages[node.0][node.1].spent as f64 / f64::from(stage.tasks));
            let children = (0..).zip(&self.arrivals[node.0].job.stages);
            let mut children = children.filter(|(_, child)| child.parents.contains(&(node.1 as u32)));
            opens = children.any(|(child, _)| self.can_run((node.0, child)));
        }
        let question = self.next_task(executor, node, opens);
        if (0..self.stages[node.0].len()).all(|stage| self.is_done((node.0, stage))) {
            self.end_job(node.0);
        }
        question
    }

    fn next_task(&mut self, executor: usize, node: Node, opens: bool) -> Option<PendingDecision> {
        if self.has_tasks(node) {
            self.start(executor, node);
            return None;
        }
        if !self.setup.ahead {
            self.set_free(executor);
            return None;
        }
        let promised = self.commits.contains_key(&Source::Node(node));
        if !opens {
            if promised {
                self.fulfil(VecDeque::from([executor]));
                return None;
            }
            let count = self.executors.of_node(node);
            return Some(PendingDecision { source: Some(node.0), free: VecDeque::from([executor]), count });
        }
        match promised {
            true => self.fulfil(VecDeque::from([executor])),
            false => self.executors.rest(executor, Some(node.0)),
        }
        let free = self.executors.idle(Some(node.0)).clone();
        Some(PendingDecision { source: Some(node.0), count: free.len() as u32, free })
    }

    fn end_job(&mut self, job: usize) {
        let of_job = |source: &Source| matches!(source, Source::Job(of) | Source::Node((of, _)) if *of == job);
        let gone: Vec<Source> = self.commits.keys().filter(|source| of_job(source)).copied().collect();
        for source in gone {
            for (to, count) in self.commits.remove(&source).unwrap_or_default() {
                if let Some((job, stage)) = to {
                    self.promised[job][stage] -= count;
                }
            }
        }
        for commits in self.commits.values_mut() {
            commits.retain(|(to, _)| to.is_none_or(|to| to.0 != job));
        }
        self.commits.retain(|_, commits| !commits.is_empty());
        self.promised[job].fill(0);
        self.executors.disband(job);
        self.active.retain(|active| *active != job);
        let end = self.now as f64 / 1000.0;
        self.outcome.completions[job] = end - self.arrivals[job].at as f64 / 1000.0;
        self.outcome.makespan = self.outcome.makespan.max(end);
    }
}
