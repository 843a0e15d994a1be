//! Builds events of the executor API that are sent from more than one place, or have a body.

use protos::mesos::{self as pb, executor as api};

/// Returns the event that launches a task.
pub(crate) fn launch_event(task: pb::TaskInfo) -> api::Event {
    api::Event {
        r#type: Some(api::event::Type::Launch as i32),
        launch: Some(Box::new(api::event::Launch { task })),
        ..api::Event::default()
    }
}

/// Returns the event that launches a task group.
pub(crate) fn launch_group_event(tasks: Vec<pb::TaskInfo>) -> api::Event {
    api::Event {
        r#type: Some(api::event::Type::LaunchGroup as i32),
        launch_group: Some(api::event::LaunchGroup { task_group: pb::TaskGroupInfo { tasks } }),
        ..api::Event::default()
    }
}

/// Returns the event that shuts an executor down.
pub(crate) fn shutdown_event() -> api::Event {
    api::Event { r#type: Some(api::event::Type::Shutdown as i32), ..api::Event::default() }
}
