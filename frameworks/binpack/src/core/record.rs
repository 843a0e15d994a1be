//! The records of jobs and their tasks, and the form in which they are saved for a restart.
//!
//! It keeps counts right and makes keys; it decides nothing.
//!
//! Saved records are read by every later version: a new field has a default, so that records of an older version are
//! valid and do not stop the scheduler.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use serde::{Deserialize, Serialize};

use super::capacity::FittingRanks;
use super::sizing::Sizing;
use crate::Need;
use crate::job::{Job, Kind};
use jobs::{Place, stamp};

/// Maximum number of versions of a job that are remembered.
const VERSIONS_MAX: usize = 10;
/// Maximum number of removed tasks of a service that are remembered.
const PAST_MAX: usize = 20;
/// Maximum length of a task's message in bytes; longer ones are cut.
const MESSAGE_MAX: usize = 400;

/// Stage of a launched task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// The task was launched, and no update has arrived.
    Staging,
    /// The executor prepares the task.
    Starting,
    /// The task runs.
    Running,
    /// The task's agent does not answer the master.
    Unreachable,
}

/// Reason for which this framework kills a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StopReason {
    /// The job is stopped.
    Job,
    /// The service has too many tasks, or the task is of an old version: it is not replaced.
    Surplus,
    /// A replacement was requested.
    Replace,
    /// Another rank of the gang has failed.
    Gang,
    /// Rank 0 of the gang has finished, and that is enough.
    GangDone,
}

/// A task that was launched and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LiveTask {
    pub(super) place: Place,
    /// Resources that were allocated to the task.
    pub(super) need: Need,
    pub(super) stage: LiveState,
    #[serde(default)]
    pub(super) healthy: Option<bool>,
    #[serde(with = "stamp")]
    pub(super) launched: Time,
    #[serde(with = "stamp::optional", default)]
    pub(super) running: Option<Time>,
    #[serde(default)]
    pub(super) stopping: Option<StopReason>,
    /// Attributes of the task's agent that the job's constraints use.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
}

/// Phase of a task: waiting, launched or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// The task waits to be placed, which may happen at `not_before` at the earliest.
    Waiting {
        #[serde(with = "stamp")]
        since: Time,
        #[serde(with = "stamp")]
        not_before: Time,
    },
    /// The task is on an agent.
    Live(Box<LiveTask>),
    /// The task has ended for good.
    Done {
        ok: bool,
        #[serde(with = "stamp")]
        at: Time,
    },
}

/// One task of a job, over all its attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Instance {
    /// For services: the smallest number that no other task of the version has. For other jobs: the task's number.
    pub(super) slot: u32,
    pub(super) version: u64,
    /// Number of launches of the task.
    pub(super) attempts: u32,
    /// Number of failures in a row.
    #[serde(default)]
    pub(super) failures: u32,
    /// Number of losses in a row through no fault of the task.
    #[serde(default)]
    pub(super) losses: u32,
    pub(super) phase: Phase,
    /// Last place of the task; `message` is that of its last end.
    #[serde(default)]
    pub(super) last: Option<Place>,
    #[serde(default)]
    pub(super) message: String,
}

impl Instance {
    pub(super) fn new(slot: u32, version: u64, now: Time) -> Instance {
        Instance {
            slot,
            version,
            attempts: 0,
            failures: 0,
            losses: 0,
            phase: Phase::Waiting { since: now, not_before: now },
            last: None,
            message: String::new(),
        }
    }

