//! Tasks of frameworks: the active ones, those on unreachable agents, and the completed ones.
//!
//! It does not know which resources of agents tasks use; `tasks/tables.rs` updates both tables.

use std::sync::Arc;

use base::TaskId;
use protos::mesos;
use protos::mesos::internal::StatusUpdate;
use resources::{Resources, from_proto};
use rustc_hash::FxHashSet;

use super::Frameworks;
use crate::state::{AgentKey, FrameworkKey, Task, TaskKey, drop_repetition, is_terminal, kept_status};
use crate::table::Table;

/// Maximum number of statuses of a task that are kept: an executor may alternate between states without an end.
const MAX_STATUSES: usize = 64;

/// Changes that a status update has made.
pub(crate) struct TaskChange {
    pub before: mesos::TaskState,
    pub after: mesos::TaskState,
    /// State that was forwarded to the framework before.
    pub forwarded: Option<i32>,
}

impl Frameworks {
    /// Returns an active task.
    pub(crate) fn task(&self, framework: FrameworkKey, task: TaskKey) -> Option<&Arc<Task>> {
        self.get(framework)?.tasks.get(task.0)
    }

    /// Returns the key of an active task.
    pub(crate) fn task_key(&self, framework: FrameworkKey, id: &str) -> Option<TaskKey> {
        self.private_data.get(&framework)?.tasks.get(id).copied()
    }

