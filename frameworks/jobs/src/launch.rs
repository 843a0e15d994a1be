//! Builds the messages of a launch: the operation, the command with its files, durations, the container of an image.

use std::time::Duration;

use sdk::v1::offer::{Operation, operation};
use sdk::v1::{self, CommandInfo, ContainerInfo, Image, TaskInfo, command_info, container_info, image};

use crate::{Run, Uri};

/// Returns a LAUNCH operation with these tasks.
pub fn launch(task_infos: Vec<TaskInfo>) -> Operation {
    Operation {
        r#type: Some(operation::Type::Launch as i32),
        launch: Some(operation::Launch { task_infos }),
        ..Default::default()
    }
}

/// Returns the command of a task, with its files, its user and its environment.
pub fn command(run: &Run, uris: &[Uri], user: Option<String>, environment: v1::Environment) -> CommandInfo {
    let uri = |uri: &Uri| command_info::Uri {
        value: uri.value.clone(),
        executable: Some(uri.executable),
        extract: Some(uri.extract),
        cache: Some(uri.cache),
        output_file: uri.output.clone(),
    };
    let (shell, value, arguments) = match run {
        Run::Command(command) => (true, Some(command.clone()), Vec::new()),
        Run::Program(words) => (false, words.first().cloned(), words.clone()),
        Run::Image => (false, None, Vec::new()),
    };
    CommandInfo {
        uris: uris.iter().map(uri).collect(),
        environment: Some(environment),
        shell: Some(shell),
        value,
        arguments,
        user,
    }
}

/// Returns a container of the Mesos containerizer with this image, which is named as in Docker.
pub fn image(name: &str) -> ContainerInfo {
    let docker = image::Docker { name: name.to_owned(), ..Default::default() };
    let image = Image { r#type: image::Type::Docker as i32, docker: Some(docker), ..Default::default() };
    ContainerInfo {
        r#type: container_info::Type::Mesos as i32,
        mesos: Some(container_info::MesosInfo { image: Some(image) }),
        ..Default::default()
    }
}

/// Converts a duration; 292 years at most.
pub fn duration(duration: Duration) -> v1::DurationInfo {
    v1::DurationInfo { nanoseconds: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
}
