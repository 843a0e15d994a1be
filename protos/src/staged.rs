//! Creates the record of a task at its launch, as masters and agents keep it.

use crate::mesos::{ExecutorId, FrameworkId, Task, TaskInfo, TaskState};

impl Task {
    /// Returns the record of a task that has just been launched, from its `info`, in TASK_STAGING. It lacks the
    /// resources, which the caller adds in its own form.
    pub fn staged(info: &TaskInfo, framework_id: FrameworkId, executor_id: Option<ExecutorId>) -> Task {
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
            user: user_of(info),
            limits: info.limits.clone(),
            ..Task::default()
        }
    }
}

/// Returns the user of the task's command, or of its executor's; the default user is not shown.
fn user_of(info: &TaskInfo) -> Option<String> {
    let own = info.command.as_ref().and_then(|command| command.user.clone());
    own.or_else(|| info.executor.as_ref()?.command.as_ref()?.user.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos::{CommandInfo, ExecutorInfo};

    #[test]
    fn a_staged_task_has_a_user_only_if_it_is_named() {
        let of = |user: Option<&str>| CommandInfo { user: user.map(str::to_owned), ..CommandInfo::default() };
        let executor = ExecutorInfo { command: Some(of(Some("e"))), ..ExecutorInfo::default() };
        let staged = |info| Task::staged(&info, FrameworkId::default(), None).user;
        assert_eq!(staged(TaskInfo { command: Some(of(None)), ..TaskInfo::default() }), None);
        assert_eq!(staged(TaskInfo { command: Some(of(Some("t"))), ..TaskInfo::default() }).as_deref(), Some("t"));
        let of_executor = TaskInfo { executor: Some(Box::new(executor)), ..TaskInfo::default() };
        assert_eq!(staged(of_executor.clone()).as_deref(), Some("e"));
        assert_eq!(staged(TaskInfo { command: Some(of(Some("t"))), ..of_executor }).as_deref(), Some("t"));
    }
}
