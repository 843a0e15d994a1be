//! The task ledger: every task that the framework has, and what is known of it.
//!
//! A task enters when it is launched, or when an update names it (after a restart of the scheduler). It leaves after
//! its last update. It does not decide what to do about a task.

use std::collections::{BTreeMap, VecDeque};

use base::Time;

use crate::v1::{AgentId, KillPolicy, TaskState, TaskStatus};

/// How many ended tasks are remembered, so that an update that comes once more is known to be old.
const ENDED_MAX: usize = 10_000;

/// What is known of a task that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where it runs; empty for a task that only an update without an agent named.
    pub agent_id: AgentId,
    /// The newest state.
    pub state: TaskState,
    /// When it entered the ledger.
    pub since: Time,
    /// When `state` was heard first.
    pub changed: Time,
    /// The kill that the scheduler asked for; repeated after a new subscription until the task has ended.
    pub kill: Option<Option<KillPolicy>>,
    /// The uuid of the newest update, by which one that comes again is known.
    uuid: Vec<u8>,
}

/// Every task of the framework that has not ended, by its id.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    live: BTreeMap<String, Entry>,
    /// The uuid of the last update of each task that ended lately, by the task's id.
    ended: BTreeMap<String, Vec<u8>>,
    /// The ids in `ended`, oldest first.
    ended_order: VecDeque<String>,
}

/// How an update relates to what the ledger knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Novelty {
    New,
    /// The same update again, because an acknowledgement was lost or is on its way.
    Repeated,
}

/// Whether a task in this state has ended for good.
///
/// `TASK_LOST` counts, as for Mesos's own libraries; `TASK_UNREACHABLE` and `TASK_UNKNOWN` do not: the task may return.
pub fn is_terminal(state: TaskState) -> bool {
    match state {
        TaskState::TaskFinished
        | TaskState::TaskFailed
        | TaskState::TaskKilled
        | TaskState::TaskError
        | TaskState::TaskLost
        | TaskState::TaskDropped
        | TaskState::TaskGone
        | TaskState::TaskGoneByOperator => true,
        TaskState::TaskStaging
        | TaskState::TaskStarting
        | TaskState::TaskRunning
        | TaskState::TaskKilling
        | TaskState::TaskUnreachable
        | TaskState::TaskUnknown => false,
    }
}

impl Ledger {
    /// What is known of a task that has not ended.
    pub fn get(&self, task_id: &str) -> Option<&Entry> {
        self.live.get(task_id)
    }

    /// All tasks that have not ended, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.live.iter().map(|(id, entry)| (id.as_str(), entry))
    }

    /// How many tasks have not ended.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no task is left.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Enters a task that is about to be launched. `false` if it is there already.
    pub(crate) fn launch(&mut self, task_id: &str, agent_id: AgentId, now: Time) -> bool {
        if self.live.contains_key(task_id) {
            return false;
        }
        let entry =
            Entry { agent_id, state: TaskState::TaskStaging, since: now, changed: now, kill: None, uuid: Vec::new() };
        self.live.insert(task_id.to_owned(), entry);
        true
    }

    /// Takes a task out that was entered and then not launched.
    pub(crate) fn forget(&mut self, task_id: &str) {
        self.live.remove(task_id);
    }

    /// Notes that the scheduler wants a task to end.
    pub(crate) fn kill(&mut self, task_id: &str, policy: Option<KillPolicy>) {
        if let Some(entry) = self.live.get_mut(task_id) {
            entry.kill = Some(policy);
        }
    }

    /// Takes in a status update.
    pub(crate) fn update(&mut self, status: &TaskStatus, now: Time) -> Novelty {
        let id = &status.task_id.value;
        let uuid = status.uuid.as_deref().unwrap_or_default();
        if self.is_known(id, uuid) {
            return Novelty::Repeated;
        }
        let state = status.state();
        if is_terminal(state) {
            self.end(id, uuid);
            return Novelty::New;
        }
        let agent_id = status.agent_id.clone().unwrap_or_default();
        let entry = self.live.entry(id.clone()).or_insert_with(|| Entry {
            agent_id: agent_id.clone(),
            state,
            since: now,
            changed: now,
            kill: None,
            uuid: Vec::new(),
        });
        if entry.state != state {
            entry.state = state;
            entry.changed = now;
        }
        if !agent_id.value.is_empty() {
            entry.agent_id = agent_id;
        }
        entry.uuid = uuid.to_vec();
        Novelty::New
    }

    /// Whether this very update was taken in before. Updates without a uuid are always new.
    fn is_known(&self, id: &str, uuid: &[u8]) -> bool {
        if uuid.is_empty() {
            return false;
        }
        self.live.get(id).is_some_and(|e| e.uuid == uuid) || self.ended.get(id).is_some_and(|u| u == uuid)
    }

    fn end(&mut self, id: &str, uuid: &[u8]) {
        self.live.remove(id);
        if uuid.is_empty() {
            return;
        }
        if self.ended.insert(id.to_owned(), uuid.to_vec()).is_none() {
            self.ended_order.push_back(id.to_owned());
        }
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::TaskId;

    fn status(id: &str, state: TaskState, uuid: &[u8]) -> TaskStatus {
        let uuid = (!uuid.is_empty()).then(|| uuid.to_vec());
        TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, uuid, ..Default::default() }
    }

    const NOW: Time = Time::from_secs(1);

    #[test]
    fn a_task_enters_once_and_leaves_at_its_end() {
        let mut ledger = Ledger::default();
        assert!(ledger.launch("t", AgentId { value: "S0".into() }, NOW));
        assert!(!ledger.launch("t", AgentId { value: "S1".into() }, NOW));
        assert_eq!(ledger.update(&status("t", TaskState::TaskRunning, b"1"), NOW), Novelty::New);
        assert_eq!(ledger.get("t").unwrap().agent_id.value, "S0");
        assert_eq!(ledger.update(&status("t", TaskState::TaskFinished, b"2"), NOW), Novelty::New);
        assert!(ledger.is_empty());
    }

    #[test]
    fn a_repeated_update_is_known_even_after_the_end() {
        let mut ledger = Ledger::default();
        let running = status("t", TaskState::TaskRunning, b"1");
        assert_eq!(ledger.update(&running, NOW), Novelty::New);
        assert_eq!(ledger.update(&running, NOW), Novelty::Repeated);
        let finished = status("t", TaskState::TaskFinished, b"2");
        assert_eq!(ledger.update(&finished, NOW), Novelty::New);
        assert_eq!(ledger.update(&finished, NOW), Novelty::Repeated);
        assert!(ledger.is_empty(), "a repeated update brings no task back");
    }

    #[test]
    fn reconciliation_answers_are_always_new() {
        let mut ledger = Ledger::default();
        let answer = status("t", TaskState::TaskRunning, b"");
        assert_eq!(ledger.update(&answer, NOW), Novelty::New);
        assert_eq!(ledger.update(&answer, NOW), Novelty::New);
        assert_eq!(ledger.len(), 1);
    }

    #[test]
    fn the_memory_of_ended_tasks_is_bounded() {
        let mut ledger = Ledger::default();
        for n in 0..ENDED_MAX + 5 {
            ledger.update(&status(&n.to_string(), TaskState::TaskFinished, b"u"), NOW);
        }
        assert_eq!(ledger.ended.len(), ENDED_MAX);
    }
}
