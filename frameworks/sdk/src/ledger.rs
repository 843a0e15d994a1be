//! The task ledger: every task of the framework with its last known state.
//!
//! A task is added when it is launched, or when an update names it after a restart of the scheduler. It is removed
//! after its last update. The ledger does not decide what to do about a task.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use base::Time;
use rustc_hash::FxHashMap;

use crate::saved;
use crate::state::Change;
use crate::v1::{AgentId, KillPolicy, TaskState, TaskStatus};

/// Maximum number of ended tasks that are remembered, to recognise a repeated update of one of them.
pub(crate) const ENDED_MAX: usize = 10_000;

/// The ledger's entry of a task that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Id of the task's agent; empty if the task is known only from an update without an agent.
    pub agent_id: AgentId,
    /// Newest state of the task.
    pub state: TaskState,
    /// Time at which the task was added to the ledger.
    pub since: Time,
    /// Time of the first report of `state`.
    pub changed: Time,
    /// Kill that the scheduler requested, which is repeated after a new subscription until the task has ended; `None`
    /// if there is none.
    pub kill: Option<Option<KillPolicy>>,
    /// UUID of the newest update, by which a repeated update is recognised.
    pub(crate) uuid: Vec<u8>,
}

impl Entry {
    /// Creates the entry of a task without an update.
    fn new(agent_id: AgentId, now: Time) -> Entry {
        Entry { agent_id, state: TaskState::TaskStaging, since: now, changed: now, kill: None, uuid: Vec::new() }
    }
}

/// Ledger of the framework's tasks that have not ended, by task id.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Tasks that have not ended. Every update looks one up, and they are rarely listed in order, so they are sorted
    /// only then.
    live: FxHashMap<Arc<str>, Entry>,
    /// Ids of tasks in `live` that the scheduler has killed.
    killed: BTreeSet<Arc<str>>,
    /// Last updates of the tasks that ended most recently, by task id.
    ended: FxHashMap<Arc<str>, Ended>,
    /// Numbers and ids of ended tasks, the oldest first.
    ended_order: VecDeque<(u64, Arc<str>)>,
    /// Number of the task that ends next.
    ended_next: u64,
    /// Whether changes are collected for [`changes`](Ledger::changes).
    tracks_changes: bool,
    /// Tasks that changed since the last call of `changes`.
    changed_tasks: BTreeSet<Arc<str>>,
    /// Number of the first task that ended since the last call of `changes`.
    ended_unsaved: u64,
    /// UUIDs of the updates whose acknowledgement the scheduler withholds, by task id.
    held: BTreeMap<Arc<str>, Vec<u8>>,
    /// Ended tasks whose last update was withheld and then acknowledged since the last call of `changes`.
    ended_late: Vec<Arc<str>>,
    /// Whether ended tasks are not remembered.
    forgets_ends: bool,
}

/// The last update of a task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Number of the ended task. Numbers increase, and the oldest tasks are forgotten first.
    pub(crate) number: u64,
    pub(crate) state: TaskState,
    /// UUID of the last update; empty if it needs no acknowledgement.
    pub(crate) uuid: Vec<u8>,
}

/// Result of comparing an update with the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Novelty {
    New,
    /// A repeated update, because its acknowledgement was lost or is under way; or an update without news about an
    /// ended task, such as the answer to a reconciliation.
    Repeated,
}

