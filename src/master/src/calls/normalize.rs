//! Fills in optional fields of tasks before they are checked (SCH-75).

use protos::mesos::health_check::Type;
use protos::mesos::{ExecutorInfo, HealthCheck, Resource, TaskInfo, resource::AllocationInfo};

use crate::state::Framework;

/// Allocates resources without an allocation to the offer's role.
pub(crate) fn allocate(resources: &mut [Resource], role: &str) {
    for resource in resources {
        let info = resource.allocation_info.get_or_insert_default();
        if info.role.is_none() {
            *info = AllocationInfo { role: Some(role.into()) };
        }
    }
}

/// Fills in a task of a LAUNCH.
pub(crate) fn task(task: &mut TaskInfo, framework: &Framework, role: &str) {
    allocate(&mut task.resources, role);
    if let Some(executor) = &mut task.executor {
        executor.framework_id.get_or_insert_with(|| framework.proto_id());
        allocate(&mut executor.resources, role);
    }
    task.health_check.iter_mut().for_each(|check| health_check(check));
}

/// Fills in a task of a LAUNCH_GROUP, which runs under the group's executor.
pub(crate) fn group_task(task: &mut TaskInfo, executor: &ExecutorInfo, role: &str) {
    allocate(&mut task.resources, role);
    match &mut task.executor {
        Some(own) => allocate(&mut own.resources, role),
        None => task.executor = Some(Box::new(executor.clone())),
    }
    task.health_check.iter_mut().for_each(|check| health_check(check));
}

fn health_check(check: &mut HealthCheck) {
    if check.r#type.is_some() {
        return;
    }
    if check.command.is_some() {
        check.set_type(Type::Command);
    } else if check.http.is_some() {
        check.set_type(Type::Http);
    }
}