    pub(super) fn live(&self) -> Option<&LiveTask> {
        match &self.phase {
            Phase::Live(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn live_mut(&mut self) -> Option<&mut LiveTask> {
        match &mut self.phase {
            Phase::Live(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    /// Returns whether nothing has happened to the task yet, so that there is nothing to save.
    fn is_pristine(&self) -> bool {
        self.is_waiting() && self.attempts == 0
    }

    /// Returns whether the task is healthy: it runs, it is not being killed, and its health check succeeds if it has
    /// one.
    pub(super) fn is_healthy(&self, has_check: bool) -> bool {
        self.live().is_some_and(|live| {
            live.stage == LiveState::Running && live.stopping.is_none() && (!has_check || live.healthy == Some(true))
        })
    }

    pub(super) fn set_message(&mut self, message: &str) {
        let end = (0..=message.len().min(MESSAGE_MAX)).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        self.message = message[..end].to_owned();
    }
}

/// Whether a job should run or stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Goal {
    /// Tasks are launched until the job has ended.
    Run,
    /// Tasks are killed, and none is launched.
    Stop,
}

/// Outcome of a job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every task has finished.
    Finished,
    /// A task has failed for good.
    Failed,
    /// A user stopped the job.
    Stopped,
}

/// A version of a job, with the time at which it was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Version {
    /// Number of the version, from 1.
    pub(super) number: u64,
    /// Time of the version, in whole milliseconds and later than that of the version before: Marathon's clients
    /// identify a version by it.
    #[serde(with = "stamp")]
    pub(super) since: Time,
    pub(super) job: Arc<Job>,
}

/// Returns the time that identifies a version. It is unique: later than that of the version before, also within one
/// millisecond and after the clock was set back.
fn name_of_version(now: Time, before: Option<Time>) -> Time {
    let millis = |time: Time| u64::try_from(time.since_epoch().as_millis()).unwrap_or(u64::MAX);
    // Times that an earlier release saved may have fractions of milliseconds, which are rounded for display.
    let next = before.map_or(0, |before| millis(before + Duration::from_micros(500)).saturating_add(1));
    Time::from_epoch(Duration::from_millis(millis(now).max(next)))
}

/// State of a gang: its gathering of offers, failures and losses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Gang {
    /// Whether a rank has failed: the others are killed, and then all ranks restart or none.
    pub(super) broken: bool,
    /// Whether no further attempt is made, since a rank has failed in a way that a restart cannot repair.
    pub(super) hopeless: bool,
    pub(super) failures: u32,
    pub(super) losses: u32,
    /// Time until which the gang may hold offers; not saved, since offers are void after a restart.
    #[serde(skip)]
    pub(super) gather_until: Option<Time>,
    /// Time until which other jobs are placed first, after the gang declined the offers that it held.
    #[serde(skip)]
    pub(super) rest_until: Option<Time>,
    /// Number of ranks that fit in the last attempt.
    #[serde(skip)]
    pub(super) found: u32,
    /// Number of gatherings in a row without effect.
    #[serde(skip)]
    pub(super) gathered: u32,
    /// Number of ranks that fit on the total resources of the agents.
    #[serde(skip)]
    pub(super) possible: FittingRanks,
}

/// Saved state of a job, without its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) serial: u64,
    /// Versions of the job, the oldest first; never empty.
    versions: Vec<Version>,
    pub(super) goal: Goal,
    pub(super) outcome: Option<Outcome>,
    #[serde(with = "stamp")]
    pub(super) submitted: Time,
    #[serde(with = "stamp::optional", default)]
    pub(super) ended: Option<Time>,
    /// Number of the task that is created next.
    pub(super) next_number: u32,
    #[serde(default)]
    pub(super) gang: Gang,
    /// For services: whether not all tasks have been healthy since the last change.
    #[serde(default)]
    pub(super) deploying: bool,
    /// Minimum memory of launches, in thousandths of megabytes: tasks with less ran out of memory. `None` if none did.
    #[serde(default)]
    pub(super) mem_needed: Option<i64>,
}

/// A removed task of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedTask {
    /// Last place of the task.
    #[serde(flatten)]
    pub place: Place,
    /// Number of the task's version of the job.
    pub version: u64,
    /// End of the task, in seconds since 1970.
    pub ended: f64,
    /// Message of the task's end, for people.
    pub message: String,
}

/// Number of tasks by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Tasks that wait to be placed, or for their next attempt.
    pub waiting: u32,
    /// Tasks that are on agents.
    pub live: u32,
    /// Tasks that have finished.
    pub finished: u32,
    /// Tasks that have failed for good.
    pub failed: u32,
    /// Tasks that had not finished when the job was stopped.
    pub stopped: u32,
}

/// A job with all its tasks.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) head: Head,
    instances: BTreeMap<u32, Instance>,
    pub(super) past: VecDeque<RemovedTask>,
    /// Measured resource usage of the job's tasks; not saved.
    pub(super) sizing: Sizing,
    counts: Counts,
}

