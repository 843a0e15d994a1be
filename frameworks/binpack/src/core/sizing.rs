//! Active sizing: new launches of a job ask for what its tasks were measured to use, instead of what its file says.
//!
//! The model is the crate `advice`. Running tasks are never touched. No launch asks for more than the file says, unless
//! a task ended for lack of memory; then memory is raised step by step, up to [`MEM_FACTOR`] times the file's.
//! Measurements come in as a request; how they are obtained is elsewhere (`service::measure`). They are not kept over a
//! restart of the scheduler, what was learned from a lack of memory is.

use std::collections::BTreeSet;
use std::sync::Arc;

use advice::{Advice, Amounts, History, Reading, Risk, Verdict};
use resources::Amount;
use sdk::v1::TaskStatus;
use sdk::v1::task_status::Reason;
use serde::Serialize;

use super::Core;
use super::record::{Record, Stage, owner};
use crate::Need;
use crate::job::Job;

/// Jobs whose measurements are kept; further ones are launched as their files say.
const MEASURED_MAX: usize = 1_000;
/// How many times the memory of its file a job may ask for after tasks ended for lack of it.
const MEM_FACTOR: i64 = 2;
/// Where memory stands in a need.
const MEM: usize = 1;

/// What a task has used until a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The task's id.
    pub task_id: String,
    /// What its container has used.
    pub reading: Reading,
}

/// Where tasks of this framework can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurable {
    /// The framework's id, once there is one.
    pub framework_id: Option<String>,
    /// The agents with running tasks, as `host:port`; none if nothing is measured.
    pub agents: BTreeSet<String>,
}

/// What new launches of a job ask for, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizingView {
    /// What the job's file asks for.
    pub requested: Need,
    /// What new launches ask for.
    pub applied: Need,
    /// Number of tasks that were measured.
    pub tasks: usize,
    /// Number of measurements.
    pub measured: u64,
    /// What follows from them; absent without measurements.
    pub advice: Option<Advice>,
    /// Why, in words.
    pub why: Vec<String>,
}

/// What is known of the use of a job's tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizing {
    history: History,
    advice: Option<Advice>,
    /// The job as it is launched, if that differs from its file.
    job: Option<Arc<Job>>,
}

impl Record {
    /// The job as new launches have it.
    pub(super) fn sized_job(&self) -> &Arc<Job> {
        self.sizing.job.as_ref().unwrap_or(self.job())
    }

    /// Forgets what was measured of an earlier version.
    pub(super) fn forget_measurements(&mut self) {
        self.sizing = Sizing::default();
        self.head.mem_needed = None;
    }

    /// Makes what is launched agree with the current version and what is known of it. Returns whether that changed.
    pub(super) fn resize(&mut self) -> bool {
        let job = self.job();
        let need = sized(&job.need, self.sizing.advice.as_ref(), self.head.mem_needed);
        let sized = (need != job.need).then(|| Arc::new(Job { need, ..(**job).clone() }));
        let is_changed = sized.as_ref().map_or(job.need, |job| job.need) != self.sized_job().need;
        self.sizing.job = sized;
        is_changed
    }

    fn advise(&mut self, risk: Risk) {
        let need = &self.job().need;
        let asked = Amounts { cpus: need.amount(0), mem: need.amount(MEM) };
        self.sizing.advice = Some(self.sizing.history.advise(asked, risk));
    }

    /// A task that had so much memory ended for lack of it: the file's request if it had less, else half as much again.
    fn lacked_memory(&mut self, given: i64) {
        let asked = self.job().need.0[MEM];
        let needed = if given < asked { asked } else { given.saturating_add(given / 2) };
        let needed = needed.min(asked.saturating_mul(MEM_FACTOR));
        self.head.mem_needed = Some(self.head.mem_needed.unwrap_or_default().max(needed));
    }
}

