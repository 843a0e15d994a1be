//! Learns from ended jobs which fraction of tasks to drop (`drop`), and at what age a job sprints (`sprint`). It
//! launches nothing.
//!
//! Only the last jobs of each class are kept, so it follows changes and its memory is bounded.

mod drop;
mod sprint;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{Outcome, Record};
use super::settings::After;
use super::{Core, Settings};
use crate::job::Class;

/// Number of ended jobs of a class that are remembered.
const JOBS_MAX: usize = 96;
/// Number of ended jobs of a class that are needed for a choice.
const JOBS_NEEDED: usize = 8;
/// Number of programs whose rates are remembered: those whose tasks finished last.
const PROGRAMS_MAX: usize = 500;
/// Number of tasks of a program from which the sums of older tasks are halved.
const TASKS_MAX: u32 = 1_000;
/// Number of tasks of a program that run without a sprint, for comparison.
const PLAIN_NEEDED: u32 = 8;

/// Measurements of a job that has finished.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct MeasuredJob {
    /// Time of the submission, in seconds since the epoch.
    submitted: f64,
    /// Seconds from the submission to the end.
    response: f64,
    /// Number of tasks of the approximate stages, including dropped ones.
    tasks: u32,
    /// Fraction of the tasks of approximate stages that was dropped.
    dropped: f64,
    /// Largest fraction that the job allows to drop.
    allowed: f64,
    /// Mean duration of a task of the approximate stages, in seconds.
    wave: f64,
    /// Squared coefficient of variation of the durations of these tasks.
    spread: f64,
    /// Slot-seconds of the other stages.
    other: f64,
    /// Slot-seconds of tasks that sprinted, in all stages.
    sprinted: f64,
    /// Number of tasks that the job can run at once: those of its widest stage.
    width: u32,
    /// Mean number of cores that a task requests.
    cores: f64,
}

impl MeasuredJob {
    /// Returns the slot-seconds of all tasks that ran.
    fn work(&self) -> f64 {
        self.wave * f64::from(self.tasks) * (1.0 - self.dropped) + self.other
    }
}

/// Durations of a program's tasks without and with sprints: sum in seconds, and number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Rates {
    plain: (f64, u32),
    sprinted: (f64, u32),
    /// [`Tuning::uses`] at the last task.
    used: u64,
}

/// The statistics of ended jobs, and the choices that follow from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tuning {
    jobs: [VecDeque<MeasuredJob>; 3],
    rates: BTreeMap<String, Rates>,
    /// Number of tasks in `rates`, including those of forgotten programs.
    uses: u64,
    windows: VecDeque<sprint::Window>,
    /// Number of jobs of high class since the last window.
    fresh: usize,
    /// Fraction of tasks to drop.
    drop: f64,
    why_drop: String,
    /// Age from which a job sprints, in seconds.
    after: f64,
    why_sprint: String,
}

/// The choices that were learned from earlier jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TuningView {
    /// Fraction of tasks that jobs of low priority drop, if it is learned.
    pub drop: Option<f64>,
    /// Age from which tasks of a job of high priority sprint, in seconds, if it is learned.
    pub sprint_after: Option<f64>,
    /// Speed of tasks that sprint relative to others, if it was measured.
    pub sprint_rate: Option<f64>,
    /// Reasons of the choices, in words.
    pub why: Vec<String>,
}

impl Tuning {
    /// Records the duration of a task that has finished.
    pub(super) fn task_finished(&mut self, program: &str, took: Duration, sprinted: bool) {
        if self.rates.len() >= PROGRAMS_MAX && !self.rates.contains_key(program) {
            let oldest = self.rates.iter().min_by_key(|(_, rates)| rates.used).map(|(program, _)| program.clone());
            oldest.map(|program| self.rates.remove(&program));
        }
        self.uses += 1;
        let rates = self.rates.entry(program.to_owned()).or_default();
        rates.used = self.uses;
        let (sum, count) = if sprinted { &mut rates.sprinted } else { &mut rates.plain };
        if *count >= TASKS_MAX {
            (*sum, *count) = (*sum / 2.0, *count / 2);
        }
        (*sum, *count) = (*sum + took.as_secs_f64(), *count + 1);
    }

    /// Returns whether a task of a program runs without a sprint for comparison: one in eight of the first tasks.
    pub(super) fn is_comparison(&self, program: &str, index: u32) -> bool {
        index % 8 == 7 && self.rates.get(program).is_none_or(|rates| rates.plain.1 < PLAIN_NEEDED)
    }

    /// Returns the speed of tasks that sprint relative to others; `None` until enough of both kinds have finished.
    fn marginal(&self) -> Option<f64> {
        let known = self.rates.values().filter(|rates| rates.plain.1 >= 3 && rates.sprinted.1 >= 3);
        let (plain, sprinted) = known.fold((0.0, 0.0), |(plain, sprinted), rates| {
            let mean = rates.plain.0 / f64::from(rates.plain.1);
            (plain + mean * f64::from(rates.sprinted.1), sprinted + rates.sprinted.0)
        });
        (sprinted > 0.0).then(|| plain / sprinted)
    }

    /// Learns from a job that has ended; `slots` tasks of its kind can run at once.
    fn learn(&mut self, class: Class, job: MeasuredJob, slots: u32, settings: &Settings) {
        let jobs = &mut self.jobs[class as usize];
        if jobs.len() >= JOBS_MAX {
            jobs.pop_front();
        }
        jobs.push_back(job);
        if settings.drop_auto {
            self.choose_drop(slots, settings);
        }
        if settings.sprint.after == After::Auto && class == Class::High {
            self.choose_sprint(slots, settings);
        }
    }

