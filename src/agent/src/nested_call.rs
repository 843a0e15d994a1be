//! Reads operator calls about containers. Only the body that belongs to the type of the call is used.

use protos::mesos::{self as pb, agent as api};

use crate::state::ContainerName;

/// A request to launch a container, from any of the three launch calls.
pub(crate) struct LaunchRequest {
    pub(crate) id: pb::ContainerId,
    pub(crate) command: pb::CommandInfo,
    pub(crate) container: Option<pb::ContainerInfo>,
    pub(crate) resources: Vec<pb::Resource>,
    pub(crate) limits: std::collections::BTreeMap<String, pb::value::Scalar>,
    pub(crate) session: bool,
}

/// Returns the launch request of a call, from the body of its type; `None` if that body is missing.
#[allow(deprecated)]
pub(crate) fn launch_request(call: api::Call) -> Option<LaunchRequest> {
    let plain = |id, command: Option<_>, container, session| LaunchRequest {
        id,
        command: command.unwrap_or_default(),
        container,
        resources: Vec::new(),
        limits: std::collections::BTreeMap::new(),
        session,
    };
    match call.r#type() {
        api::call::Type::LaunchContainer => call.launch_container.map(|launch| LaunchRequest {
            id: launch.container_id,
            command: launch.command.unwrap_or_default(),
            container: launch.container,
            resources: launch.resources,
            limits: launch.limits,
            session: false,
        }),
        api::call::Type::LaunchNestedContainer => {
            let launch = call.launch_nested_container?;
            Some(plain(launch.container_id, launch.command, launch.container, false))
        }
        api::call::Type::LaunchNestedContainerSession => {
            let launch = call.launch_nested_container_session?;
            Some(plain(launch.container_id, launch.command, launch.container, true))
        }
        _ => None,
    }
}

/// Returns the container that a wait, kill or remove call is about, and its signal, from the body of the call's type.
#[allow(deprecated)]
pub(crate) fn target(call: &api::Call) -> Option<(pb::ContainerId, Option<i32>)> {
    use api::call::Type;
    let found = match call.r#type() {
        Type::WaitContainer => call.wait_container.as_ref().map(|call| (&call.container_id, None)),
        Type::WaitNestedContainer => call.wait_nested_container.as_ref().map(|call| (&call.container_id, None)),
        Type::KillContainer => call.kill_container.as_ref().map(|call| (&call.container_id, call.signal)),
        Type::KillNestedContainer => call.kill_nested_container.as_ref().map(|call| (&call.container_id, call.signal)),
        Type::RemoveContainer => call.remove_container.as_ref().map(|call| (&call.container_id, None)),
        Type::RemoveNestedContainer => call.remove_nested_container.as_ref().map(|call| (&call.container_id, None)),
        _ => None,
    };
    found.map(|(id, signal)| (id.clone(), signal))
}

/// Returns the container that a call is about, from the body of its type; `None` if the call is not about one, or the
/// id is invalid.
pub fn container_of(call: &api::Call) -> Option<ContainerName> {
    use api::call::Type;
    let id = match call.r#type() {
        Type::LaunchContainer | Type::LaunchNestedContainer | Type::LaunchNestedContainerSession => {
            launch_request(call.clone())?.id
        }
        Type::AttachContainerInput => call.attach_container_input.as_ref()?.container_id.clone()?,
        Type::AttachContainerOutput => call.attach_container_output.as_ref()?.container_id.clone(),
        _ => target(call)?.0,
    };
    ContainerName::from_proto(&id).ok()
}

/// Returns the capabilities and the seccomp settings of a container's description.
#[allow(deprecated)]
pub(crate) fn rights(container: &pb::ContainerInfo) -> Option<pb::LinuxInfo> {
    let linux = container.linux_info.as_ref()?;
    Some(pb::LinuxInfo {
        capability_info: linux.capability_info.clone(),
        effective_capabilities: linux.effective_capabilities.clone(),
        bounding_capabilities: linux.bounding_capabilities.clone(),
        seccomp: linux.seccomp.clone(),
        ..pb::LinuxInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::call::{self, Type};

    fn id(value: &str) -> pb::ContainerId {
        pb::ContainerId { value: value.to_owned(), ..pb::ContainerId::default() }
    }

    #[test]
    fn only_the_body_of_a_calls_type_counts() {
        let launch = |name| call::LaunchContainer { container_id: id(name), ..Default::default() };
        let nested = |name| call::LaunchNestedContainer { container_id: id(name), ..Default::default() };
        let session = |name| call::LaunchNestedContainerSession { container_id: id(name), ..Default::default() };
        let all = |kind: Type| api::Call {
            r#type: Some(kind as i32),
            launch_container: Some(launch("alone")),
            launch_nested_container: Some(nested("nested")),
            launch_nested_container_session: Some(session("session")),
            wait_container: Some(call::WaitContainer { container_id: id("waited") }),
            kill_nested_container: Some(call::KillNestedContainer { container_id: id("killed"), signal: None }),
            ..api::Call::default()
        };
        let launched =
            |kind| launch_request(all(kind)).map(|launch_request| (launch_request.id.value, launch_request.session));
        assert_eq!(launched(Type::LaunchContainer), Some(("alone".to_owned(), false)));
        assert_eq!(launched(Type::LaunchNestedContainer), Some(("nested".to_owned(), false)));
        assert_eq!(launched(Type::LaunchNestedContainerSession), Some(("session".to_owned(), true)));
        assert_eq!(launched(Type::WaitContainer), None);
        let meant = |kind| target(&all(kind)).map(|(id, _)| id.value);
        assert_eq!(meant(Type::WaitContainer).as_deref(), Some("waited"));
        assert_eq!(meant(Type::KillNestedContainer).as_deref(), Some("killed"));
        assert_eq!(meant(Type::RemoveContainer), None);
    }
}
