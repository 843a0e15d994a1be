//! Builds the container of a stage's image, and the command in it, for the stage's containerizer.
//!
//! Both containerizers run a job alike: its programs use the host's network, directories of the agent have the same
//! paths inside, and an entry point of the image is not prepended to a program.

use jobs::Containerizer;
use jobs::launch::image;
use sdk::v1::container_info::{self, DockerInfo, docker_info};
use sdk::v1::{self, CommandInfo, ContainerInfo, Parameter, volume};

use crate::job::{Stage, Volume};

/// Returns the command of a stage, and its container if it has an image.
pub(super) fn container(
    stage: &Stage,
    command: CommandInfo,
    volumes: Vec<Volume>,
) -> (CommandInfo, Option<ContainerInfo>) {
    match (&stage.image, stage.containerizer) {
        (None, _) => (command, None),
        (Some(name), Containerizer::Mesos) => {
            let volumes = volumes.into_iter().map(mesos_volume).collect();
            (command, Some(ContainerInfo { volumes, ..image(name) }))
        }
        (Some(name), Containerizer::Docker) => docker(name, command, volumes),
    }
}

fn mesos_volume(volume: Volume) -> v1::Volume {
    v1::Volume {
        mode: if volume.writes { volume::Mode::Rw } else { volume::Mode::Ro } as i32,
        container_path: volume.path.clone(),
        host_path: Some(volume.path),
        ..Default::default()
    }
}

fn docker(name: &str, mut command: CommandInfo, volumes: Vec<Volume>) -> (CommandInfo, Option<ContainerInfo>) {
    let parameter = |key: &str, value: String| Parameter { key: key.to_owned(), value };
    let mut parameters: Vec<Parameter> =
        volumes.iter().map(|volume| parameter("mount", docker_mount(volume))).collect();
    // With a shell, the agent replaces the entry point itself.
    if !command.shell()
        && let Some(program) = command.value.take()
    {
        parameters.push(parameter("entrypoint", program));
        command.arguments.drain(..command.arguments.len().min(1));
    }
    let container = ContainerInfo {
        r#type: container_info::Type::Docker as i32,
        docker: Some(DockerInfo {
            image: name.to_owned(),
            network: Some(docker_info::Network::Host as i32),
            parameters,
            ..Default::default()
        }),
        ..Default::default()
    };
    (command, Some(container))
}

/// Returns the value of `docker run --mount`. With a volume of Mesos instead, Docker would create a missing directory.
fn docker_mount(volume: &Volume) -> String {
    let mode = if volume.writes { "" } else { ",readonly" };
    format!("type=bind,{},{}{mode}", field("source", &volume.path), field("target", &volume.path))
}

/// Returns a field of a CSV record, quoted if necessary.
fn field(key: &str, value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{key}={}\"", value.replace('"', "\"\""))
    } else {
        format!("{key}={value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_quoted_where_csv_needs_it() {
        let mount = |path: &str, writes| docker_mount(&Volume { path: path.to_owned(), writes });
        assert_eq!(mount("/a b:c", true), "type=bind,source=/a b:c,target=/a b:c");
        assert_eq!(mount("/a,\"b\"", false), r#"type=bind,"source=/a,""b""","target=/a,""b""",readonly"#);
    }
}