/// What a launch asks for: the advice, but not more than the file; and at least the memory that is known to be needed.
fn sized(asked: &Need, advice: Option<&Advice>, mem_needed: Option<i64>) -> Need {
    let mut need = *asked;
    if let Some(advice) = advice {
        let wanted = advice.wanted();
        for (amount, wanted) in need.0.iter_mut().zip([wanted.cpus, wanted.mem]) {
            *amount = wanted.thousandths().min(*amount);
        }
    }
    need.0[MEM] = need.0[MEM].max(mem_needed.unwrap_or_default());
    need
}

impl Core {
    /// Where tasks can be measured, if that is of use.
    pub(super) fn measurable(&self) -> Measurable {
        if self.knobs.active_sizing.is_none() {
            return Measurable::default();
        }
        let live = self.records.values().filter(|r| !r.is_over()).flat_map(|r| r.instances().values());
        let running = live.filter_map(|i| i.live()).filter(|live| live.stage == Stage::Running);
        let agents = running.map(|live| live.place.agent.clone()).filter(|agent| !agent.is_empty()).collect();
        Measurable { framework_id: self.framework_id.clone(), agents }
    }

    /// Takes measurements in; new launches of their jobs follow them.
    pub(super) fn measured(&mut self, measurements: Vec<Measurement>) {
        let Some(risk) = self.knobs.active_sizing else { return };
        let mut kept = self.records.values().filter(|record| record.sizing.advice.is_some()).count();
        let mut changed = BTreeSet::new();
        for Measurement { task_id, reading } in measurements {
            let current = owner(&task_id).filter(|(serial, number)| self.is_current(*serial, *number, &task_id));
            let Some((serial, number)) = current else { continue };
            let Some(record) = self.records.get_mut(&serial) else { continue };
            // Tasks of an older version say nothing of this one.
            let version = record.current().number;
            if record.get(number).is_none_or(|instance| instance.version != version) {
                continue;
            }
            if record.sizing.advice.is_none() && !changed.contains(&serial) {
                if kept >= MEASURED_MAX {
                    continue;
                }
                kept += 1;
            }
            record.sizing.history.add(&task_id, reading);
            changed.insert(serial);
        }
        for serial in changed {
            let Some(record) = self.records.get_mut(&serial) else { continue };
            record.advise(risk);
            // What waits may have room now.
            self.dirty |= record.resize();
        }
    }

    /// Learns from a task that ended for lack of memory.
    pub(super) fn learn_from_end(&mut self, serial: u64, number: u32, status: &TaskStatus) {
        if self.knobs.active_sizing.is_none() || status.reason() != Reason::ContainerLimitationMemory {
            return;
        }
        let Some(record) = self.records.get_mut(&serial) else { return };
        let Some(given) = record.get(number).and_then(|i| i.live()).map(|live| live.need.0[MEM]) else { return };
        record.lacked_memory(given);
        record.resize();
        self.changed.heads.insert(serial);
    }

    /// What new launches of a job ask for; none without active sizing.
    pub(super) fn sizing_view(&self, record: &Record) -> Option<SizingView> {
        self.knobs.active_sizing?;
        let (asked, sizing) = (record.job().need, &record.sizing);
        let mut why: Vec<String> = Vec::new();
        match &sizing.advice {
            None => why.push("nothing was measured yet: launches ask for what the job file says".to_owned()),
            Some(advice) => why.extend([("cpus", &advice.cpus), ("mem", &advice.mem)].map(|(name, part)| {
                let bounded = part.verdict == Verdict::AsksTooLittle;
                let limit = if bounded { "; launches ask for no more than the job file" } else { "" };
                format!("{name}: {}{limit}", part.why)
            })),
        }
        if let Some(needed) = record.head.mem_needed {
            let needed = Amount::from_thousandths(needed);
            why.push(format!("mem: a task ended for lack of memory, so launches ask for at least {needed} MB"));
        }
        Some(SizingView {
            requested: asked,
            applied: record.sized_job().need,
            tasks: sizing.history.tasks(),
            measured: sizing.history.measured(),
            advice: sizing.advice.clone(),
            why,
        })
    }
}
