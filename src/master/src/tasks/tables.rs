//! Adds and removes tasks in the tables of framework, agent and allocator.
//!
//! It sends nothing.

use std::sync::Arc;

use base::TaskId;
use protos::mesos;
use resources::Resources;

use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, Task, TaskKey};

impl Master {
    /// Adds an active task, and counts its resources as used on its agent.
    pub(crate) fn add_task(&mut self, id: TaskId, task: Task) -> Option<TaskKey> {
        let (framework, agent) = (task.framework, task.agent);
        let taken = (!task.released).then(|| Arc::clone(&task.resources));
        let key = self.frameworks.add_task(id, task)?;
        self.agents.add_task(agent, framework, key, taken.as_deref());
        Some(key)
    }

    /// Returns an active task.
    pub(crate) fn task(&self, framework: FrameworkKey, task: TaskKey) -> Option<&Arc<Task>> {
        self.frameworks.task(framework, task)
    }

    /// Releases the resources of a task, unless they were released before.
    pub(crate) fn release_task(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.frameworks.release_task(framework, task) else { return };
        self.agents.release(row.agent, &row.resources);
        self.recover_used(framework, row.agent, &row.resources);
    }

    /// Returns the resources of a task or executor to the allocator.
    pub(crate) fn recover_used(&mut self, framework: FrameworkKey, agent: AgentKey, resources: &Resources) {
        if let (Some(framework), Some(agent)) = (self.frameworks.get(framework), self.agents.get(agent)) {
            self.allocation.recover_used(&framework.id, &agent.id, resources);
        }
    }

    /// Removes a task from the active ones, and releases its resources if they were not.
    fn take_task(&mut self, framework: FrameworkKey, task: TaskKey) -> Option<Arc<Task>> {
        self.release_task(framework, task);
        let row = self.frameworks.remove_task(framework, task)?;
        self.agents.remove_task(row.agent, framework, task, &row.id);
        Some(row)
    }

    /// Completes a task: no further updates of it are expected.
    pub(crate) fn complete_task(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.take_task(framework, task) else { return };
        let agent = row.agent;
        self.frameworks.complete_task(framework, row);
        self.agents.check_drained(agent, &self.operations);
    }

    /// Marks a task as unreachable, because its agent is.
    pub(crate) fn mark_task_unreachable(&mut self, framework: FrameworkKey, task: TaskKey) {
        let Some(row) = self.take_task(framework, task) else { return };
        self.frameworks.mark_task_unreachable(framework, row);
    }
}

/// Returns the message of a task that is launched, as the master stores it.
pub(crate) fn task_of(
    info: &mesos::TaskInfo,
    framework_id: mesos::FrameworkId,
    executor_id: Option<mesos::ExecutorId>,
) -> mesos::Task {
    mesos::Task::staged(info, framework_id, executor_id)
}
