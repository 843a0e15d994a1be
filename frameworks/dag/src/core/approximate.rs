//! Tasks that are left out, the estimate from those that ran, and tasks that sprint (DiAS).
//!
//! A job of low priority leaves out a share of the tasks of its approximate stages when others wait. If the estimate from
//! the tasks that ran is worse than the job accepts, those that were left out run after all. Tasks of jobs of high
//! priority get a limit of cores above their request, as long as a budget of core-seconds lasts.

use std::collections::BTreeMap;

use base::Time;
use sdk::v1::value::Scalar;

use super::record::{Phase, Record, StageRun, Task};
use super::settings::Sprinting;
use super::view::EstimateView;
use super::{Core, Key};
use crate::job::{Class, Input, Stage, Statistic};
use crate::split::Part;

/// The most cores that a sprint adds to a task, in thousandths.
const EXTRA_MAX: f64 = 1e6;

/// The cores above requests that sprinting tasks may use, and what is left of the budget for them.
#[derive(Clone, Debug)]
pub(super) struct Sprints {
    settings: Sprinting,
    /// Core-seconds that were left at `since`.
    left: f64,
    since: Time,
    /// Cores above requests that run now, in thousandths.
    running: u64,
}

impl Sprints {
    pub(super) fn new(settings: Sprinting) -> Sprints {
        Sprints { settings, left: settings.budget, since: Time::EPOCH, running: 0 }
    }

    /// Core-seconds that are left. What runs takes from them, and they come back up to the budget.
    pub(super) fn left(&self, now: Time) -> f64 {
        let seconds = now.since(self.since).as_secs_f64();
        let change = self.settings.refill - self.running as f64 / 1e3;
        (self.left + change * seconds).clamp(0.0, self.settings.budget)
    }

    fn settle(&mut self, now: Time) {
        (self.left, self.since) = (self.left(now), now);
    }

    fn start(&mut self, extra: u32, now: Time) {
        self.settle(now);
        self.running += u64::from(extra);
    }

    fn end(&mut self, extra: u32, now: Time) {
        self.settle(now);
        self.running = self.running.saturating_sub(u64::from(extra));
    }
}

impl Core {
    /// Cores above its request for a task that is launched now, in thousandths.
    pub(super) fn sprint(&mut self, serial: u64, stage: usize, now: Time) -> u32 {
        let boost = self.settings.sprint.boost;
        let Some(record) = self.records.get(&serial) else { return 0 };
        if boost <= 0.0 || record.job.priority != Class::High || self.sprints.left(now) <= 0.0 {
            return 0;
        }
        let extra = (record.stage(stage).need.0[0] as f64 * boost).clamp(0.0, EXTRA_MAX) as u32;
        self.sprints.start(extra, now);
        extra
    }

    /// A task has ended: what it sprinted with is given back.
    pub(super) fn sprint_ended(&mut self, (serial, stage, index): Key, now: Time) {
        let run = self.records.get(&serial).and_then(|record| record.stages.get(stage));
        if let Some(Phase::Live { sprint, .. }) = run.and_then(|run| run.tasks().get(&index)).map(|task| task.phase)
            && sprint > 0
        {
            self.sprints.end(sprint, now);
        }
    }

    /// Tasks that sprinted before a restart still do.
    pub(super) fn resume_sprints(&mut self, now: Time) {
        let tasks = self.records.values().flat_map(|record| &record.stages).flat_map(|run| run.tasks().values());
        let extra: u64 = tasks
            .map(|task| match task.phase {
                Phase::Live { sprint, .. } => u64::from(sprint),
                _ => 0,
            })
            .sum();
        self.sprints.settle(now);
        self.sprints.running = extra;
    }

    /// The share of a stage's tasks that is left out: what the settings say, as far as the stage allows it.
    pub(super) fn drop_share(&self, serial: u64, stage: usize) -> f64 {
        let Some(record) = self.records.get(&serial) else { return 0.0 };
        let Some(approximate) = &record.stage(stage).approximate else { return 0.0 };
        let others = self.active.iter().any(|other| *other != serial);
        if record.job.priority != Class::Low || (self.settings.drop_under_load && !others) {
            return 0.0;
        }
        self.settings.drop.clamp(0.0, approximate.drop)
    }

