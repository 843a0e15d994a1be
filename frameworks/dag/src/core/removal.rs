//! Decides which outputs of ended jobs are removed from a shared directory: those that no stage reads any more.
//!
//! Pending removals are saved until they are done, so a framework that is killed continues with them at its next start.
//! The owner of the scheduler removes the files ([`WorkItem::Remove`]). A task that was abandoned because its agent was
//! unreachable may still write afterwards; such files stay.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::{Core, JobEvent, WorkItem};
use crate::job::Keep;

/// Number of failed removals that are kept.
const FAILED_MAX: usize = 1_000;

/// The outputs of one job to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// Name of the job.
    pub name: String,
    /// Path of the directory that all agents share.
    pub shared: String,
    /// Name of the job's directory in the shared one.
    pub directory: String,
    /// Stages that have written files.
    pub stages: Vec<StageRemoval>,
}

/// The outputs of one stage to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRemoval {
    /// Name of the stage, which is that of its directory.
    pub stage: String,
    /// Number of the stage's tasks: files of tasks with higher numbers do not belong to the job.
    pub tasks: u32,
    /// Whether published outputs are kept.
    pub keeps_outputs: bool,
}

/// All pending removals, by the serials of jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    under_way: BTreeMap<u64, Removal>,
    /// Removals that failed and are tried again at the next start.
    failed: BTreeMap<u64, Removal>,
}

impl Removals {
    pub(super) fn get(&self, serial: u64) -> Option<&Removal> {
        self.under_way.get(&serial).or_else(|| self.failed.get(&serial))
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }
}

/// Returns whether published outputs of a stage are kept after the end of its job.
fn keeps_outputs(record: &Record, place: usize) -> bool {
    match record.job.keep {
        Keep::All => true,
        Keep::Outputs => record.readers(place).next().is_none(),
        Keep::None => false,
    }
}

impl Removal {
    /// Returns the outputs to remove of a job whose outputs are in `shared`; `None` if all of them are kept.
    fn of(record: &Record, shared: &str) -> Option<Removal> {
        if record.job.keep == Keep::All {
            return None;
        }
        let stage_removal = |(place, stage): (usize, &crate::job::Stage)| {
            let tasks = record.stages[place].next;
            // Every runner creates a directory.
            (stage.needs_runner() && tasks > 0).then(|| StageRemoval {
                stage: stage.name.clone(),
                tasks,
                keeps_outputs: keeps_outputs(record, place),
            })
        };
        let stages: Vec<StageRemoval> = record.job.stages.iter().enumerate().filter_map(stage_removal).collect();
        let directory = record.directory.clone().filter(|_| !stages.is_empty())?;
        Some(Removal { name: record.name().to_owned(), shared: shared.to_owned(), directory, stages })
    }
}

impl Core {
    /// Returns the directory for a job's outputs, if all agents share one.
    pub(super) fn shared<'a>(&'a self, record: &'a Record) -> Option<&'a String> {
        record.job.shared.as_ref().or(self.settings.shared.as_ref())
    }

    /// Returns whether the outputs of a stage were removed: its job has ended, does not keep them, and has no pending
    /// removal.
    pub(super) fn is_removed(&self, record: &Record, place: usize) -> bool {
        let is_due = record.is_over() && record.directory.is_some() && !keeps_outputs(record, place);
        is_due && self.removals.get(record.serial).is_none()
    }

    /// Names the directory of a job whose tasks are about to be launched.
    ///
    /// The framework's id is part of the name: serials start anew in a framework that has lost its state, and other
    /// frameworks may use the same shared directory.
    pub(super) fn name_directory(&mut self, serial: u64) {
        let shares = |record: &Record| record.directory.is_none() && self.shared(record).is_some();
        if !self.records.get(&serial).is_some_and(shares) {
            return;
        }
        let Some(record) = self.records.get_mut(&serial) else { return };
        let framework = self.framework_id.as_deref().unwrap_or_default();
        record.directory = Some(format!("{}.{serial}.{framework}", record.job.name));
        self.changed.heads.insert(serial);
    }

    /// Requests the removal of a job's outputs that nothing reads any more, once the job has ended.
    pub(super) fn request_removal(&mut self, serial: u64) {
        let Some(record) = self.records.get(&serial) else { return };
        let Some(removal) = self.shared(record).and_then(|shared| Removal::of(record, shared)) else { return };
        self.work_items.push(WorkItem::Remove { serial, removal: removal.clone() });
        self.removals.under_way.insert(serial, removal);
        self.changed.removals.insert(serial);
    }

    /// Resumes the removals that were pending before a restart.
    pub(super) fn resume_removals(&mut self, kept: BTreeMap<u64, Removal>) {
        let item = |(&serial, removal): (&u64, &Removal)| WorkItem::Remove { serial, removal: removal.clone() };
        self.work_items.extend(kept.iter().map(item));
        self.removals.under_way = kept;
    }

    /// Records that a job's outputs were removed, or that they cannot be.
    pub(super) fn removed(&mut self, serial: u64, failed: Option<String>) {
        let Some(removal) = self.removals.under_way.remove(&serial) else { return };
        let name = removal.name.clone();
        let Some(why) = failed else {
            self.changed.removals.insert(serial);
            return self.record_event(JobEvent::Removed { name });
        };
        self.removals.failed.insert(serial, removal);
        if self.removals.failed.len() > FAILED_MAX
            && let Some((given_up, _)) = self.removals.failed.pop_first()
        {
            self.changed.removals.insert(given_up);
        }
        self.record_event(JobEvent::NotRemoved { name, why });
    }

    /// Forgets all removals, because the framework ends for good.
    pub(super) fn forget_removals(&mut self) {
        let Removals { under_way, failed } = std::mem::take(&mut self.removals);
        self.changed.removals.extend(under_way.into_keys().chain(failed.into_keys()));
    }
}
