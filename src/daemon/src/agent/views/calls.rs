//! The answers to the calls of the agent's v1 operator API that read (OPA-11 to OPA-16).

use std::sync::Arc;

use agent::{Executor, Framework, Queued, Snapshot};
use protos::mesos;
use protos::mesos::agent::call::Type;
use protos::mesos::agent::{Response, response};
use wire::negotiate::Encoding;

use crate::acls::Caller;
use crate::lists::{Builder, Item, message};
use crate::streams::encode_v1;

/// Answers a call that reads.
pub(in crate::agent) fn answer(snapshot: &Arc<Snapshot>, caller: &Caller, kind: Type, encoding: Encoding) -> Vec<u8> {
    let visible = || VisibleState { tasks: caller.visible(snapshot, false), executors: caller.visible(snapshot, true) };
    let big = |name: &str, kind: response::Type, tag, field: &str, fields: fn(&mut Builder<'_, '_>, &VisibleState)| {
        message(encoding, |b| {
            b.choice(1, "type", name, kind as i32);
            b.nested(tag, field, |b| fields(b, &visible()));
        })
    };
    match kind {
        Type::GetState => big("GET_STATE", response::Type::GetState, 9, "get_state", state),
        Type::GetFrameworks => big("GET_FRAMEWORKS", response::Type::GetFrameworks, 11, "get_frameworks", frameworks),
        Type::GetExecutors => big("GET_EXECUTORS", response::Type::GetExecutors, 12, "get_executors", executors),
        Type::GetTasks => big("GET_TASKS", response::Type::GetTasks, 13, "get_tasks", tasks),
        other => encode_v1(encoding, &small(snapshot, caller, other)),
    }
}

/// The parts of an agent's state that the sender may view. Tasks may be viewed even if their executors may not.
struct VisibleState {
    tasks: Arc<Snapshot>,
    executors: Arc<Snapshot>,
}

fn state(b: &mut Builder<'_, '_>, visible: &VisibleState) {
    b.nested(1, "get_tasks", |b| tasks(b, visible));
    b.nested(2, "get_executors", |b| executors(b, visible));
    b.nested(3, "get_frameworks", |b| frameworks(b, visible));
}

fn all(snapshot: &Snapshot) -> impl Iterator<Item = &Framework> {
    snapshot.frameworks.values().chain(&*snapshot.completed_frameworks).map(|framework| &**framework)
}

fn living(snapshot: &Snapshot) -> impl Iterator<Item = &Executor> {
    all(snapshot).flat_map(|framework| framework.executors.values()).map(|executor| &**executor)
}

fn ended(snapshot: &Snapshot) -> impl Iterator<Item = &Executor> {
    all(snapshot).flat_map(|framework| framework.completed_executors.iter()).map(|executor| &**executor)
}

fn tasks(b: &mut Builder<'_, '_>, visible: &VisibleState) {
    let snapshot = &*visible.tasks;
    b.list::<mesos::Task>(1, "pending_tasks", std::iter::empty::<Item<'_, mesos::Task>>());
    let queued = living(snapshot).flat_map(|executor| {
        let tasks = executor.queued.iter().flat_map(Queued::tasks);
        tasks.map(|task| Item::Owned(Box::new(staging(task, executor))))
    });
    b.list(2, "queued_tasks", queued);
    b.list(3, "launched_tasks", living(snapshot).flat_map(|e| e.launched.values()).map(|task| Item::Borrowed(&**task)));
    let terminated = living(snapshot).flat_map(|e| e.terminated.values());
    b.list(4, "terminated_tasks", terminated.map(|task| Item::Borrowed(&**task)));
    let completed = living(snapshot).chain(ended(snapshot)).flat_map(|executor| &executor.completed);
    b.list(5, "completed_tasks", completed.map(|task| Item::Borrowed(&**task)));
}

/// Returns a task in the queue for its executor, as a task in TASK_STAGING.
fn staging(task: &mesos::TaskInfo, executor: &Executor) -> mesos::Task {
    mesos::Task {
        name: task.name.clone(),
        task_id: task.task_id.clone(),
        framework_id: mesos::FrameworkId { value: (&executor.framework_id).into() },
        executor_id: task.executor.as_ref().map(|info| info.executor_id.clone()),
        slave_id: task.slave_id.clone(),
        state: mesos::TaskState::TaskStaging as i32,
        resources: task.resources.clone(),
        labels: task.labels.clone(),
        discovery: task.discovery.clone(),
        container: task.container.clone(),
        ..Default::default()
    }
}

fn executors(b: &mut Builder<'_, '_>, visible: &VisibleState) {
    let snapshot = &*visible.executors;
    let entry = |executor: &Executor| {
        let executor_info = (*executor.info).clone();
        Item::Owned(Box::new(response::get_executors::Executor { executor_info }))
    };
    b.list(1, "executors", living(snapshot).map(entry));
    b.list(2, "completed_executors", ended(snapshot).map(entry));
}

fn frameworks(b: &mut Builder<'_, '_>, visible: &VisibleState) {
    let snapshot = &*visible.executors;
    let entry = |framework: &Framework| {
        let framework_info = (*framework.info).clone();
        Item::Owned(Box::new(response::get_frameworks::Framework { framework_info }))
    };
    b.list(1, "frameworks", snapshot.frameworks.values().map(|framework| entry(framework)));
    b.list(2, "completed_frameworks", snapshot.completed_frameworks.iter().map(|framework| entry(framework)));
}

fn small(snapshot: &Snapshot, caller: &Caller, kind: Type) -> Response {
    let mut answer = Response::default();
    match kind {
        Type::GetOperations => {
            answer.set_type(response::Type::GetOperations);
            let visible = snapshot.operations.iter().filter(|operation| caller.may_view_operation(&operation.info));
            let operations = visible.map(|operation| (**operation).clone()).collect();
            answer.get_operations = Some(response::GetOperations { operations });
        }
        Type::GetResourceProviders => {
            answer.set_type(response::Type::GetResourceProviders);
            answer.get_resource_providers = Some(response::GetResourceProviders::default());
        }
        _ => {
            answer.set_type(response::Type::GetAgent);
            let mut info = (*snapshot.info).clone();
            info.resources.retain(|resource| caller.may_view_resource(resource));
            answer.get_agent = Some(response::GetAgent {
                slave_info: Some(info),
                drain_config: snapshot.drain,
                estimated_drain_start_time: snapshot
                    .drain_start
                    .map(|time| mesos::TimeInfo { nanoseconds: time.as_nanos() }),
            });
        }
    }
    answer
}
