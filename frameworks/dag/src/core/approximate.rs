//! Dropped tasks, the estimate from those that ran, and tasks that sprint (DiAS).
//!
//! A job of low priority drops a fraction of the tasks of its approximate stages when other jobs wait. If the estimate
//! from the tasks that ran is worse than the job accepts, the dropped tasks run after all. Tasks of jobs of high
//! priority get a limit of cores above their request, as long as a budget of core-seconds lasts.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use sdk::v1::value::Scalar;

use super::record::{Phase, Record, StageRun, Task};
use super::settings::{After, Sprinting};
use super::view::EstimateView;
use super::{Core, TaskKey};
use crate::job::Stage;
use crate::job::{Approximate, Class, Input, Statistic};
use crate::priority::{Contribution, DropRatio, Interval, Sampled, SprintBudget};
use crate::split::Part;

/// Most cores that a sprint adds to a task, in thousandths.
const EXTRA_MAX: f64 = 1e6;

/// The cores above requests that sprinting tasks use, and the budget for them.
#[derive(Clone, Debug)]
pub(super) struct Sprints {
    budget: SprintBudget,
    since: Time,
    /// Cores above requests that are in use, in thousandths.
    running: u64,
    /// Thousandths of core-milliseconds that were used and not yet spent from the budget.
    rest: u64,
}

impl Sprints {
    pub(super) fn new(settings: Sprinting) -> Sprints {
        let millis = |seconds: f64| (seconds * 1e3).clamp(0.0, 1e15) as u64;
        let budget = SprintBudget::new(millis(settings.budget), millis(settings.refill));
        Sprints { budget, since: Time::EPOCH, running: 0, rest: 0 }
    }

    /// Returns the core-seconds that are left in the budget.
    pub(super) fn left(&self, now: Time) -> f64 {
        self.clone().spend_used(now) as f64 / 1e3
    }

    /// Spends what was used since the last call. Returns the core-milliseconds that are left.
    fn spend_used(&mut self, now: Time) -> u64 {
        let passed = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let used = passed.saturating_mul(self.running).saturating_add(self.rest);
        self.rest = used % 1_000;
        self.since = now.max(self.since);
        self.budget.spend(now.since_epoch(), used / 1_000);
        self.budget.available(now.since_epoch())
    }

    fn start(&mut self, extra: u32, now: Time) {
        self.spend_used(now);
        self.running += u64::from(extra);
    }

    fn end(&mut self, extra: u32, now: Time) {
        self.spend_used(now);
        self.running = self.running.saturating_sub(u64::from(extra));
    }
}

impl Core {
    /// Returns the cores above its request that a task launched now may use, in thousandths.
    pub(super) fn sprint(&mut self, (serial, stage, index): TaskKey, now: Time) -> u32 {
        let boost = self.settings.sprint.boost;
        let Some(record) = self.records.get(&serial) else { return 0 };
        if boost <= 0.0 || record.job.priority != Class::High || now.since(record.submitted) < self.sprint_after() {
            return 0;
        }
        let auto = self.settings.sprint.after == After::Auto;
        if (auto && self.tuning.is_comparison(&record.stages[stage].key, index)) || self.sprints.spend_used(now) == 0 {
            return 0;
        }
        let extra = (record.stage(stage).need.0[0] as f64 * boost).clamp(0.0, EXTRA_MAX) as u32;
        self.sprints.start(extra, now);
        extra
    }

    /// Ends the sprint of a task that has ended.
    pub(super) fn sprint_ended(&mut self, (serial, stage, index): TaskKey, now: Time) {
        let run = self.records.get(&serial).and_then(|record| record.stages.get(stage));
        if let Some(Phase::Live { sprint, .. }) = run.and_then(|run| run.tasks().get(&index)).map(|task| task.phase)
            && sprint > 0
        {
            self.sprints.end(sprint, now);
        }
    }

    /// Continues the sprints of tasks that sprinted before a restart.
    pub(super) fn resume_sprints(&mut self, now: Time) {
        let tasks = self.records.values().flat_map(|record| &record.stages).flat_map(|run| run.tasks().values());
        let extra: u64 = tasks
            .map(|task| match task.phase {
                Phase::Live { sprint, .. } => u64::from(sprint),
                _ => 0,
            })
            .sum();
        self.sprints.spend_used(now);
        self.sprints.running = extra;
    }

    /// Returns the fraction of a stage's tasks that is dropped: that of the settings, as far as the stage allows it.
    pub(super) fn drop_share(&self, serial: u64, stage: usize) -> f64 {
        let Some(record) = self.records.get(&serial) else { return 0.0 };
        let Some(approximate) = &record.stage(stage).approximate else { return 0.0 };
        let others = self.active.iter().any(|other| *other != serial);
        if record.job.priority != Class::Low || (self.settings.drop_under_load && !others) {
            return 0.0;
        }
        self.drop_fraction().clamp(0.0, approximate.drop)
    }

