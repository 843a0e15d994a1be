//! The record of a task at its launch, as masters and agents keep it.

use crate::mesos::{ExecutorId, FrameworkId, Task, TaskInfo, TaskState};

impl Task {
    /// A task that has just been launched: what is known of it by its `info`, in TASK_STAGING; without its resources, which who
    /// keeps it adds in the form in which it keeps them.
    pub fn staged(
        info: &TaskInfo,
        framework_id: FrameworkId,
        executor_id: Option<ExecutorId>,
        user: Option<String>,
    ) -> Task {
        Task {
            name: info.name.clone(),
            task_id: info.task_id.clone(),
            framework_id,
            executor_id,
            slave_id: info.slave_id.clone(),
            state: TaskState::TaskStaging as i32,
            labels: info.labels.clone(),
            discovery: info.discovery.clone(),
            container: info.container.clone(),
            health_check: info.health_check.clone(),
            kill_policy: info.kill_policy,
            user,
            limits: info.limits.clone(),
            ..Task::default()
        }
    }
}
