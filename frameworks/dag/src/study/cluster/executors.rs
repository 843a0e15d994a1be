//! Executors and their pools: which job and stage each belongs to. Nothing is timed here.

use std::collections::VecDeque;

use super::{Node, Source};

/// An executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Executor {
    /// The job that it belongs to.
    pub job: Option<usize>,
    /// The stage of its last task, unless it was idle since.
    pub node: Option<Node>,
    /// Where it moves to.
    pub moving: Option<Node>,
}

/// All executors.
pub(super) struct Executors {
    all: Vec<Executor>,
    general: VecDeque<usize>,
    idle: Vec<VecDeque<usize>>,
    /// Executors of each job.
    of_job: Vec<u32>,
    /// Executors of each stage.
    of_node: Vec<Vec<u32>>,
    /// Executors on their way to each stage.
    to_node: Vec<Vec<u32>>,
}

impl Executors {
    /// All without a job. `stages` has the number of stages of each job.
    pub fn new(count: u32, stages: &[usize]) -> Executors {
        let nodes = || stages.iter().map(|count| vec![0; *count]).collect::<Vec<Vec<u32>>>();
        Executors {
            all: vec![Executor::default(); count as usize],
            general: (0..count as usize).collect(),
            idle: vec![VecDeque::new(); stages.len()],
            of_job: vec![0; stages.len()],
            of_node: nodes(),
            to_node: nodes(),
        }
    }

    pub fn get(&self, executor: usize) -> Executor {
        self.all[executor]
    }

    /// Those that are idle, of a job or of none.
    pub fn idle(&self, job: Option<usize>) -> &VecDeque<usize> {
        job.map_or(&self.general, |job| &self.idle[job])
    }

    /// How many belong to a job, without those on their way.
    pub fn of_job(&self, job: usize) -> u32 {
        self.of_job[job]
    }

    /// How many run tasks of a stage, or have just finished one.
    pub fn of_node(&self, (job, stage): Node) -> u32 {
        self.of_node[job][stage]
    }

    /// How many are on their way to a stage.
    pub fn to_node(&self, (job, stage): Node) -> u32 {
        self.to_node[job][stage]
    }

    /// How many are on their way to a job.
    pub fn to_job(&self, job: usize) -> u32 {
        self.to_node[job].iter().sum()
    }

    /// Where an executor comes from.
    pub fn source(&self, executor: usize) -> Source {
        match self.all[executor] {
            Executor { node: Some(node), .. } => Source::Node(node),
            Executor { job: Some(job), .. } => Source::Job(job),
            _ => Source::General,
        }
    }

    /// Takes it out of the pool of idle ones, if it is there.
    pub fn take(&mut self, executor: usize) {
        let pool = match self.all[executor].job {
            Some(job) => &mut self.idle[job],
            None => &mut self.general,
        };
        if let Some(at) = pool.iter().position(|other| *other == executor) {
            pool.remove(at);
        }
    }

    /// Lets it be idle in this job, or in none.
    pub fn rest(&mut self, executor: usize, job: Option<usize>) {
        match job {
            Some(job) => {
                self.leave_node(executor);
                self.idle[job].push_back(executor);
            }
            None => {
                self.leave_job(executor);
                self.general.push_back(executor);
            }
        }
    }

    /// Lets it run a task of a stage.
    pub fn work(&mut self, executor: usize, node: Node) {
        self.leave_node(executor);
        self.join(executor, node.0);
        self.all[executor].node = Some(node);
        self.of_node[node.0][node.1] += 1;
    }

    /// Sends it to a stage of another job.
    pub fn send(&mut self, executor: usize, node: Node) {
        self.leave_job(executor);
        self.all[executor].moving = Some(node);
        self.to_node[node.0][node.1] += 1;
    }

    /// It has come to where it was sent; none if that job has ended.
    pub fn reach(&mut self, executor: usize) -> Option<Node> {
        let node = self.all[executor].moving.take()?;
        self.to_node[node.0][node.1] -= 1;
        self.join(executor, node.0);
        Some(node)
    }

    /// A job has ended: its executors belong to none any more. Those that were idle are in the general pool.
    pub fn disband(&mut self, job: usize) {
        for executor in std::mem::take(&mut self.idle[job]) {
            self.general.push_back(executor);
        }
        for executor in 0..self.all.len() {
            if self.all[executor].job == Some(job) {
                self.leave_job(executor);
            }
            if let Some(node) = self.all[executor].moving.filter(|node| node.0 == job) {
                self.all[executor].moving = None;
                self.to_node[node.0][node.1] -= 1;
            }
        }
    }

    fn join(&mut self, executor: usize, job: usize) {
        if self.all[executor].job != Some(job) {
            self.leave_job(executor);
            self.all[executor].job = Some(job);
            self.of_job[job] += 1;
        }
    }

    fn leave_node(&mut self, executor: usize) {
        if let Some((job, stage)) = self.all[executor].node.take() {
            self.of_node[job][stage] -= 1;
        }
    }

    fn leave_job(&mut self, executor: usize) {
        self.leave_node(executor);
        if let Some(job) = self.all[executor].job.take() {
            self.of_job[job] -= 1;
        }
    }
}