/// Returns whether a task in this state has ended for good.
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
    /// Returns the entry of a task that has not ended.
    pub fn get(&self, task_id: &str) -> Option<&Entry> {
        self.live.get(task_id)
    }

    /// Returns all tasks that have not ended, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let mut list: Vec<(&str, &Entry)> = self.live.iter().map(|(id, entry)| (&**id, entry)).collect();
        list.sort_unstable_by_key(|(id, _)| *id);
        list.into_iter()
    }

    /// Returns the tasks that the scheduler has killed and that have not ended, in the order of their ids.
    pub(crate) fn killed(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.killed.iter().filter_map(|id| Some((&**id, self.live.get(id)?)))
    }

    /// Turns on the collection of [`changes`](Ledger::changes).
    pub(crate) fn track_changes(&mut self) {
        self.tracks_changes = true;
    }

    /// Turns off the memory of ended tasks.
    pub(crate) fn forget_ends(&mut self) {
        self.forgets_ends = true;
    }

    /// Returns the number of tasks that have not ended.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns whether all tasks have ended.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Adds a task that is about to be launched. Returns `false` if the ledger contains it already.
    pub(crate) fn launch(&mut self, task_id: &str, agent_id: AgentId, now: Time) -> bool {
        if self.live.contains_key(task_id) {
            return false;
        }
        let id: Arc<str> = task_id.into();
        self.mark_changed(&id);
        self.live.insert(id, Entry::new(agent_id, now));
        true
    }

    fn mark_changed(&mut self, id: &Arc<str>) {
        if self.tracks_changes {
            self.changed_tasks.insert(Arc::clone(id));
        }
    }

    fn take(&mut self, task_id: &str) -> Arc<str> {
        let id = self.live.remove_entry(task_id).map_or_else(|| task_id.into(), |(id, _)| id);
        self.killed.remove(&id);
        self.mark_changed(&id);
        id
    }

    /// Removes a task that receives no further updates: it was not launched, or neither master nor agent know it.
    pub(crate) fn forget(&mut self, task_id: &str) {
        self.held.remove(task_id);
        self.take(task_id);
    }

    /// Records that the scheduler has killed a task.
    pub(crate) fn kill(&mut self, task_id: &str, policy: Option<KillPolicy>) {
        let Some(id) = self.live.get_key_value(task_id).map(|(id, _)| Arc::clone(id)) else { return };
        self.mark_changed(&id);
        if let Some(entry) = self.live.get_mut(task_id) {
            entry.kill = Some(policy);
            self.killed.insert(id);
        }
    }

    /// Records that the acknowledgement of this update is withheld. The update is then new to a restarted scheduler.
    pub(crate) fn hold(&mut self, task_id: &str, uuid: &[u8]) {
        let id = match self.live.get_key_value(task_id) {
            Some((id, _)) => Arc::clone(id),
            None => task_id.into(),
        };
        self.held.insert(id, uuid.to_vec());
    }

    /// Returns whether the acknowledgement of this update is withheld.
    pub(crate) fn is_held(&self, task_id: &str, uuid: &[u8]) -> bool {
        self.held.get(task_id).is_some_and(|held| held == uuid)
    }

    /// Records that an update is acknowledged whose acknowledgement was withheld.
    pub(crate) fn release(&mut self, task_id: &str, uuid: &[u8]) {
        if !self.is_held(task_id, uuid) {
            return;
        }
        if let Some((id, _)) = self.held.remove_entry(task_id) {
            self.mark_changed(&id);
            if self.tracks_changes && !self.live.contains_key(&id) {
                self.ended_late.push(id);
            }
        }
    }

    /// Applies a status update.
    pub(crate) fn update(&mut self, status: &TaskStatus, now: Time) -> Novelty {
        let id = &status.task_id.value;
        let uuid = status.uuid.as_deref().unwrap_or_default();
        let state = status.state();
        if self.is_known(id, uuid, state) {
            return Novelty::Repeated;
        }
        if is_terminal(state) {
            self.end(id, state, uuid);
            return Novelty::New;
        }
        if self.tracks_changes {
            let known = self.live.get_key_value(id.as_str()).map(|(id, _)| Arc::clone(id));
            self.changed_tasks.insert(known.unwrap_or_else(|| id.as_str().into()));
        }
        let entry = match self.live.get_mut(id.as_str()) {
            Some(entry) => entry,
            None => self.live.entry(id.as_str().into()).or_insert_with(|| Entry::new(AgentId::default(), now)),
        };
        if entry.state != state {
            entry.state = state;
            entry.changed = now;
        }
        if let Some(agent_id) = status.agent_id.as_ref().filter(|id| !id.value.is_empty()) {
            entry.agent_id.value.clone_from(&agent_id.value);
        }
        // The answer to a reconciliation has no UUID, and the update before it may still be repeated.
        if !uuid.is_empty() {
            entry.uuid.clear();
            entry.uuid.extend_from_slice(uuid);
        }
        Novelty::New
    }

    /// Returns whether this update contains nothing new. A lost task may return; no other ended task does.
    fn is_known(&self, id: &str, uuid: &[u8], state: TaskState) -> bool {
        let ended = self.ended.get(id);
        let is_same = |other: &[u8]| !uuid.is_empty() && other == uuid;
        if ended.is_some_and(|e| is_same(&e.uuid)) {
            return true;
        }
        match self.live.get(id) {
            Some(live) => is_same(&live.uuid),
            None => ended.is_some_and(|e| is_terminal(state) || !may_return(e.state)),
        }
    }

    fn end(&mut self, id: &str, state: TaskState, uuid: &[u8]) {
        let id = self.take(id);
        if self.forgets_ends {
            return;
        }
        self.restore_ended(id, Ended { number: self.ended_next, state, uuid: uuid.to_vec() });
    }

    /// Returns the changes since the last call, for a store.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        let mut changes: Vec<Change> = self.changed_tasks.iter().filter_map(|id| self.task_to_save(id)).collect();
        let fresh = self.ended_order.iter().rev().take_while(|(number, _)| *number >= self.ended_unsaved);
        for (number, id) in fresh.filter(|(_, id)| !self.is_end_held(id)) {
            if let Some(ended) = self.ended.get(id).filter(|e| e.number == *number) {
                changes.push(saved::ended(id, ended));
            }
        }
        let late = self.ended_late.iter().filter_map(|id| Some(saved::ended(id, self.ended.get(id)?)));
        changes.extend(late);
        self.mark_saved();
        changes
    }

    /// Returns the change that saves a task for a restarted scheduler. An update that is withheld is saved as unknown,
    /// and a task whose last update is withheld as not ended.
    fn task_to_save(&self, id: &Arc<str>) -> Option<Change> {
        match (self.live.get(id), self.held.get(id)) {
            (Some(entry), Some(held)) if entry.uuid == *held => {
                Some(saved::task(id, Some(&Entry { uuid: Vec::new(), ..entry.clone() })))
            }
            (None, Some(_)) if self.is_end_held(id) => None,
            (entry, _) => Some(saved::task(id, entry)),
        }
    }

    fn is_end_held(&self, id: &str) -> bool {
        self.ended.get(id).is_some_and(|ended| self.is_held(id, &ended.uuid))
    }

    /// Records that the store contains the current state.
    pub(crate) fn mark_saved(&mut self) {
        self.changed_tasks.clear();
        self.ended_late.clear();
        self.ended_unsaved = self.ended_next;
    }

    /// Adds a task that was read from a store.
    pub(crate) fn restore(&mut self, id: &str, entry: Entry) {
        let id: Arc<str> = id.into();
        if entry.kill.is_some() {
            self.killed.insert(Arc::clone(&id));
        }
        self.live.insert(id, entry);
    }

    /// Records the last update of a task that ended. Numbers must increase from call to call.
    pub(crate) fn restore_ended(&mut self, id: Arc<str>, ended: Ended) {
        self.ended_next = ended.number + 1;
        self.ended_order.push_back((ended.number, Arc::clone(&id)));
        self.ended.insert(id, ended);
        if self.ended_order.len() > ENDED_MAX
            && let Some((oldest, id)) = self.ended_order.pop_front()
            && self.ended.get(&id).is_some_and(|e| e.number == oldest)
        {
            self.ended.remove(&id);
        }
    }
}

