//! Active sizing: new launches of a job request the resources that its tasks were measured to use, instead of those in
//! its job file.
//!
//! The model is the crate `advice`. Running tasks are never changed. No launch requests more than the file, unless a
//! task ran out of memory; then memory is raised step by step, up to [`MEM_FACTOR`] times the file's. Measurements
//! arrive as a request; `service::measure` obtains them. They are not saved over a restart of the scheduler; a memory
//! minimum that was learned is saved.

use std::collections::BTreeSet;
use std::sync::Arc;

use advice::{Advice, Amounts, History, Reading, Risk, Verdict};
use resources::Amount;
use sdk::v1::TaskStatus;
use sdk::v1::task_status::Reason;
use serde::Serialize;

use super::Core;
use super::record::{LiveState, Record, parse_task_id};
use crate::Need;
use crate::job::Job;

/// Maximum number of jobs whose measurements are kept; further jobs are launched as their files say.
const MEASURED_MAX: usize = 1_000;
/// Maximum factor by which a job's memory is raised above that of its file after tasks ran out of memory.
const MEM_FACTOR: i64 = 2;
/// Index of memory in a [`Need`].
const MEM: usize = 1;

/// Resource usage of a task up to a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Id of the task.
    pub task_id: String,
    /// Usage of the task's container.
    pub reading: Reading,
}

/// Agents at which tasks of this framework can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurable {
    /// Id of the framework; `None` before the first subscription.
    pub framework_id: Option<String>,
    /// Agents with running tasks, as `host:port`; empty if nothing is measured.
    pub agents: BTreeSet<String>,
}

/// Resources that new launches of a job request, and the reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizingView {
    /// Resources that the job file requests.
    pub requested: Need,
    /// Resources that new launches request.
    pub applied: Need,
    /// Number of tasks that were measured.
    pub tasks: usize,
    /// Number of measurements.
    pub measured: u64,
    /// Advice from the measurements; `None` without measurements.
    pub advice: Option<Advice>,
    /// Reasons, for people.
    pub why: Vec<String>,
}

/// Measured usage of a job's tasks, and the advice from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizing {
    history: History,
    advice: Option<Advice>,
    /// The job as it is launched; `None` if that does not differ from its file.
    job: Option<Arc<Job>>,
}

impl Record {
    /// Returns the job with the resources of new launches.
    pub(super) fn sized_job(&self) -> &Arc<Job> {
        self.sizing.job.as_ref().unwrap_or(self.job())
    }

    /// Removes the measurements of an earlier version.
    pub(super) fn forget_measurements(&mut self) {
        self.sizing = Sizing::default();
        self.head.mem_needed = None;
    }

    /// Computes the resources of new launches from the current version and the measurements. Returns whether they
    /// changed.
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
        let requested = Amounts { cpus: need.amount(0), mem: need.amount(MEM) };
        self.sizing.advice = Some(self.sizing.history.advise(requested, risk));
    }

    /// Records that a task with this much memory ran out of it. The new minimum is the file's memory if the task had
    /// less, otherwise 1.5 times what it had.
    fn lacked_memory(&mut self, given: i64) {
        let requested = self.job().need.0[MEM];
        let needed = if given < requested { requested } else { given.saturating_add(given / 2) };
        let needed = needed.min(requested.saturating_mul(MEM_FACTOR));
        self.head.mem_needed = Some(self.head.mem_needed.unwrap_or_default().max(needed));
    }
}

/// Returns the resources that a launch requests: the advice, but not more than the file, and at least the memory that
/// is known to be needed.
fn sized(requested: &Need, advice: Option<&Advice>, mem_needed: Option<i64>) -> Need {
    let mut need = *requested;
    if let Some(advice) = advice {
        let wanted = advice.recommended();
        for (amount, wanted) in need.0.iter_mut().zip([wanted.cpus, wanted.mem]) {
            *amount = wanted.thousandths().min(*amount);
        }
    }
    need.0[MEM] = need.0[MEM].max(mem_needed.unwrap_or_default());
    need
}

impl Core {
    /// Returns the agents at which tasks can be measured; none without active sizing.
    pub(super) fn measurable(&self) -> Measurable {
        if self.knobs.active_sizing.is_none() {
            return Measurable::default();
        }
        let live = self.records.values().filter(|r| !r.is_over()).flat_map(|r| r.instances().values());
        let running = live.filter_map(|i| i.live()).filter(|live| live.stage == LiveState::Running);
        let agents = running.map(|live| live.place.agent.clone()).filter(|agent| !agent.is_empty()).collect();
        Measurable { framework_id: self.framework_id.clone(), agents }
    }

    /// Applies measurements; new launches of their jobs follow them.
    pub(super) fn measured(&mut self, measurements: Vec<Measurement>) {
        let Some(risk) = self.knobs.active_sizing else { return };
        let mut kept = self.records.values().filter(|record| record.sizing.advice.is_some()).count();
        let mut changed = BTreeSet::new();
        for Measurement { task_id, reading } in measurements {
            let current =
                parse_task_id(&task_id).filter(|(serial, number)| self.is_current(*serial, *number, &task_id));
            let Some((serial, number)) = current else { continue };
            let Some(record) = self.records.get_mut(&serial) else { continue };
            // Tasks of an older version are no evidence about this one.
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
            // Waiting tasks may fit now.
            self.dirty |= record.resize();
        }
    }

    /// Raises the memory of new launches if a task ran out of memory.
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

    /// Returns the resources that new launches of a job request; `None` without active sizing.
    pub(super) fn sizing_view(&self, record: &Record) -> Option<SizingView> {
        self.knobs.active_sizing?;
        let (requested, sizing) = (record.job().need, &record.sizing);
        let mut why: Vec<String> = Vec::new();
        match &sizing.advice {
            None => why.push("nothing was measured yet: launches ask for what the job file says".to_owned()),
            Some(advice) => why.extend([("cpus", &advice.cpus), ("mem", &advice.mem)].map(|(name, part)| {
                let bounded = part.verdict == Verdict::RequestsTooLittle;
                let limit = if bounded { "; launches ask for no more than the job file" } else { "" };
                format!("{name}: {}{limit}", part.why)
            })),
        }
        if let Some(needed) = record.head.mem_needed {
            let needed = Amount::from_thousandths(needed);
            why.push(format!("mem: a task ended for lack of memory, so launches ask for at least {needed} MB"));
        }
        Some(SizingView {
            requested,
            applied: record.sized_job().need,
            tasks: sizing.history.tasks(),
            measured: sizing.history.measured(),
            advice: sizing.advice.clone(),
            why,
        })
    }
}