impl Record {
    /// Creates the record of a submitted job, with all tasks unless it is a service.
    pub(super) fn new(serial: u64, job: Job, now: Time) -> Record {
        let count = if job.kind == Kind::Service { 0 } else { job.count };
        let version = Version { number: 1, since: name_of_version(now, None), job: Arc::new(job) };
        let head = Head {
            serial,
            versions: vec![version],
            goal: Goal::Run,
            outcome: None,
            submitted: now,
            ended: None,
            next_number: count,
            gang: Gang::default(),
            deploying: true,
            mem_needed: None,
        };
        Record::restored(head, BTreeMap::new())
    }

    /// Creates a record from its saved parts. Tasks that nothing had happened to were not saved and are created.
    pub(super) fn restored(head: Head, instances: BTreeMap<u32, Instance>) -> Record {
        let mut record =
            Record { head, instances, past: VecDeque::new(), sizing: Sizing::default(), counts: Counts::default() };
        if record.job().kind != Kind::Service {
            let (version, now) = (record.current().number, record.head.submitted);
            for number in 0..record.job().count {
                record.instances.entry(number).or_insert_with(|| Instance::new(number, version, now));
            }
        }
        for instance in record.instances.values() {
            *count_of(&mut record.counts, &instance.phase) += 1;
        }
        record.resize();
        record
    }

    /// Limits all waits to the longest one of the job's restart policy: the wall clock may have been set back since the
    /// record was saved.
    fn limit_waits(&mut self, now: Time) {
        let latest = now + self.job().restart.longest;
        for instance in self.instances.values_mut() {
            if let Phase::Waiting { not_before, .. } = &mut instance.phase {
                *not_before = latest.min(*not_before);
            }
        }
    }

    pub(super) fn current(&self) -> &Version {
        // The list starts with one version, and versions are removed only when there are several.
        &self.head.versions[self.head.versions.len() - 1]
    }

    pub(super) fn versions(&self) -> &[Version] {
        &self.head.versions
    }

    /// Returns the current version of the job.
    pub(super) fn job(&self) -> &Arc<Job> {
        &self.current().job
    }

    pub(super) fn name(&self) -> &str {
        &self.job().name
    }

    pub(super) fn kind(&self) -> Kind {
        self.job().kind
    }

    pub(super) fn is_large_service(&self) -> bool {
        self.kind() == Kind::Service && self.instances.len() > super::LARGE
    }

    pub(super) fn is_over(&self) -> bool {
        self.head.outcome.is_some()
    }

    /// Adds a version, which becomes the current one.
    pub(super) fn add_version(&mut self, job: Job, now: Time) {
        if **self.job() != job {
            self.forget_measurements();
        }
        self.push_version(Version { number: self.current().number + 1, since: now, job: Arc::new(job) });
    }

    /// Changes the number of tasks. The version number stays.
    pub(super) fn set_count(&mut self, count: u32, now: Time) {
        let job = Arc::new(Job { count, ..(**self.job()).clone() });
        self.push_version(Version { number: self.current().number, since: now, job });
    }

    fn push_version(&mut self, mut version: Version) {
        version.since = name_of_version(version.since, Some(self.current().since));
        let versions = &mut self.head.versions;
        versions.push(version);
        if versions.len() > VERSIONS_MAX {
            // Versions that differ only in the count are removed first.
            let count = (1..versions.len() - 1).find(|n| versions[*n].number == versions[n - 1].number);
            versions.remove(count.unwrap_or(0));
        }
        self.resize();
    }

    pub(super) fn counts(&self) -> Counts {
        match self.head.goal {
            Goal::Run => self.counts,
            Goal::Stop => Counts { failed: 0, stopped: self.counts.failed, ..self.counts },
        }
    }

    pub(super) fn instances(&self) -> &BTreeMap<u32, Instance> {
        &self.instances
    }

    pub(super) fn get(&self, number: u32) -> Option<&Instance> {
        self.instances.get(&number)
    }

    /// Changes a task, and adapts the counts.
    pub(super) fn change<T>(&mut self, number: u32, change: impl FnOnce(&mut Instance) -> T) -> Option<T> {
        let instance = self.instances.get_mut(&number)?;
        *count_of(&mut self.counts, &instance.phase) -= 1;
        let result = change(instance);
        *count_of(&mut self.counts, &instance.phase) += 1;
        Some(result)
    }

    /// Adds a task to a service, with a number that was never used before, and returns the number.
    pub(super) fn add(&mut self, slot: u32, now: Time) -> u32 {
        let number = self.head.next_number;
        self.head.next_number += 1;
        self.instances.insert(number, Instance::new(slot, self.current().number, now));
        self.counts.waiting += 1;
        number
    }