    /// All tasks of a stage that were not left out have ended. If the estimate is worse than the job accepts, those
    /// that were left out run after all; returns whether there are any.
    pub(super) fn run_dropped(&mut self, serial: u64, stage: usize, now: Time) -> bool {
        let Some(record) = self.records.get_mut(&serial) else { return false };
        let Some(approximate) = record.stage(stage).approximate.clone() else { return false };
        let run = &mut record.stages[stage];
        if run.counts.dropped == 0 {
            return false;
        }
        let good = match (&approximate.value, estimate(run, approximate.estimate, approximate.confidence)) {
            // Without values only the share counts, and that is within the limit.
            (None, _) => true,
            (Some(_), Some((value, Some(bound)))) => bound <= approximate.error * value.abs(),
            (Some(_), _) => false,
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
        self.changed.heads.insert(serial);
        (self.fresh, self.dirty) = (true, true);
        true
    }

    pub(super) fn estimate_view(&self, record: &Record, place: usize) -> Option<EstimateView> {
        let approximate = record.stage(place).approximate.as_ref()?;
        approximate.value.as_ref()?;
        let run = &record.stages[place];
        let (value, bound) = estimate(run, approximate.estimate, approximate.confidence)?;
        Some(EstimateView {
            statistic: format!("{:?}", approximate.estimate).to_lowercase(),
            value,
            bound,
            confidence: approximate.confidence,
            tasks: u32::try_from(values(run).count()).unwrap_or(u32::MAX),
            of: run.head.total.unwrap_or(run.next),
        })
    }
}

/// Passes over tasks that are to be left out, spread evenly over the stage.
pub(super) fn drop_next(stage: &Stage, run: &mut StageRun) -> Option<u32> {
    let drop = run.head.drop;
    // A task of unknown size is not left out: nobody could say what share of the input it is.
    let countable = run.head.total.is_some() && !matches!(stage.input, Input::Stages(_));
    if drop <= 0.0 || !countable {
        return None;
    }
    let index = f64::from(run.next);
    ((index * drop).floor() < ((index + 1.0) * drop).floor()).then_some(run.next)
}

/// A task that is left out.
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

/// An estimate for all tasks from the values of those that ran, and half of its interval: simple random sampling
/// without replacement, with Student's distribution.
fn estimate(run: &StageRun, statistic: Statistic, confidence: f64) -> Option<(f64, Option<f64>)> {
    let values: Vec<f64> = values(run).collect();
    let (ran, all) = (values.len() as f64, f64::from(run.head.total.unwrap_or(run.next)));
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / ran;
    let bound = if values.len() > 1 {
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (ran - 1.0);
        let rest = (1.0 - ran / all).max(0.0);
        Some(student(confidence, ran - 1.0) * (variance / ran * rest).sqrt())
    } else {
        (all <= 1.0).then_some(0.0)
    };
    Some(match statistic {
        Statistic::Mean => (mean, bound),
        Statistic::Sum | Statistic::Count => (mean * all, bound.map(|bound| bound * all)),
    })
}

/// The two-sided quantile of Student's distribution (Hill, CACM 396, by the normal quantile).
fn student(confidence: f64, freedom: f64) -> f64 {
    let z = normal(0.5 + confidence / 2.0);
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + g1 / freedom + g2 / freedom.powi(2)
}

/// The quantile of the normal distribution, within 4.5e-4 (Abramowitz and Stegun, 26.2.23).
fn normal(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).max(1e-12).ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t.powi(3))
}

/// The limits of a task that sprints.
pub(super) fn limits(stage: &Stage, extra: u32) -> BTreeMap<String, Scalar> {
    if extra == 0 {
        return BTreeMap::new();
    }
    let cores = (stage.need.0[0] as f64 + f64::from(extra)) / 1e3;
    [("cpus".to_owned(), Scalar { value: cores })].into()
}