    /// Returns `"active"` or `"unreachable"` if a framework has an active or unreachable task with an id.
    pub(crate) fn task_id_in_use(&self, framework: FrameworkKey, id: &str) -> Option<&'static str> {
        let data = self.private_data.get(&framework)?;
        if data.tasks.contains_key(id) {
            return Some("active");
        }
        data.unreachable.contains_key(id).then_some("unreachable")
    }

    /// Returns the resources of a framework's last task.
    pub(crate) fn last_needs(&self, key: FrameworkKey) -> Option<&Resources> {
        self.private_data.get(&key).map(|data| &*data.last_needs)
    }

    /// Returns these resources, shared with the framework's last task if they are equal to that task's.
    pub(crate) fn share_needs(&mut self, key: FrameworkKey, resources: Resources) -> Arc<Resources> {
        let Some(data) = self.private_data.get_mut(&key) else { return Arc::new(resources) };
        // Disks that differ only in their volumes compare equal.
        let has_disk = resources.iter().any(|resource| resource.disk().is_some());
        if has_disk || data.last_needs.as_slice() != resources.as_slice() {
            data.last_needs = Arc::new(resources);
        }
        Arc::clone(&data.last_needs)
    }

    /// Adds an active task.
    pub(crate) fn add_task(&mut self, id: TaskId, task: Task) -> Option<TaskKey> {
        let framework = task.framework;
        let key = TaskKey(self.row(framework)?.tasks.insert(Arc::new(task)));
        if let Some(data) = self.private_data.get_mut(&framework) {
            data.tasks.insert(id, key);
        }
        Some(key)
    }

    /// Records a status: the newest state, the state last forwarded, the history.
    pub(crate) fn update_task(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        update: &StatusUpdate,
    ) -> Option<TaskChange> {
        let task = &mut self.row(framework)?.tasks.get_mut(task.0)?.proto;
        let before = task.state();
        if !is_terminal(before) {
            task.state = update.latest_state.unwrap_or(update.status.state);
        }
        let forwarded = task.status_update_state.replace(update.status.state);
        task.status_update_uuid.clone_from(&update.uuid);
        keep(task, &update.status);
        Some(TaskChange { before, after: task.state(), forwarded })
    }

    /// Marks a task's resources as released. Returns the task, or `None` if they were released before.
    pub(crate) fn release_task(&mut self, framework: FrameworkKey, task: TaskKey) -> Option<Arc<Task>> {
        let released = &mut self.row(framework)?.tasks.get_mut(task.0)?.released;
        match std::mem::replace(released, true) {
            true => None,
            false => self.task(framework, task).cloned(),
        }
    }

    /// Removes a task from the active ones.
    pub(crate) fn remove_task(&mut self, framework: FrameworkKey, task: TaskKey) -> Option<Arc<Task>> {
        let row = self.row(framework)?.tasks.remove(task.0)?;
        if let Some(data) = self.private_data.get_mut(&framework) {
            data.tasks.remove(&row.id);
        }
        Some(row)
    }

    /// Adds a task that was active to the completed ones.
    pub(crate) fn complete_task(&mut self, key: FrameworkKey, task: Arc<Task>) {
        let limit = self.limits.completed_tasks;
        if let Some(framework) = self.row(key) {
            push_limited(&mut framework.completed_tasks, task, limit);
        }
    }

    /// Adds tasks that ended before this master was elected to the completed ones, up to the limit.
    pub(crate) fn adopt_completed(&mut self, key: FrameworkKey, agent: AgentKey, tasks: Vec<mesos::Task>) {
        let limit = self.limits.completed_tasks;
        let Some(framework) = self.row(key) else { return };
        let known: FxHashSet<TaskId> = framework.completed_tasks.values().map(|task| task.id.clone()).collect();
        for mut proto in tasks {
            let Ok(id) = TaskId::new(&proto.task_id.value) else { continue };
            if known.contains(&id) || framework.completed_tasks.len() >= limit {
                continue;
            }
            let resources = Arc::new(from_proto(&proto.resources).unwrap_or_default());
            drop_repetition(&mut proto);
            let task = Task { id, framework: key, agent, proto, resources, released: true };
            framework.completed_tasks.insert(Arc::new(task));
        }
    }

    /// Adds a task that was active to the unreachable ones.
    pub(crate) fn mark_task_unreachable(&mut self, key: FrameworkKey, task: Arc<Task>) {
        let limit = self.limits.unreachable_tasks;
        let id = task.id.clone();
        let Some(framework) = self.row(key) else { return };
        let number = framework.unreachable_tasks.next_key();
        let forgotten = push_limited(&mut framework.unreachable_tasks, task, limit);
        let Some(data) = self.private_data.get_mut(&key) else { return };
        data.unreachable.insert(id, number);
        for (row, old) in forgotten {
            // The id may belong to a newer row by now.
            if data.unreachable.get(&old.id).is_some_and(|newest| *newest == row) {
                data.unreachable.remove(&old.id);
            }
        }
    }

    /// Removes a task from the unreachable ones, because its agent lists it again.
    pub(crate) fn remove_unreachable_task(&mut self, key: FrameworkKey, id: &str) {
        let Some(row) = self.private_data.get_mut(&key).and_then(|data| data.unreachable.remove(id)) else { return };
        if let Some(framework) = self.row(key) {
            framework.unreachable_tasks.remove(row);
        }
    }
}

/// Adds a row, and removes the oldest ones beyond the limit. Returns the removed rows with their keys.
fn push_limited(table: &mut Table<Task>, row: Arc<Task>, limit: usize) -> Vec<(u64, Arc<Task>)> {
    if limit == 0 {
        return vec![(table.take_key(), row)];
    }
    table.insert(row);
    let mut forgotten = Vec::new();
    while table.len() > limit {
        let Some(first) = table.iter().next().map(|(key, _)| key) else { break };
        forgotten.extend(table.remove(first).map(|row| (first, row)));
    }
    forgotten
}

/// Adds a status to a task's history. It replaces the last one if both have the same state.
fn keep(task: &mut mesos::Task, status: &mesos::TaskStatus) {
    if task.statuses.last().is_some_and(|last| last.state == status.state) {
        task.statuses.pop();
    }
    if task.statuses.len() >= MAX_STATUSES {
        task.statuses.remove(0);
    }
    // Statuses are large, and most tasks have one or two. A vector would reserve space for four, which would be most of
    // a task.
    task.statuses.reserve_exact(1);
    let kept = kept_status(task, status);
    task.statuses.push(kept);
}