    /// Removes a task for good.
    pub(super) fn remove(&mut self, number: u32, now: Time) {
        let Some(instance) = self.instances.remove(&number) else { return };
        *count_of(&mut self.counts, &instance.phase) -= 1;
        if let Some(place) = instance.last {
            self.remember(place, instance.version, &instance.message, now);
        }
    }

    /// Remembers a removed task of a service.
    pub(super) fn remember(&mut self, place: Place, version: u64, message: &str, now: Time) {
        self.past.push_back(RemovedTask { place, version, ended: now.as_secs_f64(), message: message.to_owned() });
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
    }

    /// Returns the id that a task will have in its next launch.
    pub(super) fn task_id(&self, number: u32) -> String {
        let attempts = self.get(number).map_or(0, |i| i.attempts);
        format!("{}.{}.{number}.{attempts}", self.name(), self.head.serial)
    }
}

fn count_of<'a>(counts: &'a mut Counts, phase: &Phase) -> &'a mut u32 {
    match phase {
        Phase::Waiting { .. } => &mut counts.waiting,
        Phase::Live(_) => &mut counts.live,
        Phase::Done { ok: true, .. } => &mut counts.finished,
        Phase::Done { ok: false, .. } => &mut counts.failed,
    }
}

/// Parses the id of a task: returns the job's serial and the task's number.
pub(super) fn parse_task_id(task_id: &str) -> Option<(u64, u32)> {
    let mut parts = task_id.rsplitn(4, '.');
    let _attempt = parts.next()?;
    let number = parts.next()?.parse().ok()?;
    Some((parts.next()?.parse().ok()?, number))
}

/// Key of the saved state of the whole scheduler.
pub(super) const META: &str = "meta";

/// Saved state of the whole scheduler.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) next_serial: u64,
}

/// Returns the key of a job's head. Keys sort in the order of serials.
pub(super) fn head_key(serial: u64) -> String {
    format!("job/{serial:020}")
}

/// Returns the key of one task of a job.
pub(super) fn instance_key(serial: u64, number: u32) -> String {
    format!("task/{serial:020}/{number:010}")
}

/// Returns the saved form of a task, or `None` if nothing has happened to it.
pub(super) fn instance_value(instance: &Instance) -> Option<Vec<u8>> {
    if instance.is_pristine() { None } else { serde_json::to_vec(instance).ok() }
}

/// An error of reading the saved state.
#[derive(Debug, thiserror::Error)]
#[error("the saved entry '{key}' cannot be read: {why}")]
pub struct Damaged {
    key: String,
    why: String,
}

/// Returns all saved jobs, and the next serial.
pub(super) fn restore(entries: &BTreeMap<String, Vec<u8>>, now: Time) -> Result<(BTreeMap<u64, Record>, u64), Damaged> {
    let mut heads: BTreeMap<u64, Head> = BTreeMap::new();
    let mut tasks: BTreeMap<u64, BTreeMap<u32, Instance>> = BTreeMap::new();
    let mut meta = Meta::default();
    for (key, value) in entries {
        let damaged = |why: String| Damaged { key: key.clone(), why };
        let broken = |error: serde_json::Error| damaged(error.to_string());
        if key == META {
            meta = serde_json::from_slice(value).map_err(broken)?;
        } else if key.starts_with("job/") {
            let head: Head = serde_json::from_slice(value).map_err(broken)?;
            if head.versions.is_empty() || head.versions.iter().any(|v| v.job.name.is_empty()) {
                return Err(damaged("it has no version, or one without a name".to_owned()));
            }
            heads.insert(head.serial, head);
        } else if let Some((serial, number)) = key.strip_prefix("task/").and_then(|k| k.split_once('/')) {
            let (Ok(serial), Ok(number)) = (serial.parse(), number.parse()) else {
                return Err(damaged("it names no task".to_owned()));
            };
            tasks.entry(serial).or_default().insert(number, serde_json::from_slice(value).map_err(broken)?);
        }
    }
    let next = heads.keys().next_back().map_or(1, |last| last + 1).max(meta.next_serial);
    let mut records = BTreeMap::new();
    for (serial, head) in heads {
        let mut record = Record::restored(head, tasks.remove(&serial).unwrap_or_default());
        record.limit_waits(now);
        records.insert(serial, record);
    }
    Ok((records, next))
}
