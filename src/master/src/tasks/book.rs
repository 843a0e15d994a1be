//! Tasks enter and leave the books.
//!
//! It sends nothing; who calls it says what frameworks and agents are told.

use std::sync::Arc;

use base::TaskId;
use protos::mesos;
use resources::Resources;

use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, Task, TaskKey};
use crate::table::Table;

impl Master {
    /// Books an active task and what it takes from its agent.
    pub(crate) fn add_task(&mut self, id: TaskId, task: Task) -> Option<TaskKey> {
        let (framework, agent) = (task.framework, task.agent);
        self.framework(framework)?;
        if !task.released
            && let Some(agent) = self.agent_mut(agent)
        {
            agent.used += &*task.resources;
        }
        let key = TaskKey(self.framework_mut(framework)?.tasks.insert(Arc::new(task)));
        if let Some(book) = self.framework_books.get_mut(&framework) {
            book.tasks.insert(id, key);
        }
        if let Some(book) = self.agent_books.get_mut(&agent) {
            book.tasks.insert((framework, key));
        }
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
        self.release(framework, row.agent, &row.resources);
    }

    /// Gives back what a task or executor took.
    pub(crate) fn release(&mut self, framework: FrameworkKey, agent: AgentKey, resources: &Resources) {
        let Some(row) = self.agent_mut(agent) else { return };
        row.used -= resources;
        if let (Some(framework), Some(agent)) = (self.frameworks.get(framework.0), self.agents.get(agent.0)) {
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
        if let Some(book) = self.agent_books.get_mut(&row.agent) {
            book.tasks.remove(&(framework, task));
            if !book.killed.is_empty() {
                book.killed.remove(&(framework, row.id.clone()));
            }
        }
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
        self.check_drained(agent);
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
