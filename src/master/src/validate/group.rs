//! Validation of task groups (TSK-23).

use std::collections::BTreeSet;

use base::ExecutorId;
use protos::mesos::offer::operation::LaunchGroup;
use protos::mesos::{TaskInfo, check_info, container_info, health_check};
use resources::{Amount, Kind, Resources};

use super::{executor, task};
use crate::state::{Agent, Framework, FrameworkKey};

/// Agent and framework for which a task group is checked.
pub(crate) struct Group<'a> {
    pub framework: &'a Framework,
    pub key: FrameworkKey,
    pub agent: &'a Agent,
    /// Returns the state that makes a task id unavailable: `active` or `unreachable`.
    pub in_use: &'a dyn Fn(&str) -> Option<&'static str>,
    /// Resources that are left of the offers.
    pub available: &'a Resources,
}

/// Resources of a valid task group.
#[derive(Debug)]
pub(crate) struct GroupNeeds {
    pub executor_id: ExecutorId,
    pub executor: Resources,
    pub launch_executor: bool,
    /// Resources of each task, in order.
    pub tasks: Vec<Resources>,
}

/// Checks a task group with optional fields filled in.
///
/// # Errors
/// The first rule that the group breaks. All its tasks are refused.
pub(crate) fn group(context: &Group<'_>, group: &LaunchGroup) -> Result<GroupNeeds, String> {
    let tasks = &group.task_group.tasks;
    if tasks.is_empty() {
        return Err("Task group cannot be empty".to_owned());
    }
    let mut ids = BTreeSet::new();
    let mut needs = Vec::new();
    for info in tasks {
        let named = |why: String| format!("Task '{}' is invalid: {why}", info.task_id.value);
        task::identity(info, (context.in_use)(&info.task_id.value)).map_err(named)?;
        if !ids.insert(&info.task_id.value) {
            return Err(named("the group has another task of that ID".to_owned()));
        }
        needs.push(member(context, group, info).map_err(named)?);
    }
    disjoint(&needs)?;
    cgroups_agree(tasks)?;
    let checked = executor::executor(&group.executor, context.framework, context.key, context.agent)?;
    if !checked.known {
        minimum(&checked)?;
    }
    let mut total = Resources::new();
    for task in &needs {
        // A shared volume may be in many tasks, and is offered once.
        total += &task.non_shared();
        total += &(&task.shared() - &total.shared());
    }
    if !checked.known {
        total += &checked.resources;
    }
    if !context.available.contains(&total) {
        let available = context.available;
        return Err(format!(
            "Total resources {total} required by task group and its executor are more than available {available}"
        ));
    }
    Ok(GroupNeeds {
        executor_id: checked.id,
        executor: checked.resources,
        launch_executor: !checked.known,
        tasks: needs,
    })
}

fn member(context: &Group<'_>, group: &LaunchGroup, info: &TaskInfo) -> Result<Resources, String> {
    let resources = task::own(context.agent, info, None)?;
    if info.executor.as_ref().is_some_and(|own| **own != group.executor) {
        return Err("The `ExecutorInfo` of task is different from executor in `LaunchGroup`".to_owned());
    }
    if info.command.is_none() {
        return Err("'TaskInfo.command' must be set".to_owned());
    }
    let container = info.container.as_ref();
    if container.is_some_and(|container| container.r#type() == container_info::Type::Docker) {
        return Err("Docker ContainerInfo is not supported on the task".to_owned());
    }
    let networks = container.is_some_and(|container| !container.network_infos.is_empty());
    if networks && by_network(info) {
        return Err("HTTP and TCP health checks and checks are not supported for nested containers with network infos"
            .to_owned());
    }
    if !info.limits.is_empty() && shares_cgroups(info) {
        return Err(
            "Resource limits may only be set for tasks within a task group when 'share_cgroups' is set to 'false'"
                .to_owned(),
        );
    }
    Ok(resources)
}

fn by_network(info: &TaskInfo) -> bool {
    let health = info.health_check.as_ref().map(|check| check.r#type());
    let check = info.check.as_ref().map(|check| check.r#type());
    matches!(health, Some(health_check::Type::Http | health_check::Type::Tcp))
        || matches!(check, Some(check_info::Type::Http | check_info::Type::Tcp))
}

/// Returns whether the task shares the cgroups of its executor, which is the default.
fn shares_cgroups(info: &TaskInfo) -> bool {
    let linux = info.container.as_ref().and_then(|container| container.linux_info.as_ref());
    linux.is_none_or(|linux| linux.share_cgroups())
}

fn cgroups_agree(tasks: &[TaskInfo]) -> Result<(), String> {
    match tasks.iter().all(|info| shares_cgroups(info) == shares_cgroups(&tasks[0])) {
        true => Ok(()),
        false => Err("All tasks under a single executor must have the same value of 'share_cgroups'".to_owned()),
    }
}

/// Checks that the ports of the tasks do not overlap.
fn disjoint(needs: &[Resources]) -> Result<(), String> {
    let mut all = Resources::new();
    for resources in needs {
        for resource in resources.iter().filter(|resource| resource.kind() != Kind::Scalar) {
            let mut both = all.get(resource.name());
            let before = both.clone();
            both -= &Resources::from(resource.clone());
            if both != before {
                return Err(format!("There are overlapping resources in the task group: {}", resource.name()));
            }
        }
        all += &resources.non_scalars();
    }
    Ok(())
}

/// Checks that a default executor has the minimal resources that it needs itself (EXE-40).
fn minimum(executor: &executor::Checked) -> Result<(), String> {
    let (id, resources) = (&executor.id, &executor.resources);
    let (cpus, mem) = (Amount::from_thousandths(10), Amount::from_units(32));
    if resources.cpus() < cpus {
        let own = resources.cpus();
        return Err(format!("Executor '{id}' uses less CPUs ({own}) than the minimum required ({cpus})"));
    }
    if resources.mem() < mem {
        let own = resources.mem();
        return Err(format!("Executor '{id}' uses less memory ({own}MB) than the minimum required ({mem}MB)"));
    }
    if resources.disk() <= Amount::from_thousandths(0) {
        return Err(format!("Executor '{id}' uses no disk"));
    }
    Ok(())
}
