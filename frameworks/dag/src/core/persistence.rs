//! Saves and restores the state that survives a restart: a job's head, its input files in pieces, its launched tasks,
//! and what was learned of stages.
//!
//! Every later version reads this state, so a new field needs a default.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Time;
use sdk::Calls;
use serde::{Deserialize, Serialize};

use super::record::{Head, Machine, Phase, Record, StagePhase, Task};
use super::removal::Removal;
use super::tuning::Tuning;
use super::{Core, approximate, sizes};
use crate::order::History;
use crate::sizing::{Memory, Sizing};
use crate::split::Pieces;

/// Key of the state of the whole scheduler.
const META: &str = "meta";
/// Key of the task sizes that earlier runs found.
const SIZES: &str = "learned/sizes";
/// Key of the durations of earlier runs.
const DURATIONS: &str = "learned/durations";
/// First component of the keys of pending removals.
const REMOVE: &str = "remove";
/// Key of the statistics for drops and sprints.
const TUNING: &str = "learned/tuning";

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Meta {
    next_serial: u64,
}

/// State that has changed since the last save.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsavedChanges {
    pub(super) meta: bool,
    pub(super) heads: BTreeSet<u64>,
    /// Stages whose inputs were examined.
    pub(super) inputs: BTreeSet<(u64, usize)>,
    /// Stages whose task sizes are being chosen.
    pub(super) sizings: BTreeSet<(u64, usize)>,
    pub(super) tasks: BTreeSet<(u64, usize, u32)>,
    pub(super) learned: bool,
    /// Jobs whose removals have started or ended.
    pub(super) removals: BTreeSet<u64>,
    /// Records of forgotten jobs, with the tasks of each stage.
    pub(super) gone: Vec<Record>,
}

/// An entry of the saved state that cannot be read, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("the saved entry '{key}' cannot be read: {why}")]
pub struct Damaged {
    key: String,
    why: String,
}

fn head_key(serial: u64) -> String {
    format!("job/{serial:020}")
}

fn removal_key(serial: u64) -> String {
    format!("{REMOVE}/{serial:020}")
}

fn input_key(serial: u64, stage: usize) -> String {
    format!("input/{serial:020}/{stage:05}")
}

fn sizing_key(serial: u64, stage: usize) -> String {
    format!("sizing/{serial:020}/{stage:05}")
}

fn task_key(serial: u64, stage: usize, index: u32) -> String {
    format!("task/{serial:020}/{stage:05}/{index:010}")
}

