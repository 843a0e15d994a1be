//! Builds tasks: functions for the parts of a `TaskInfo` that most tasks have.
//!
//! A task built here lists its needs; a [`Packer`](crate::Packer) selects resources and agent.

use resources::Resources;

use crate::v1::{
    CommandInfo, Environment, ExecutorId, ExecutorInfo, Labels, Resource, TaskId, TaskInfo,
    environment::{Variable, variable},
    executor_info,
};

/// Builds a task that runs `command` with `/bin/sh -c` and needs `needs` (for example
/// `resources::parse_text("cpus:0.5;mem:64", "*")`).
pub fn shell(id: &str, command: &str, needs: &Resources) -> TaskInfo {
    let command = CommandInfo { shell: Some(true), value: Some(command.to_owned()), ..Default::default() };
    with_command(id, command, needs)
}

/// Builds a task that runs a program with arguments, without a shell. `arguments[0]` is the program.
pub fn program(id: &str, arguments: &[&str], needs: &Resources) -> TaskInfo {
    let command = CommandInfo {
        shell: Some(false),
        value: arguments.first().map(|&a| a.to_owned()),
        arguments: arguments.iter().map(|&a| a.to_owned()).collect(),
        ..Default::default()
    };
    with_command(id, command, needs)
}

/// Builds a task with this command; its name is its id.
pub fn with_command(id: &str, command: CommandInfo, needs: &Resources) -> TaskInfo {
    TaskInfo {
        name: id.to_owned(),
        task_id: TaskId { value: id.into() },
        resources: to_v1(needs),
        command: Some(command),
        ..Default::default()
    }
}

/// Builds a custom executor that is started by this command and needs `needs` for itself, besides its tasks.
pub fn executor(id: &str, command: CommandInfo, needs: &Resources) -> ExecutorInfo {
    ExecutorInfo {
        r#type: Some(executor_info::Type::Custom as i32),
        executor_id: ExecutorId { value: id.into() },
        name: Some(id.to_owned()),
        resources: to_v1(needs),
        command: Some(command),
        ..Default::default()
    }
}

/// Builds a task that a custom executor runs; its name is its id. The fields `data` and `labels` can describe the work.
pub fn custom(id: &str, executor: ExecutorInfo, needs: &Resources) -> TaskInfo {
    TaskInfo {
        name: id.to_owned(),
        task_id: TaskId { value: id.into() },
        resources: to_v1(needs),
        executor: Some(Box::new(executor)),
        ..Default::default()
    }
}

/// Builds an environment of these names and values, in order.
pub fn environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Environment {
    let variable = |(name, value): (&str, &str)| Variable {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        r#type: Some(variable::Type::Value as i32),
        ..Default::default()
    };
    Environment { variables: variables.into_iter().map(variable).collect() }
}

/// Builds labels of these keys and values, in order.
pub fn labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
    let label = |(key, value): (&str, &str)| crate::v1::Label { key: key.to_owned(), value: Some(value.to_owned()) };
    Labels { labels: labels.into_iter().map(label).collect() }
}

/// Converts resources to messages of the v1 API, with reservations in the post-refinement format.
pub fn to_v1(resources: &Resources) -> Vec<Resource> {
    resources.to_proto(resources::Format::PostRefinement).iter().map(twin).collect()
}

/// Converts resources from messages of the v1 API.
///
/// # Errors
/// Names the first invalid resource, and the rule that it breaks.
pub fn from_v1(resources: &[Resource]) -> Result<Resources, resources::InvalidResource> {
    let old: Vec<protos::mesos::Resource> = resources.iter().map(twin).collect();
    resources::from_proto(&old)
}

/// Converts a message to the same message of the other version of the API; both have the same binary encoding.
pub(crate) fn twin<A: prost::Message, B: prost::Message + Default>(message: &A) -> B {
    B::decode(message.encode_to_vec().as_slice()).unwrap_or_default()
}
