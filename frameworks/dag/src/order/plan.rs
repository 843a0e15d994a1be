//! A decision in progress: what of an observation is still free and still to be started. It has no preferences.

use super::action::{Action, Grant};
use super::observation::{Amounts, Free, Observation, Ready};

/// Free slots, some of which are partly taken.
#[derive(Clone, Copy, Debug)]
struct Pool {
    /// Index in [`Observation::free`].
    group: u32,
    free: Free,
    /// Whether a task takes a part of the slot already.
    is_broken: bool,
}

impl Pool {
    /// Returns how many tasks fit in each slot. A task without a demand takes a whole slot, so none fits in a part.
    fn fits(&self, demand: Amounts) -> u32 {
        if demand.is_zero() && self.is_broken { 0 } else { self.free.amounts.fits(demand) }
    }
}

/// An observation with the assignments so far.
pub(crate) struct Plan<'a> {
    pub observation: &'a Observation,
    tasks: Vec<Vec<u32>>,
    held: Vec<u32>,
    pools: Vec<Pool>,
    actions: Vec<Action>,
    grants: Vec<Grant>,
}

impl<'a> Plan<'a> {
    pub fn new(observation: &'a Observation) -> Plan<'a> {
        let tasks = observation.jobs.iter().map(|job| job.stages.iter().map(|stage| stage.tasks).collect()).collect();
        let pools = (0..).zip(&observation.free).map(|(group, free)| Pool { group, free: *free, is_broken: false });
        Plan {
            observation,
            tasks,
            held: observation.jobs.iter().map(|job| job.held).collect(),
            pools: pools.filter(|pool| pool.free.count > 0).collect(),
            actions: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// Returns the index of a job.
    pub fn find(&self, id: u64) -> Option<usize> {
        self.observation.jobs.iter().position(|job| job.id == id)
    }

    /// Returns the index of the job that the free executors belong to.
    pub fn source(&self) -> Option<usize> {
        self.observation.source.and_then(|id| self.find(id))
    }

    /// Returns the number of a job's executors, including those that were assigned.
    pub fn held(&self, job: usize) -> u32 {
        self.held[job]
    }

    /// Returns the number of tasks that are left of each stage of a job.
    pub fn tasks(&self, job: usize) -> &[u32] {
        &self.tasks[job]
    }

    /// Returns how many tasks of this demand fit in what is free.
    pub fn room(&self, demand: Amounts) -> u32 {
        let rooms = self.pools.iter().map(|pool| pool.free.count.saturating_mul(pool.fits(demand)));
        rooms.fold(0, u32::saturating_add)
    }

    /// Returns the number of tasks assigned so far.
    pub fn given(&self) -> u64 {
        self.grants.iter().map(|grant| u64::from(grant.tasks)).sum()
    }

    /// Returns whether nothing is free any more.
    pub fn is_exhausted(&self) -> bool {
        self.pools.is_empty()
    }

    /// Returns the number of free slots, including partly taken ones.
    pub fn free(&self) -> u32 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.free.count))
    }

    /// Returns the number and the free amounts of each kind of slot.
    pub fn amounts(&self) -> impl Iterator<Item = (u32, Amounts)> {
        self.pools.iter().map(|pool| (pool.free.count, pool.free.amounts))
    }

    /// Returns whether a stage can get executors, given the assignments so far.
    pub fn ready(&self, job: usize, stage: usize) -> Ready {
        let all = &self.observation.jobs[job].stages;
        if self.tasks[job].get(stage).is_none_or(|tasks| *tasks == 0) {
            return Ready::No;
        }
        let mut ready = Ready::Now;
        for parent in &all[stage].parents {
            let parent = *parent as usize;
            match all.get(parent) {
                Some(known) if known.is_done() => {}
                Some(_) if self.tasks[job][parent] == 0 => ready = Ready::Soon,
                _ => return Ready::No,
            }
        }
        match ready {
            Ready::Soon if !self.observation.ahead => Ready::No,
            other => other,
        }
    }