    /// Makes the dropped tasks of a stage ready if the estimate from the others, which have ended, is worse than the
    /// job accepts. Returns whether there are any.
    pub(super) fn run_dropped(&mut self, serial: u64, stage: usize, now: Time) -> bool {
        let Some(record) = self.records.get_mut(&serial) else { return false };
        let Some(approximate) = record.stage(stage).approximate.clone() else { return false };
        let run = &mut record.stages[stage];
        if run.counts.dropped == 0 {
            return false;
        }
        let good = match (&approximate.value, estimate(run, &approximate)) {
            // Without values only the dropped fraction matters, and that is within the limit.
            (None, _) => true,
            (Some(_), Some(interval)) => interval.relative() <= approximate.error,
            (Some(_), None) => false,
        };
        if good {
            return false;
        }
        let dropped: Vec<u32> =
            run.tasks().iter().filter(|(_, task)| task.phase == Phase::Dropped).map(|(index, _)| *index).collect();
        self.totals.dropped = self.totals.dropped.saturating_sub(dropped.len() as u64);
        for index in dropped {
            run.change(index, |task| task.phase = Phase::Waiting(now));
            self.changed.tasks.insert((serial, stage, index));
            run.ready.insert(index);
        }
        run.head.drop = 0.0;
        run.tasks_to_drop.clear();
        self.changed.heads.insert(serial);
        (self.fresh, self.dirty) = (true, true);
        true
    }

    pub(super) fn estimate_view(&self, record: &Record, place: usize) -> Option<EstimateView> {
        let approximate = record.stage(place).approximate.as_ref()?;
        approximate.value.as_ref()?;
        let run = &record.stages[place];
        let interval = estimate(run, approximate)?;
        Some(EstimateView {
            statistic: format!("{:?}", approximate.estimate).to_lowercase(),
            value: interval.value,
            bound: Some(interval.half).filter(|half| half.is_finite()),
            confidence: approximate.confidence,
            tasks: u32::try_from(values(run).count()).unwrap_or(u32::MAX),
            of: run.head.total.unwrap_or(run.next),
        })
    }
}

/// Returns the numbers of the tasks of a stage to drop: a random sample, which is always the same for the same job.
///
/// A stage whose number of tasks is unknown, or that reads other stages, drops none: it could not be said what fraction
/// of the input the tasks are.
pub(super) fn tasks_to_drop(record: &Record, stage: usize) -> BTreeSet<u32> {
    let run = &record.stages[stage];
    let (Some(total), true) = (run.head.total, run.head.drop > 0.0) else { return BTreeSet::new() };
    if matches!(record.stage(stage).input, Input::Stages(_)) {
        return BTreeSet::new();
    }
    let seed = base::scramble(record.serial.wrapping_mul(base::GAMMA).wrapping_add(stage as u64));
    let ratio = DropRatio::new((run.head.drop * 1e3) as u32);
    ratio.map(|ratio| ratio.dropped(total, seed).into_iter().collect()).unwrap_or_default()
}

/// Returns the record of a dropped task.
pub(super) fn dropped(part: Part) -> Task {
    Task {
        phase: Phase::Dropped,
        attempts: 0,
        failures: 0,
        losses: 0,
        part,
        machine: std::sync::Arc::default(),
        value: None,
        message: None,
    }
}

fn values(run: &StageRun) -> impl Iterator<Item = f64> + '_ {
    run.tasks().values().filter(|task| matches!(task.phase, Phase::Done { .. })).filter_map(|task| task.value)
}

/// Returns an estimate for all tasks from the values of those that ran.
fn estimate(run: &StageRun, approximate: &Approximate) -> Option<Interval> {
    let mut sampled = Sampled::new(u64::from(run.head.total.unwrap_or(run.next)));
    for value in values(run) {
        // The mean is taken over tasks, each of which has one value.
        sampled.add(match approximate.estimate {
            Statistic::Count => Contribution { count: value, sum: 0.0 },
            Statistic::Sum | Statistic::Mean => Contribution { count: 1.0, sum: value },
        });
    }
    match approximate.estimate {
        Statistic::Count => sampled.count(approximate.confidence),
        Statistic::Sum => sampled.sum(approximate.confidence),
        Statistic::Mean => sampled.mean(approximate.confidence),
    }
}

/// Returns the resource limits of a task that sprints.
pub(super) fn limits(stage: &Stage, extra: u32) -> BTreeMap<String, Scalar> {
    if extra == 0 {
        return BTreeMap::new();
    }
    let cores = (stage.need.0[0] as f64 + f64::from(extra)) / 1e3;
    [("cpus".to_owned(), Scalar { value: cores })].into()
}
