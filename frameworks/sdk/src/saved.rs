//! State that a session persists, as entries of a store: the framework's id, the ledger, and the scheduler's own state.
//!
//! It defines the entries; it does not read or write a store.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base::Time;
use prost::Message;

use crate::ledger::{self, ENDED_MAX, Entry, Ledger};
use crate::state::Change;
use crate::v1::{AgentId, KillPolicy, TaskState};

/// Key of the framework's id.
const FRAMEWORK: &str = "sdk/framework";
/// Key prefix of tasks that have not ended, followed by the task id.
const TASK: &str = "sdk/task/";
/// Key prefix of the last updates of ended tasks, a ring of `ENDED_MAX` entries.
const ENDED: &str = "sdk/ended/";
/// Key prefix of the scheduler's own entries.
const OWN: &str = "own/";

/// An entry of the store that is invalid for its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the saved entry '{key}' cannot be read: it is damaged, or of another version")]
pub struct Damaged {
    /// Key of the entry.
    pub key: String,
}

/// State of a session, as it is read from a store.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    pub(crate) framework_id: Option<String>,
    pub(crate) ledger: Ledger,
    pub(crate) own: BTreeMap<String, Vec<u8>>,
}

/// Saved form of a task in the ledger.
#[derive(Clone, PartialEq, Message)]
struct Task {
    #[prost(string, tag = "1")]
    agent_id: String,
    #[prost(enumeration = "TaskState", tag = "2")]
    state: i32,
    #[prost(uint64, tag = "3")]
    since_nanos: u64,
    #[prost(uint64, tag = "4")]
    changed_nanos: u64,
    #[prost(bytes = "vec", tag = "5")]
    uuid: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    kill: Option<Kill>,
}

/// Saved form of the kill that the scheduler requested.
#[derive(Clone, PartialEq, Message)]
struct Kill {
    #[prost(message, optional, tag = "1")]
    policy: Option<KillPolicy>,
}

/// Saved form of the last update of a task that has ended.
#[derive(Clone, PartialEq, Message)]
struct Ended {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    task_id: String,
    #[prost(bytes = "vec", tag = "3")]
    uuid: Vec<u8>,
    #[prost(enumeration = "TaskState", tag = "4")]
    state: i32,
}

impl Saved {
    /// Parses the entries of a store.
    ///
    /// # Errors
    /// Returns the first entry that cannot be read.
    pub(crate) fn read(entries: BTreeMap<String, Vec<u8>>) -> Result<Saved, Damaged> {
        let mut saved = Saved::default();
        let mut ended = Vec::new();
        for (key, value) in entries {
            if let Some(own) = key.strip_prefix(OWN) {
                saved.own.insert(own.to_owned(), value);
            } else if let Some(id) = key.strip_prefix(TASK) {
                saved.ledger.restore(id, read::<Task>(&key, &value)?.into());
            } else if key.starts_with(ENDED) {
                ended.push(read::<Ended>(&key, &value)?);
            } else if key == FRAMEWORK {
                saved.framework_id = Some(String::from_utf8(value).map_err(|_| Damaged { key })?);
            }
        }
        ended.sort_by_key(|e| e.number);
        for one in ended {
            let state = one.state();
            saved.ledger.restore_ended(one.task_id.into(), ledger::Ended { number: one.number, state, uuid: one.uuid });
        }
        saved.ledger.mark_saved();
        Ok(saved)
    }
}

fn read<M: Message + Default>(key: &str, value: &[u8]) -> Result<M, Damaged> {
    M::decode(value).map_err(|_| Damaged { key: key.to_owned() })
}

/// Returns the change that sets the framework's id, or removes it.
pub(crate) fn framework(id: Option<&str>) -> Change {
    Change { key: FRAMEWORK.to_owned(), value: id.map(|id| id.as_bytes().to_vec()) }
}

/// Returns the change that sets a task's entry of the ledger, or removes it.
pub(crate) fn task(id: &str, entry: Option<&Entry>) -> Change {
    Change { key: format!("{TASK}{id}"), value: entry.map(|e| Task::from(e).encode_to_vec()) }
}

/// Returns the change that records the last update of an ended task.
pub(crate) fn ended(task_id: &str, ended: &ledger::Ended) -> Change {
    let place = ended.number % ENDED_MAX as u64;
    let value = Ended {
        number: ended.number,
        task_id: task_id.to_owned(),
        uuid: ended.uuid.clone(),
        state: ended.state as i32,
    };
    Change::set(format!("{ENDED}{place}"), value.encode_to_vec())
}

/// Returns the change that sets or removes an entry of the scheduler's own.
pub(crate) fn own(key: &str, value: Option<Vec<u8>>) -> Change {
    Change { key: format!("{OWN}{key}"), value }
}

impl From<&Entry> for Task {
    fn from(entry: &Entry) -> Task {
        let nanos = |time: Time| u64::try_from(time.since_epoch().as_nanos()).unwrap_or(u64::MAX);
        Task {
            agent_id: entry.agent_id.value.to_string(),
            state: entry.state as i32,
            since_nanos: nanos(entry.since),
            changed_nanos: nanos(entry.changed),
            uuid: entry.uuid.clone(),
            kill: entry.kill.map(|policy| Kill { policy }),
        }
    }
}

impl From<Task> for Entry {
    fn from(task: Task) -> Entry {
        let time = |nanos| Time::from_epoch(Duration::from_nanos(nanos));
        Entry {
            agent_id: AgentId { value: (&task.agent_id).into() },
            state: task.state(),
            since: time(task.since_nanos),
            changed: time(task.changed_nanos),
            kill: task.kill.map(|k| k.policy),
            uuid: task.uuid,
        }
    }
}

/// Content of a store, for people to read.
#[derive(Debug)]
pub struct StoreContents(Saved);

impl StoreContents {
    /// Parses the entries of a store.
    ///
    /// # Errors
    /// Names the first entry that cannot be read.
    pub fn read(entries: BTreeMap<String, Vec<u8>>) -> Result<StoreContents, Damaged> {
        Saved::read(entries).map(StoreContents)
    }
}

impl fmt::Display for StoreContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "framework  {}", self.0.framework_id.as_deref().unwrap_or("none yet"))?;
        for (id, entry) in self.0.ledger.iter() {
            let kill = if entry.kill.is_some() { ", to be killed" } else { "" };
            writeln!(f, "task       {id}  {} on {}{kill}", entry.state.as_str_name(), entry.agent_id.value)?;
        }
        for (key, value) in &self.0.own {
            writeln!(f, "entry      {key}  {} bytes", value.len())?;
        }
        Ok(())
    }
}