/// Returns whether a task that ended with this state can turn out to be running, since its agent was only presumed
/// lost.
fn may_return(state: TaskState) -> bool {
    use TaskState::{TaskDropped, TaskGone, TaskGoneByOperator, TaskLost};
    matches!(state, TaskLost | TaskDropped | TaskGone | TaskGoneByOperator)
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
    fn a_task_ends_once_but_a_lost_one_may_return() {
        let mut ledger = Ledger::default();
        let tell = |ledger: &mut Ledger, state, uuid: &[u8]| ledger.update(&status("t", state, uuid), NOW);
        assert_eq!(tell(&mut ledger, TaskState::TaskFinished, b""), Novelty::New);
        assert_eq!(tell(&mut ledger, TaskState::TaskRunning, b"1"), Novelty::Repeated);
        assert_eq!(tell(&mut ledger, TaskState::TaskFinished, b"2"), Novelty::Repeated);
        let mut ledger = Ledger::default();
        assert_eq!(tell(&mut ledger, TaskState::TaskLost, b""), Novelty::New);
        assert_eq!(tell(&mut ledger, TaskState::TaskRunning, b"1"), Novelty::New);
        assert_eq!(ledger.len(), 1);
        assert_eq!(tell(&mut ledger, TaskState::TaskFinished, b"2"), Novelty::New);
        assert_eq!(tell(&mut ledger, TaskState::TaskLost, b""), Novelty::Repeated);
    }

    #[test]
    fn a_forgetful_ledger_remembers_no_ends() {
        let mut ledger = Ledger::default();
        ledger.forget_ends();
        let finished = status("t", TaskState::TaskFinished, b"1");
        ledger.launch("t", AgentId { value: "S0".into() }, NOW);
        assert_eq!(ledger.update(&finished, NOW), Novelty::New);
        assert!(ledger.is_empty() && ledger.ended.is_empty());
        assert_eq!(ledger.update(&finished, NOW), Novelty::New);
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
