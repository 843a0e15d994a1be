//! What is removed of a job that has ended: outputs in a shared directory that no stage reads any more.
//!
//! What is to be removed is kept until it is done, so that a framework that is killed meanwhile goes on at its next
//! start. The files are removed by the owner of the scheduler ([`Wish::Remove`]); how is elsewhere. A task that was
//! given up because its agent did not answer may still write after that: what it writes stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::{Core, Happening, Wish};
use crate::job::Keep;

/// How many jobs are kept of which nothing could be removed.
const FAILED_MAX: usize = 1_000;

/// What is to be removed of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// The job's name.
    pub name: String,
    /// The directory that all agents share.
    pub shared: String,
    /// The name of the job's directory in it.
    pub directory: String,
    /// The stages that have left files.
    pub stages: Vec<Leftover>,
}

/// What is to be removed of one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// The stage's name, which is that of its directory.
    pub stage: String,
    /// The number of its tasks: what has a higher number is not of the job.
    pub tasks: u32,
    /// Whether published outputs stay.
    pub keeps_outputs: bool,
}

/// All that is to be removed, by the serials of jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    under_way: BTreeMap<u64, Removal>,
    /// To be tried again at the next start.
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

/// Whether published outputs of a stage stay when its job has ended.
fn keeps_outputs(record: &Record, place: usize) -> bool {
    match record.job.keep {
        Keep::All => true,
        Keep::Outputs => record.readers(place).next().is_none(),
        Keep::None => false,
    }
}

impl Removal {
    /// What is to be removed of a job whose outputs are in `shared`; none if all of it stays.
    fn of(record: &Record, shared: &str) -> Option<Removal> {
        if record.job.keep == Keep::All {
            return None;
        }
        let leftover = |(place, stage): (usize, &crate::job::Stage)| {
            let tasks = record.stages[place].next;
            // Every runner makes a directory.
            (stage.needs_runner() && tasks > 0).then(|| Leftover {
                stage: stage.name.clone(),
                tasks,
                keeps_outputs: keeps_outputs(record, place),
            })
        };
        let stages: Vec<Leftover> = record.job.stages.iter().enumerate().filter_map(leftover).collect();
        let directory = record.directory.clone().filter(|_| !stages.is_empty())?;
        Some(Removal { name: record.name().to_owned(), shared: shared.to_owned(), directory, stages })
    }
}

impl Core {
    /// The directory for a job's outputs, if all agents share one.
    pub(super) fn shared<'a>(&'a self, record: &'a Record) -> Option<&'a String> {
        record.job.shared.as_ref().or(self.settings.shared.as_ref())
    }

    /// Whether the outputs of a stage were removed: its job has ended and does not keep them, and no removal is left to
    /// be done.
    pub(super) fn is_removed(&self, record: &Record, place: usize) -> bool {
        let is_due = record.is_over() && record.directory.is_some() && !keeps_outputs(record, place);
        is_due && self.removals.get(record.serial).is_none()
    }

    /// A job's tasks are to be launched: its directory has a name from now on. The framework's id is a part of it,
    /// since serials begin anew in a framework without its state, and other frameworks may have the same directory.
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

    /// A job has ended: what nothing reads any more is to be removed.
    pub(super) fn remove_leftovers(&mut self, serial: u64) {
        let Some(record) = self.records.get(&serial) else { return };
        let Some(removal) = self.shared(record).and_then(|shared| Removal::of(record, shared)) else { return };
        self.wishes.push(Wish::Remove { serial, removal: removal.clone() });
        self.removals.under_way.insert(serial, removal);
        self.changed.removals.insert(serial);
    }

    /// Goes on with what was to be removed before a restart.
    pub(super) fn resume_removals(&mut self, kept: BTreeMap<u64, Removal>) {
        let wish = |(&serial, removal): (&u64, &Removal)| Wish::Remove { serial, removal: removal.clone() };
        self.wishes.extend(kept.iter().map(wish));
        self.removals.under_way = kept;
    }

    /// What a job left was removed, or cannot be.
    pub(super) fn removed(&mut self, serial: u64, failed: Option<String>) {
        let Some(removal) = self.removals.under_way.remove(&serial) else { return };
        let name = removal.name.clone();
        let Some(why) = failed else {
            self.changed.removals.insert(serial);
            return self.tell(Happening::Removed { name });
        };
        self.removals.failed.insert(serial, removal);
        if self.removals.failed.len() > FAILED_MAX
            && let Some((given_up, _)) = self.removals.failed.pop_first()
        {
            self.changed.removals.insert(given_up);
        }
        self.tell(Happening::NotRemoved { name, why });
    }

    /// The framework ends for good.
    pub(super) fn forget_removals(&mut self) {
        let Removals { under_way, failed } = std::mem::take(&mut self.removals);
        self.changed.removals.extend(under_way.into_keys().chain(failed.into_keys()));
    }
}
