//! Executors and their pools: which job and stage each belongs to. It knows no time.

use std::collections::VecDeque;

use super::{Node, Source};

/// The assignment of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Executor {
    /// Job that the executor belongs to.
    pub job: Option<usize>,
    /// Stage of the executor's last task, unless it was idle since.
    pub node: Option<Node>,
    /// Stage to which the executor moves.
    pub moving: Option<Node>,
}

/// The executors of a cluster with their pools.
pub(super) struct Executors {
    all: Vec<Executor>,
    general: VecDeque<usize>,
    idle: Vec<VecDeque<usize>>,
    /// Number of executors of each job.
    of_job: Vec<u32>,
    /// Number of executors of each stage.
    of_node: Vec<Vec<u32>>,
    /// Number of executors on their way to each stage.
    to_node: Vec<Vec<u32>>,
}

impl Executors {
    /// Creates executors without a job. `stages` has the number of stages of each job.
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

    /// Returns the idle executors of a job, or of the general pool.
    pub fn idle(&self, job: Option<usize>) -> &VecDeque<usize> {
        job.map_or(&self.general, |job| &self.idle[job])
    }

    /// Returns the number of executors of a job, without those on their way.
    pub fn of_job(&self, job: usize) -> u32 {
        self.of_job[job]
    }

    /// Returns the number of executors that run tasks of a stage, or have just finished one.
    pub fn of_node(&self, (job, stage): Node) -> u32 {
        self.of_node[job][stage]
    }

    /// Returns the number of executors on their way to a stage.
    pub fn to_node(&self, (job, stage): Node) -> u32 {
        self.to_node[job][stage]
    }

    /// Returns the number of executors on their way to a job.
    pub fn to_job(&self, job: usize) -> u32 {
        self.to_node[job].iter().sum()
    }

    /// Returns the source of an executor.
    pub fn source(&self, executor: usize) -> Source {
        match self.all[executor] {
            Executor { node: Some(node), .. } => Source::Node(node),
            Executor { job: Some(job), .. } => Source::Job(job),
            _ => Source::General,
        }
    }

    /// Removes an executor from its pool of idle ones, if it is there.
    pub fn take(&mut self, executor: usize) {
        let pool = match self.all[executor].job {
            Some(job) => &mut self.idle[job],
            None => &mut self.general,
        };
        if let Some(at) = pool.iter().position(|other| *other == executor) {
            pool.remove(at);
        }
    }

    /// Makes an executor idle in this job, or in none.
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

    /// Makes an executor run a task of a stage.
    pub fn work(&mut self, executor: usize, node: Node) {
        self.leave_node(executor);
        self.join(executor, node.0);
        self.all[executor].node = Some(node);
        self.of_node[node.0][node.1] += 1;
    }

    /// Sends an executor to a stage of another job.
    pub fn send(&mut self, executor: usize, node: Node) {
        self.leave_job(executor);
        self.all[executor].moving = Some(node);
        self.to_node[node.0][node.1] += 1;
    }

    /// Records that an executor has arrived. Returns the stage to which it was sent; `None` if that job has ended.
    pub fn reach(&mut self, executor: usize) -> Option<Node> {
        let node = self.all[executor].moving.take()?;
        self.to_node[node.0][node.1] -= 1;
        self.join(executor, node.0);
        Some(node)
    }

    /// Ends a job: its executors belong to no job any more, and its idle ones join the general pool.
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
