//! Tasks are added and removed, on the sides of framework, agent and allocator.
//!
//! It sends nothing.

use std::sync::Arc;

use base::TaskId;
use protos::mesos;
use resources::Resources;

use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, Task, TaskKey};
use crate::table::Table;

impl Master {
    /// Adds an active task and what it takes of its agent.
    pub(crate) fn add_task(&mut self, id: TaskId, task: Task) -> Option<TaskKey> {
        let (framework, agent) = (task.framework, task.agent);
        self.framework(framework)?;
        let taken = (!task.released).then(|| Arc::clone(&task.resources));
        let key = TaskKey(self.framework_mut(framework)?.tasks.insert(Arc::new(task)));
        if let Some(book) = self.framework_books.get_mut(&framework) {
            book.tasks.insert(id, key);
        }
        self.agents.add_task(agent, framework, key, taken.as_deref());
        Some(key)
    }

    /// An active task.
    pub(crate) fn task(&self, framework: FrameworkKey, task: TaskKey) -> Option<&Arc<Task>> {
        self.framework(framework)?.tasks.get(task.0)
    }

    pub(crate) fn task_mut(&mut self, framework: FrameworkKey, task: TaskKey) -> Option<&mut Task> {
        self.framework_mut(framework)?.tasks.get_mut(task.0)
    }

    /// Gives a task's resources back, once.
    pub(crate) fn release_task(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.task_mut(framework, task) else { return };
        if std::mem::replace(&mut row.released, true) {
            return;
        }
        let Some(row) = self.task(framework, task).cloned() else { return };
        self.agents.release(row.agent, &row.resources);
        self.recover_used(framework, row.agent, &row.resources);
    }

    /// Gives the resources of a task or executor back to the allocator.
    pub(crate) fn recover_used(&mut self, framework: FrameworkKey, agent: AgentKey, resources: &Resources) {
        if let (Some(framework), Some(agent)) = (self.frameworks.get(framework.0), self.agents.get(agent)) {
            self.allocation.recover_used(&framework.id, &agent.id, resources);
        }
    }

    /// Takes a task out of the active ones; its resources are given back if they were not.
    fn take_task(&mut self, framework: FrameworkKey, task: TaskKey) -> Option<Arc<Task>> {
        self.release_task(framework, task);
        let row = self.framework_mut(framework)?.tasks.remove(task.0)?;
        if let Some(book) = self.framework_books.get_mut(&framework) {
            book.tasks.remove(&row.id);
        }
        self.agents.remove_task(row.agent, framework, task, &row.id);
        Some(row)
    }

    /// A task is done with: it goes to the completed ones.
    pub(crate) fn retire_task(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.take_task(framework, task) else { return };
        let limit = self.config.max_completed_tasks_per_framework;
        let agent = row.agent;
        if let Some(framework) = self.framework_mut(framework) {
            push_limited(&mut framework.completed_tasks, row, limit);
        }
        self.agents.check_drained(agent);
    }

    /// A task's agent does not answer: it goes to the unreachable ones.
    pub(crate) fn strand_task(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.take_task(framework, task) else { return };
        let limit = self.config.max_unreachable_tasks_per_framework;
        let Some(agent) = self.agent(row.agent).map(|agent| agent.id.clone()) else { return };
        let id = row.id.clone();
        let Some(entry) = self.framework_mut(framework) else { return };
        let number = entry.unreachable_tasks.next_key();
        let forgotten = push_limited(&mut entry.unreachable_tasks, row, limit);
        let Some(book) = self.framework_books.get_mut(&framework) else { return };
        book.unreachable.insert(id, (number, agent));
        for old in forgotten {
            // The id may stand for a newer row by now.
            if book.unreachable.get(&old.1.id).is_some_and(|(row, _)| *row == old.0) {
                book.unreachable.remove(&old.1.id);
            }
        }
    }

    /// An unreachable task is heard of again, or its agent is given up.
    pub(crate) fn unstrand_task(&mut self, framework: FrameworkKey, id: &str) -> Option<Arc<Task>> {
        let (row, _) = self.framework_books.get_mut(&framework)?.unreachable.remove(id)?;
        self.framework_mut(framework)?.unreachable_tasks.remove(row)
    }

    /// Whether a framework's task of that id is active, or on an agent that does not answer.
    pub(crate) fn task_id_in_use(&self, framework: FrameworkKey, id: &str) -> Option<&'static str> {
        let book = self.framework_books.get(&framework)?;
        if book.tasks.contains_key(id) {
            return Some("active");
        }
        book.unreachable.contains_key(id).then_some("unreachable")
    }
}

/// Adds a row, and takes out the oldest ones beyond the limit.
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

/// What the master remembers of a task that it launches.
pub(crate) fn task_of(
    info: &mesos::TaskInfo,
    framework_id: mesos::FrameworkId,
    executor_id: Option<mesos::ExecutorId>,
) -> mesos::Task {
    mesos::Task::staged(info, framework_id, executor_id)
}
