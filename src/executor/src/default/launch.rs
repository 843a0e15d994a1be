//! Converts a task to the agent call that launches its container.
//!
//! Commands and containers are passed on as the bytes that the framework wrote. A field is added by appending an
//! encoded message with only that field: protobuf merges the two when they are read.

use prost::{DecodeError, Message};

use crate::messages::{
    AgentCall, AgentCallType, Command, Container, ContainerId, ContainerType, DiskResource, Environment,
    LaunchContainer, Task, TaskResources, Variable, Volume,
};

/// Returns the LAUNCH_CONTAINER call for `task` (whose whole message is `bytes`) as container `id`.
pub(super) fn launch_call(
    task: &Task,
    bytes: &[u8],
    id: &ContainerId,
    address: Option<&str>,
) -> Result<AgentCall, DecodeError> {
    let resources = TaskResources::decode(bytes)?.resources;
    let container = task.container.as_deref().map(Container::decode).transpose()?;
    let shares_cgroups =
        container.as_ref().and_then(|c| c.linux_info.as_ref()).is_none_or(crate::messages::LinuxInfo::share_cgroups);
    let volumes = volumes(&resources)?;
    let mut call = LaunchContainer {
        container_id: id.clone(),
        command: task.command.as_ref().map(|command| with_variables(command, task.allocation_role(), address)),
        container: with_volumes(task.container.as_deref(), volumes),
        ..LaunchContainer::default()
    };
    if !shares_cgroups {
        call.resources = resources;
        call.limits = task.limits.clone();
    }
    let r#type = Some(AgentCallType::LaunchContainer as i32);
    Ok(AgentCall { r#type, launch_container: Some(call), ..AgentCall::default() })
}

/// Returns whether the task's container has files that its executor does not see, or sees at other paths.
pub(super) fn sees_other_files(task: &Task, bytes: &[u8]) -> bool {
    let has_disk = |resource: &Vec<u8>| {
        DiskResource::decode(resource.as_slice())
            .is_ok_and(|resource| resource.disk.is_some_and(|disk| disk.volume.is_some()))
    };
    task.container.is_some() || TaskResources::decode(bytes).is_ok_and(|task| task.resources.iter().any(has_disk))
}

/// Adds the variables of every task of a pod to `command`.
fn with_variables(command: &[u8], role: Option<&str>, address: Option<&str>) -> Vec<u8> {
    let named = [("MESOS_CONTAINER_IP", address), ("MESOS_ALLOCATION_ROLE", role)];
    let variable =
        |(name, value): (&str, Option<&str>)| Some(Variable { name: name.into(), value: Some(value?.into()) });
    let variables = named.into_iter().filter_map(variable).collect();
    let more = Command { environment: Some(Environment { variables }), ..Command::default() };
    [command, &more.encode_to_vec()].concat()
}

/// Returns the volumes through which a task sees its disks, which are mounted in the executor's sandbox.
fn volumes(resources: &[Vec<u8>]) -> Result<Vec<Volume>, DecodeError> {
    let mut volumes = Vec::new();
    for resource in resources {
        if let Some(volume) = DiskResource::decode(resource.as_slice())?.disk.and_then(|disk| disk.volume) {
            volumes.push(Volume::of_parent(&volume.container_path, volume.mode));
        }
    }
    Ok(volumes)
}

fn with_volumes(container: Option<&[u8]>, volumes: Vec<Volume>) -> Option<Vec<u8>> {
    if volumes.is_empty() {
        return container.map(<[u8]>::to_vec);
    }
    let more = Container { r#type: ContainerType::Mesos as i32, volumes, linux_info: None };
    Some([container.unwrap_or_default(), &more.encode_to_vec()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::v1;

    fn id() -> ContainerId {
        ContainerId {
            value: "child".into(),
            parent: Some(Box::new(ContainerId { value: "parent".into(), parent: None })),
        }
    }

    fn scalar(name: &str, disk: Option<v1::resource::DiskInfo>) -> v1::Resource {
        let allocation_info = Some(v1::resource::AllocationInfo { role: Some("dev".into()) });
        v1::Resource { name: name.into(), allocation_info, disk: disk.map(Box::new), ..Default::default() }
    }

    fn call_for(info: &v1::TaskInfo) -> v1::agent::call::LaunchContainer {
        let bytes = info.encode_to_vec();
        let task = Task::decode(bytes.as_slice()).unwrap();
        let call = launch_call(&task, &bytes, &id(), Some("10.0.0.7")).unwrap();
        let whole = v1::agent::Call::decode(call.encode_to_vec().as_slice()).unwrap();
        assert_eq!(whole.r#type(), v1::agent::call::Type::LaunchContainer);
        whole.launch_container.unwrap()
    }

    #[test]
    fn command_and_container_are_handed_on_whole() {
        let variable = |name: &str, value: &str| v1::environment::Variable {
            name: name.into(),
            value: Some(value.into()),
            ..Default::default()
        };
        let info = v1::TaskInfo {
            command: Some(v1::CommandInfo {
                value: Some("true".into()),
                user: Some("me".into()),
                uris: vec![v1::command_info::Uri { value: "http://x/y".into(), ..Default::default() }],
                environment: Some(v1::Environment { variables: vec![variable("A", "1")] }),
                ..Default::default()
            }),
            container: Some(Box::new(v1::ContainerInfo {
                hostname: Some("h".into()),
                r#type: 2,
                ..Default::default()
            })),
            resources: vec![scalar("cpus", None)],
            ..Default::default()
        };
        let call = call_for(&info);
        assert_eq!(
            (call.container_id.value.as_str(), call.container_id.parent.unwrap().value.as_str()),
            ("child", "parent")
        );
        let mut command = info.command.unwrap();
        command.environment = Some(v1::Environment {
            variables: vec![
                variable("A", "1"),
                variable("MESOS_CONTAINER_IP", "10.0.0.7"),
                variable("MESOS_ALLOCATION_ROLE", "dev"),
            ],
        });
        assert_eq!(call.command, Some(command));
        assert_eq!(call.container, info.container.map(|container| *container));
        assert_eq!((call.resources.len(), call.limits.len()), (0, 0));
    }

    #[test]
    fn disks_become_volumes_of_the_parent() {
        let volume = v1::Volume { container_path: "data".into(), mode: 1, ..Default::default() };
        let disk = v1::resource::DiskInfo { volume: Some(volume), ..Default::default() };
        let info = v1::TaskInfo { resources: vec![scalar("disk", Some(disk))], ..Default::default() };
        let container = call_for(&info).container.unwrap();
        assert_eq!(container.r#type(), v1::container_info::Type::Mesos);
        let [volume] = container.volumes.as_slice() else { panic!("{container:?}") };
        assert_eq!((volume.container_path.as_str(), volume.mode), ("data", 1));
        let source = volume.source.clone().unwrap();
        assert_eq!(source.r#type(), v1::volume::source::Type::SandboxPath);
        let path = source.sandbox_path.unwrap();
        assert_eq!((path.r#type(), path.path.as_str()), (v1::volume::source::sandbox_path::Type::Parent, "data"));
    }

    #[test]
    fn cgroups_of_its_own_need_resources() {
        let linux_info = Some(v1::LinuxInfo { share_cgroups: Some(false), ..Default::default() });
        let info = v1::TaskInfo {
            container: Some(Box::new(v1::ContainerInfo { linux_info, r#type: 2, ..Default::default() })),
            resources: vec![scalar("cpus", None), scalar("mem", None)],
            limits: [("cpus".to_owned(), v1::value::Scalar { value: 2.0 })].into(),
            ..Default::default()
        };
        let call = call_for(&info);
        assert_eq!((call.resources, call.limits), (info.resources, info.limits));
    }
}
