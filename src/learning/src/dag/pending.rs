//! A pending question of the cluster: the decisions that were made so far, and what is left to decide. No time passes
//! meanwhile.

use dag::order::{Action, Heuristic, Observation, Policy};

use super::features::Layout;
use crate::random::Random;

/// A stage that is visible in an observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Index of its job in the observation.
    pub job: usize,
    /// Index of the stage in its job.
    pub stage: usize,
    /// Number of tasks that were not started, without those of earlier decisions.
    pub tasks: u32,
    /// Whether the stage can get executors.
    pub ready: bool,
}

/// A pending question of the cluster.
pub(super) struct PendingDecision {
    observation: Observation,
    /// Visible stages, job by job.
    pub nodes: Vec<Node>,
    /// Index of the first node of each visible job, then the number of nodes.
    pub first: Vec<usize>,
    /// Number of executors of each visible job, with those of earlier decisions.
    pub held: Vec<u32>,
    /// Number of executors that are still free.
    pub free: u32,
    /// Index of the job that the free executors belong to; `None` if they belong to no job.
    pub source: Option<usize>,
    actions: Vec<Action>,
}

impl PendingDecision {
    pub fn new(observation: Observation, layout: &Layout) -> PendingDecision {
        let mut nodes = Vec::with_capacity(layout.nodes);
        let (mut first, mut held) = (Vec::with_capacity(layout.jobs + 1), Vec::with_capacity(layout.jobs));
        for (at, job) in observation.jobs.iter().take(layout.jobs).enumerate() {
            first.push(nodes.len());
            held.push(job.held);
            let node =
                |(stage, known): (usize, &dag::order::Stage)| Node { job: at, stage, tasks: known.tasks, ready: false };
            nodes.extend(job.stages.iter().enumerate().map(node));
        }
        first.push(nodes.len());
        let source = observation.source.and_then(|id| observation.jobs.iter().position(|job| job.id == id));
        let free = observation.free_count();
        let mut pending = PendingDecision { observation, nodes, first, held, free, source, actions: Vec::new() };
        (0..pending.held.len()).for_each(|job| pending.look(job));
        pending
    }

    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// Returns the decisions, in the order in which they were made. If executors are left, decisions for jobs that are
    /// not visible follow; otherwise the executors would be idle until another job arrives.
    pub fn with_rest(&self) -> Vec<Action> {
        let mut actions = self.actions.clone();
        if self.free > 0 && self.observation.jobs.len() > self.held.len() {
            let visible =
                |action: &Action| self.observation.jobs.iter().take(self.held.len()).any(|job| job.id == action.job);
            actions.extend(Heuristic::Fifo.decide(&self.observation).into_iter().filter(|action| !visible(action)));
        }
        actions
    }

    /// Returns whether there is a free executor, and a stage that can get it.
    pub fn has_choice(&self) -> bool {
        self.free > 0 && self.nodes.iter().any(|node| self.can_choose(node))
    }

    /// Returns whether a stage can be chosen: it is ready, and its job can have one executor more.
    pub fn can_choose(&self, node: &Node) -> bool {
        node.ready && self.held[node.job] < self.observation.executors
    }

    /// Chooses a node, and the limit of executors of its job. Returns whether the choice was valid. An invalid one is
    /// corrected, with the first node that can be chosen, and with one executor more than the job has. There must be a
    /// choice.
    pub fn choose(&mut self, at: usize, limit: u32) -> bool {
        let valid = self.nodes.get(at).is_some_and(|node| self.can_choose(node));
        let Some(at) = Some(at).filter(|_| valid).or_else(|| self.nodes.iter().position(|node| self.can_choose(node)))
        else {
            return false;
        };
        let Node { job, stage, tasks, .. } = self.nodes[at];
        let least = self.held[job] + 1;
        let given = (limit.max(least) - self.held[job]).min(tasks).min(self.free);
        self.nodes[at].tasks -= given;
        self.held[job] += given;
        self.free -= given;
        let id = self.observation.jobs[job].id;
        self.actions.push(Action { job: id, stage: stage as u32, limit: self.held[job] });
        self.look(job);
        valid && limit >= least
    }

    /// Returns a random node that can be chosen, and the least limit for it.
    pub fn draw(&self, random: &mut Random) -> (usize, u32) {
        let all: Vec<usize> = (0..self.nodes.len()).filter(|at| self.can_choose(&self.nodes[*at])).collect();
        let at = all.get(random.below(all.len())).copied().unwrap_or(0);
        (at, self.nodes.get(at).map_or(1, |node| self.held[node.job] + 1))
    }

    /// Updates which stages of a job are ready.
    fn look(&mut self, job: usize) {
        let (from, stages) = (self.first[job], &self.observation.jobs[job].stages);
        for (at, stage) in stages.iter().enumerate() {
            let started = |parent: &u32| {
                let known = &stages[*parent as usize];
                known.is_done() || self.observation.ahead && self.nodes[from + *parent as usize].tasks == 0
            };
            self.nodes[from + at].ready = self.nodes[from + at].tasks > 0 && stage.parents.iter().all(started);
        }
    }
}