/// Parses the numbers of a key after its first component.
fn numbers<const N: usize>(key: &str) -> Option<[u64; N]> {
    let parts: Option<Vec<u64>> = key.split('/').skip(1).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

impl Core {
    /// Saves the state that has changed.
    pub(super) fn save(&mut self, calls: &mut Calls) {
        let changed = std::mem::take(&mut self.changed);
        let mut set = |key: String, value: Option<Vec<u8>>| {
            if let Some(value) = value {
                calls.save(&key, value);
            }
        };
        if changed.meta {
            set(META.to_owned(), serde_json::to_vec(&Meta { next_serial: self.next_serial }).ok());
        }
        for serial in changed.heads {
            set(head_key(serial), self.records.get(&serial).and_then(|r| serde_json::to_vec(&r.head()).ok()));
        }
        let run = |serial: &u64, stage: usize| self.records.get(serial).and_then(|r| r.stages.get(stage));
        for (serial, stage) in changed.inputs {
            let pieces = run(&serial, stage).and_then(|run| serde_json::to_vec(&*run.pieces).ok());
            set(input_key(serial, stage), pieces);
        }
        for (serial, stage) in changed.sizings {
            let sizing = run(&serial, stage).and_then(|run| run.sizing.as_ref());
            set(sizing_key(serial, stage), sizing.and_then(|sizing| serde_json::to_vec(sizing).ok()));
        }
        for (serial, stage, index) in changed.tasks {
            let task = run(&serial, stage).and_then(|run| run.tasks().get(&index));
            set(task_key(serial, stage, index), task.and_then(|task| serde_json::to_vec(task).ok()));
        }
        if changed.learned {
            set(SIZES.to_owned(), serde_json::to_vec(&self.memory).ok());
            set(DURATIONS.to_owned(), serde_json::to_vec(&self.history).ok());
            if self.tuning_view().is_some() {
                set(TUNING.to_owned(), serde_json::to_vec(&self.tuning).ok());
            }
        }
        for serial in changed.removals {
            match self.removals.get(serial).and_then(|removal| serde_json::to_vec(removal).ok()) {
                Some(value) => calls.save(&removal_key(serial), value),
                None => calls.forget(&removal_key(serial)),
            }
        }
        for record in changed.gone {
            forget(&record, calls);
        }
    }
}

fn forget(record: &Record, calls: &mut Calls) {
    calls.forget(&head_key(record.serial));
    for (stage, run) in record.stages.iter().enumerate() {
        calls.forget(&input_key(record.serial, stage));
        calls.forget(&sizing_key(record.serial, stage));
        for index in run.tasks().keys() {
            calls.forget(&task_key(record.serial, stage, *index));
        }
    }
}

/// The state that was restored.
#[derive(Debug, Default)]
pub(super) struct RestoredState {
    pub(super) records: BTreeMap<u64, Record>,
    pub(super) next_serial: u64,
    pub(super) memory: Memory,
    pub(super) history: History,
    pub(super) tuning: Tuning,
    pub(super) removals: BTreeMap<u64, Removal>,
}

/// Reads the saved state.
///
/// # Errors
/// The first entry that cannot be read.
pub(super) fn restore(entries: &BTreeMap<String, Vec<u8>>, now: Time) -> Result<RestoredState, Damaged> {
    let mut restored = RestoredState::default();
    let mut machines: BTreeSet<Arc<Machine>> = BTreeSet::new();
    // Keys are sorted, so a job's head precedes its inputs and its tasks.
    for (key, value) in entries.iter().filter(|(key, _)| key.starts_with("job/")) {
        let head: Head = read(key, value)?;
        if head.job.name.is_empty() || head.job.stages.len() != head.stages.len() {
            return Err(damaged(key, "it has no name, or not as many stages as its job"));
        }
        restored.records.insert(head.serial, Record::of(head));
    }
    for (key, value) in entries {
        let kind = key.split('/').next().unwrap_or_default();
        match kind {
            META => restored.next_serial = read::<Meta>(key, value)?.next_serial,
            "learned" if key == SIZES => restored.memory = read(key, value)?,
            "learned" if key == DURATIONS => restored.history = read(key, value)?,
            "learned" if key == TUNING => restored.tuning = read(key, value)?,
            REMOVE => {
                let [serial] = numbers(key).ok_or_else(|| damaged(key, "it names no job"))?;
                restored.removals.insert(serial, read(key, value)?);
            }
            "input" | "sizing" => {
                let [serial, stage] = numbers(key).ok_or_else(|| damaged(key, "it names no stage"))?;
                let Some(record) = restored.records.get_mut(&serial) else { continue };
                let Some(run) = record.stages.get_mut(stage as usize) else { continue };
                match kind {
                    "input" => run.pieces = Arc::new(read::<Pieces>(key, value)?),
                    _ => run.sizing = Some(read::<Sizing>(key, value)?),
                }
            }
            "task" => {
                let [serial, stage, index] = numbers(key).ok_or_else(|| damaged(key, "it names no task"))?;
                let mut task: Task = read(key, value)?;
                task.machine = shared(&mut machines, task.machine);
                let Some(record) = restored.records.get_mut(&serial) else { continue };
                let Some(run) = record.stages.get_mut(stage as usize) else { continue };
                let index = u32::try_from(index).map_err(|_| damaged(key, "it names no task"))?;
                run.insert(index, task);
            }
            _ => {}
        }
    }
    for record in restored.records.values_mut() {
        complete_record(record, now);
    }
    for record in restored.records.values_mut().filter(|record| record.stages.iter().any(|run| run.next > 0)) {
        // Jobs of older versions have a directory with this name.
        let serial = record.serial;
        record.directory.get_or_insert_with(|| format!("{}.{serial}", record.job.name));
    }
    let next = restored.records.keys().next_back().map_or(1, |last| last + 1);
    restored.next_serial = restored.next_serial.max(next);
    Ok(restored)
}

/// Derives the state of a job that is not saved.
fn complete_record(record: &mut Record, now: Time) {
    for stage in 0..record.stages.len() {
        let latest = now + record.stage(stage).restart.longest;
        let run = &mut record.stages[stage];
        let waiting: Vec<u32> =
            run.tasks().iter().filter(|(_, t)| matches!(t.phase, Phase::Waiting(_))).map(|(index, _)| *index).collect();
        for index in waiting {
            // The clock may have been set back since: no wait is longer than the job's rule allows.
            run.change(index, |task| {
                if let Phase::Waiting(at) = &mut task.phase {
                    *at = latest.min(*at);
                }
            });
        }
        if run.head.phase == StagePhase::Open {
            sizes::compute_left(record, stage);
            record.stages[stage].tasks_to_drop = approximate::tasks_to_drop(record, stage);
        }
    }
}

/// Returns the shared record of an agent that equals this one.
fn shared(machines: &mut BTreeSet<Arc<Machine>>, machine: Arc<Machine>) -> Arc<Machine> {
    match machines.get(&machine) {
        Some(known) => known.clone(),
        None => {
            machines.insert(machine.clone());
            machine
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(key: &str, value: &[u8]) -> Result<T, Damaged> {
    serde_json::from_slice(value).map_err(|error| damaged(key, &error.to_string()))
}

fn damaged(key: &str, why: &str) -> Damaged {
    Damaged { key: key.to_owned(), why: why.to_owned() }
}
