//! The users and roles against which the master and the agents authorize: the user of a task or an executor, and the
//! roles of a resource.

use protos::mesos::{CommandInfo, ExecutorInfo, FrameworkInfo, Resource, Task, TaskInfo};

use crate::Authorizer;

/// The error when a framework may not run a task or an executor as its user. The text is Mesos's; the status update has
/// it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Not authorized to launch {what} '{id}' as user '{user}'")]
pub struct LaunchRefused {
    /// The kind of the denied item: `task` or `executor`.
    what: &'static str,
    id: String,
    user: String,
}

impl Authorizer {
    /// Checks that a framework may run each task as its user, and an executor that has a command as its own.
    ///
    /// # Errors
    /// The first task or executor that the framework may not run.
    pub fn may_launch<'t>(
        &self,
        framework: &FrameworkInfo,
        tasks: impl IntoIterator<Item = &'t TaskInfo>,
        executor: Option<&ExecutorInfo>,
    ) -> Result<(), LaunchRefused> {
        if !self.is_on() {
            return Ok(());
        }
        let principal = framework.principal.as_deref();
        let ask = |what, id: &str, user: &str| match self.may_run_as(principal, user) {
            true => Ok(()),
            false => Err(LaunchRefused { what, id: id.to_owned(), user: user.to_owned() }),
        };
        for task in tasks {
            ask("task", &task.task_id.value, task_user(task, framework))?;
        }
        match executor.filter(|executor| executor.command.is_some()) {
            Some(executor) => ask("executor", &executor.executor_id.value, executor_user(executor, framework)),
            None => Ok(()),
        }
    }
}

/// Returns the user of a command; an empty name counts as none.
fn own(command: Option<&CommandInfo>) -> Option<&str> {
    command?.user.as_deref().filter(|user| !user.is_empty())
}

/// Returns the user that a task is to run as: that of its command, its executor or its framework, in this order.
pub fn task_user<'i>(task: &'i TaskInfo, framework: &'i FrameworkInfo) -> &'i str {
    let executor = || own(task.executor.as_ref()?.command.as_ref());
    own(task.command.as_ref()).or_else(executor).unwrap_or(&framework.user)
}

/// Returns the user of a task that was launched.
pub fn launched_user<'i>(task: &'i Task, framework: &'i FrameworkInfo) -> &'i str {
    task.user.as_deref().filter(|user| !user.is_empty()).unwrap_or(&framework.user)
}

/// Returns the user of an executor: that of its command, or its framework's.
pub fn executor_user<'i>(executor: &'i ExecutorInfo, framework: &'i FrameworkInfo) -> &'i str {
    own(executor.command.as_ref()).unwrap_or(&framework.user)
}

/// Returns the roles to which a resource is reserved or allocated. A viewer of the resource must be allowed to view all
/// of them.
#[allow(deprecated, reason = "agents of the registry may be in the older form")]
pub fn resource_roles(resource: &Resource) -> impl Iterator<Item = &str> {
    let old = resource.role.as_deref().filter(|role| *role != "*");
    let reserved = resource.reservations.iter().map(|reservation| reservation.role());
    let allocated = resource.allocation_info.as_ref().and_then(|info| info.role.as_deref());
    old.into_iter().chain(reserved).chain(allocated)
}