    /// Returns the arrival rate of a class, in jobs per second.
    fn rate(&self, class: Class) -> f64 {
        let jobs = &self.jobs[class as usize];
        let (Some(first), Some(last)) =
            (jobs.iter().map(|job| job.submitted).reduce(f64::min), jobs.len().checked_sub(1))
        else {
            return 0.0;
        };
        let latest = jobs.iter().map(|job| job.submitted).fold(first, f64::max);
        last as f64 / (latest - first).max(1e-3)
    }
}

impl Core {
    /// Returns the fraction of tasks to drop in stages that allow it.
    pub(super) fn drop_fraction(&self) -> f64 {
        if self.settings.drop_auto { self.tuning.drop.min(self.settings.drop) } else { self.settings.drop }
    }

    /// Returns the age from which tasks of a job of high class sprint.
    pub(super) fn sprint_after(&self) -> Duration {
        match self.settings.sprint.after {
            After::Age(age) => age,
            After::Auto => Duration::from_secs_f64(self.tuning.after.clamp(0.0, 1e9)),
        }
    }

    /// Learns from a job that has ended, if it has finished.
    pub(super) fn learn_job(&mut self, serial: u64) {
        let wanted = self.settings.drop_auto || self.settings.sprint.after == After::Auto;
        let Some(record) = self.records.get(&serial).filter(|_| wanted) else { return };
        let Some(job) = measured(record).filter(|_| record.outcome == Some(Outcome::Finished)) else { return };
        let widest = (0..record.stages.len()).max_by_key(|stage| record.stages[*stage].counts.finished).unwrap_or(0);
        let (slots, class) = (self.slots(serial, widest), record.job.priority);
        self.tuning.learn(class, job, slots, &self.settings);
        self.changed.learned = true;
    }

    /// Returns the learned choices, if the settings ask for any.
    pub(super) fn tuning_view(&self) -> Option<TuningView> {
        let (drops, sprints) = (self.settings.drop_auto, self.settings.sprint.after == After::Auto);
        let why = [(drops, &self.tuning.why_drop), (sprints, &self.tuning.why_sprint)];
        (drops || sprints).then(|| TuningView {
            drop: drops.then(|| self.drop_fraction()),
            sprint_after: sprints.then(|| self.sprint_after().as_secs_f64()),
            sprint_rate: self.tuning.marginal(),
            why: why.into_iter().filter(|(is_on, why)| *is_on && !why.is_empty()).map(|(_, why)| why.clone()).collect(),
        })
    }

    /// Returns the reasons of the choices for jobs of this class, in words.
    pub(super) fn tuned(&self, record: &Record) -> Vec<String> {
        let why = match record.job.priority {
            Class::Low if self.settings.drop_auto => &self.tuning.why_drop,
            Class::High if self.settings.sprint.after == After::Auto => &self.tuning.why_sprint,
            _ => return Vec::new(),
        };
        if why.is_empty() { vec![unknown(0)] } else { vec![why.clone()] }
    }
}

/// Returns the text that replaces a choice before enough jobs have ended.
fn unknown(jobs: usize) -> String {
    format!("nothing is chosen yet: {jobs} jobs of the class have finished, and {JOBS_NEEDED} are needed")
}

/// Returns the measurements of a job that has ended.
fn measured(record: &Record) -> Option<MeasuredJob> {
    let response = record.ended?.since(record.submitted).as_secs_f64();
    let mut job = MeasuredJob {
        submitted: record.submitted.as_secs_f64(),
        response,
        tasks: 0,
        dropped: 0.0,
        allowed: 0.0,
        wave: 0.0,
        spread: 0.0,
        other: 0.0,
        sprinted: 0.0,
        width: 1,
        cores: 0.0,
    };
    let (mut ran, mut seconds, mut squares, mut weight) = (0_u32, 0.0, 0.0, 0.0);
    for (place, run) in record.stages.iter().enumerate() {
        let (stage, took) = (record.stage(place), run.took.0 as f64 / 1e3);
        job.width = job.width.max(run.counts.finished);
        job.sprinted += run.sprinted as f64 / 1e3;
        job.cores += took * stage.need.0[0] as f64 / 1e3;
        weight += took;
        match &stage.approximate {
            Some(approximate) => {
                job.tasks = job.tasks.saturating_add(run.counts.finished).saturating_add(run.counts.dropped);
                job.allowed = job.allowed.max(approximate.drop);
                ran = ran.saturating_add(run.took.1);
                seconds += took;
                squares += run.squares;
            }
            None => job.other += took,
        }
    }
    job.cores = if weight > 0.0 { job.cores / weight } else { 0.0 };
    if ran > 0 {
        job.wave = seconds / f64::from(ran);
        job.dropped = 1.0 - (f64::from(ran) / f64::from(job.tasks.max(1))).min(1.0);
        let variance = (squares / f64::from(ran) - job.wave * job.wave).max(0.0);
        job.spread = if job.wave > 0.0 { variance / (job.wave * job.wave) } else { 0.0 };
    }
    Some(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_was_not_used_for_longest_is_forgotten() {
        let mut tuning = Tuning::default();
        let mut finish = |program: &str| tuning.task_finished(program, Duration::from_secs(1), false);
        // The first program by name is in use, and the last one by name is the oldest.
        finish("z");
        (1..PROGRAMS_MAX).for_each(|number| finish(&format!("p{number}")));
        finish("a");
        finish("p1");
        finish("b");
        assert_eq!(tuning.rates.len(), PROGRAMS_MAX);
        let known = ["a", "b", "p1", "p2", "p3", "z"].map(|program| tuning.rates.contains_key(program));
        assert_eq!(known, [true, true, true, false, true, false]);
    }
}
