//! Builds the observation for the order of stages: jobs, their stages, and free resources, as plain data.

use base::Time;
use jobs::Need;
use serde::Serialize;

use super::Core;
use super::record::{Record, StagePhase};
use super::sizes;
use crate::job::Class;
use crate::order::{self, Amounts, Free, Observation};

/// Weight of a new measurement in the mean.
const NEW: f64 = 0.1;

/// Measured time from the launch of a task until it runs: the cost of moving a slot to another task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct MovingDelay {
    /// Mean time in milliseconds.
    pub(super) mean: f64,
    /// Number of measurements.
    pub(super) count: u64,
}

impl MovingDelay {
    pub(super) fn measured(&mut self, millis: f64) {
        self.count += 1;
        let part = NEW.max(1.0 / self.count as f64);
        self.mean += (millis - self.mean) * part;
    }
}

fn millis(time: Time) -> u64 {
    u64::try_from(time.since_epoch().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the amounts of a need that an order of stages considers.
fn amounts(need: &Need) -> Amounts {
    let of = |place: usize| u64::try_from(need.0[place]).unwrap_or(0);
    Amounts { cpus: of(0), mem: of(1), gpus: of(3) }
}

impl Core {
    /// Returns, for each resource, the least amount that a task needs that may be launched now.
    fn least_need(&self) -> Option<Need> {
        let records = self.active.iter().filter_map(|serial| self.records.get(serial));
        let needs = records.flat_map(|record| {
            let waits = |stage: &usize| {
                let run = &record.stages[*stage];
                (!run.ready.is_empty() || run.fresh() > 0) && record.is_runnable(*stage)
            };
            (0..record.stages.len()).filter(waits).map(|stage| record.stage(stage).need)
        });
        needs.reduce(|a, b| Need(std::array::from_fn(|kind| a.0[kind].min(b.0[kind]))))
    }

    /// Returns the observation for the order of stages when these amounts are free, each on one agent.
    pub(super) fn observe(&self, free: &[Need], now: Time) -> Observation {
        let running: u32 = self.active.iter().filter_map(|s| self.records.get(s)).map(Record::live).sum();
        // An executor is the resources for one task: there are as many free ones as smallest runnable tasks fit.
        let least = self.least_need();
        let slots = free.iter().map(|room| least.map_or(1, |least| least.times_in(room))).fold(0, u32::saturating_add);
        let all = slots.saturating_add(running);
        let free: Vec<Free> = free.iter().map(|need| Free { count: 1, amounts: amounts(need) }).collect();
        let jobs = self.active.iter().filter_map(|serial| self.records.get(serial));
        Observation {
            now: millis(now),
            executors: all,
            free,
            source: None,
            moving_delay: self.moving.mean as u64,
            ahead: false,
            jobs: jobs.filter(|record| record.goal == super::record::Goal::Run).map(|r| self.observe_job(r)).collect(),
        }
    }

    fn observe_job(&self, record: &Record) -> order::Job {
        let class = match record.job.priority {
            Class::Low => 0,
            Class::Normal => 1,
            Class::High => 2,
        };
        let totals = sizes::totals(record).into_iter().enumerate();
        let stages = totals.map(|(stage, total)| self.observe_stage(record, stage, total)).collect();
        order::Job {
            id: record.serial,
            arrival: millis(record.submitted),
            class,
            weight: (record.job.weight * 1_000.0).clamp(1.0, f64::from(u32::MAX)) as u32,
            deadline: record.job.deadline.map(|deadline| millis(record.submitted + deadline)),
            held: record.live(),
            stages,
        }
    }

    /// Returns the observation of a stage with this number of tasks, if it is known.
    fn observe_stage(&self, record: &Record, stage: usize, total: Option<u32>) -> order::Stage {
        let (run, job_stage) = (&record.stages[stage], record.stage(stage));
        let ready = u32::try_from(run.ready.len()).unwrap_or(u32::MAX);
        // A stage that is not open counts as having tasks, otherwise its successors would count as runnable.
        let tasks = match run.head.phase {
            StagePhase::Done => 0,
            StagePhase::Open => run.fresh().saturating_add(ready),
            StagePhase::Blocked | StagePhase::Planning => total.unwrap_or(1).max(1),
        };
        // Tasks that wait for their next attempt keep the stage from being complete.
        let later = run.counts.waiting.saturating_sub(ready);
        let known = run.mean().or_else(|| self.history.expect(&run.key));
        order::Stage {
            tasks: if run.head.phase == StagePhase::Planning { 0 } else { tasks },
            running: run.counts.live + later + u32::from(run.head.phase == StagePhase::Planning),
            finished: run.counts.finished + run.counts.dropped,
            duration: known.unwrap_or(1_000.0).max(1.0) as u64,
            demand: amounts(&job_stage.need),
            parents: job_stage.after.iter().map(|&before| u32::try_from(before).unwrap_or(0)).collect(),
        }
    }

    /// Returns how many tasks of a stage the known agents could run at once.
    pub(super) fn slots(&self, serial: u64, stage: usize) -> u32 {
        let Some(record) = self.records.get(&serial) else { return 1 };
        let (need, checker) = (record.stage(stage).need, &record.stages[stage].checker);
        let allowed = self.known_agents.agents().filter(|agent| checker.broken_by_agent(*agent).is_none());
        allowed.map(|agent| need.times_in(&agent.most)).fold(0, u32::saturating_add).max(1)
    }
}