    /// Returns whether a job has a stage with tasks that are still to be started, runnable or not.
    pub fn is_unfinished(&self, job: usize) -> bool {
        self.tasks[job].iter().any(|tasks| *tasks > 0)
    }

    /// Returns the stages of a job that can get executors: those that can run at once first, then by their index.
    pub fn runnable(&self, job: usize) -> Vec<usize> {
        let mut stages: Vec<(Ready, usize)> =
            (0..self.tasks[job].len()).map(|stage| (self.ready(job, stage), stage)).collect();
        stages.retain(|(ready, _)| *ready > Ready::No);
        stages.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        stages.into_iter().map(|(_, stage)| stage).collect()
    }

    /// Returns the first stage of [`Plan::runnable`].
    pub fn first_runnable(&self, job: usize) -> Option<usize> {
        let mut soon = None;
        for stage in 0..self.tasks[job].len() {
            match self.ready(job, stage) {
                Ready::Now => return Some(stage),
                Ready::Soon if soon.is_none() => soon = Some(stage),
                _ => {}
            }
        }
        soon
    }

    /// Assigns executors to a stage: at most `most`, as many as it has tasks, and as many as fit. Returns how many.
    pub fn give(&mut self, job: usize, stage: usize, most: u32) -> u32 {
        if self.ready(job, stage) == Ready::No {
            return 0;
        }
        let demand = self.observation.jobs[job].stages[stage].demand;
        let wanted = most.min(self.tasks[job][stage]);
        let mut given = 0;
        while given < wanted {
            let Some(at) = self.tightest(demand) else { break };
            given += self.take(at, demand, wanted - given, (job, stage));
        }
        self.pools.retain(|pool| pool.free.count > 0);
        if given > 0 {
            self.tasks[job][stage] -= given;
            self.held[job] = self.held[job].saturating_add(given);
            let id = self.observation.jobs[job].id;
            self.actions.push(Action { job: id, stage: stage as u32, limit: self.held[job] });
        }
        given
    }

    /// Returns the smallest slots in which a task of this demand fits.
    fn tightest(&self, demand: Amounts) -> Option<usize> {
        let fitting = self.pools.iter().enumerate().filter(|(_, pool)| pool.free.count > 0 && pool.fits(demand) > 0);
        let first = |(at, pool): &(usize, &Pool)| (pool.free.amounts.mem, pool.free.amounts.cpus, *at);
        fitting.min_by_key(first).map(|(at, _)| at)
    }

    /// Takes slots of a kind for up to `wanted` tasks. Returns how many tasks they take.
    fn take(&mut self, at: usize, demand: Amounts, wanted: u32, (job, stage): (usize, usize)) -> u32 {
        let Pool { group, free, .. } = self.pools[at];
        let each = free.amounts.fits(demand).max(1);
        let whole = (wanted / each).min(free.count);
        let tasks = match whole {
            // The tasks take a part of one slot.
            0 => {
                let left = free.amounts.without(demand, wanted);
                self.pools[at].free.count -= 1;
                if !left.is_zero() {
                    self.pools.push(Pool { group, free: Free { count: 1, amounts: left }, is_broken: true });
                }
                wanted
            }
            whole => {
                let left = free.amounts.without(demand, each);
                self.pools[at].free.count -= whole;
                if !left.is_zero() {
                    self.pools.push(Pool { group, free: Free { count: whole, amounts: left }, is_broken: true });
                }
                whole * each
            }
        };
        let grant = Grant { job: self.observation.jobs[job].id, stage: stage as u32, tasks, free: group };
        match self.grants.last_mut() {
            Some(last) if (last.job, last.stage, last.free) == (grant.job, grant.stage, group) => last.tasks += tasks,
            _ => self.grants.push(grant),
        }
        tasks
    }

    pub fn into_actions(self) -> Vec<Action> {
        self.actions
    }

    pub fn into_grants(self) -> Vec<Grant> {
        self.grants
    }
}
