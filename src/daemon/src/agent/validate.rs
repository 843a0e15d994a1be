//! Checks that a call to the agent has the parts that its type needs (docs/mesos/agent-api.md and
//! docs/mesos/executors.md).
//!
//! The core checks their content.

use base::ContainerId;
use protos::mesos::agent::call::{AttachContainerInput, Type as OperatorType, attach_container_input};
use protos::mesos::agent::{self, process_io};
use protos::mesos::executor::{self, call::Type as ExecutorType};
use protos::mesos::{self, TaskState, task_status::Source};

fn present(there: bool, name: &str) -> Result<(), String> {
    if there { Ok(()) } else { Err(format!("Expecting '{name}' to be present")) }
}

/// Checks an executor's call, without the state of the agent.
///
/// # Errors
/// The reason, as it follows `Failed to validate Executor::Call: `.
pub(super) fn executor_call(call: &executor::Call) -> Result<(), String> {
    let kind = call.r#type.and_then(|number| ExecutorType::try_from(number).ok());
    let kind = kind.ok_or("Expecting 'type' to be present")?;
    match kind {
        ExecutorType::Subscribe => present(call.subscribe.is_some(), "subscribe"),
        ExecutorType::Message => present(call.message.is_some(), "message"),
        ExecutorType::Update => match &call.update {
            Some(update) => status(call, &update.status),
            None => present(false, "update"),
        },
        _ => Ok(()),
    }
}

fn status(call: &executor::Call, status: &mesos::TaskStatus) -> Result<(), String> {
    let uuid = status.uuid.as_ref().ok_or("Expecting 'uuid' to be present")?;
    base::valid_uuid(uuid).map_err(|why| why.to_string())?;
    if let Some(id) = &status.executor_id
        && *id != call.executor_id
    {
        return Err("ExecutorID in Call: ".to_owned()
            + &call.executor_id.value
            + " does not match ExecutorID in TaskStatus: "
            + &id.value);
    }
    if status.source() != Source::Executor {
        let source = status.source().as_str_name();
        return Err(format!(
            "Received Call from executor {} with invalid source, expecting 'SOURCE_EXECUTOR', but received '{source}'",
            call.executor_id.value
        ));
    }
    if status.state() == TaskState::TaskStaging {
        return Err("Received TASK_STAGING from executor ".to_owned()
            + &call.executor_id.value
            + " which is not allowed");
    }
    status.check_status.as_ref().map_or(Ok(()), check_status)
}

/// Checks that the status of a check has the field of its type.
fn check_status(found: &mesos::CheckStatusInfo) -> Result<(), String> {
    use mesos::check_info::Type;
    let kind = found.r#type.ok_or("CheckStatusInfo must specify 'type'")?;
    let (there, field, name) = match Type::try_from(kind).unwrap_or(Type::Unknown) {
        Type::Command => (found.command.is_some(), "command", "COMMAND"),
        Type::Http => (found.http.is_some(), "http", "HTTP"),
        Type::Tcp => (found.tcp.is_some(), "tcp", "TCP"),
        Type::Unknown => return Err("'UNKNOWN' is not a valid check's status type".to_owned()),
    };
    if there { Ok(()) } else { Err(format!("Expecting '{field}' to be set for {name} check's status")) }
}

/// Checks a call of the operator API, without the state of the agent.
///
/// # Errors
/// The reason, as it follows `Failed to validate agent::Call: `.
pub(super) fn operator_call(call: &agent::Call) -> Result<(), String> {
    let kind = call.r#type.and_then(|number| OperatorType::try_from(number).ok());
    let kind = kind.ok_or("Expecting 'type' to be present")?;
    let name = kind.as_str_name().to_lowercase();
    let there = match kind {
        OperatorType::GetMetrics => call.get_metrics.is_some(),
        OperatorType::SetLoggingLevel => call.set_logging_level.is_some(),
        OperatorType::ListFiles => call.list_files.is_some(),
        OperatorType::ReadFile => call.read_file.is_some(),
        OperatorType::AddResourceProviderConfig => {
            return provider(call.add_resource_provider_config.as_ref().map(|add| &add.info), &name);
        }
        OperatorType::UpdateResourceProviderConfig => {
            return provider(call.update_resource_provider_config.as_ref().map(|update| &update.info), &name);
        }
        OperatorType::RemoveResourceProviderConfig => call.remove_resource_provider_config.is_some(),
        OperatorType::MarkResourceProviderGone => call.mark_resource_provider_gone.is_some(),
        OperatorType::AttachContainerInput => {
            let input = call.attach_container_input.as_ref();
            return first_input(input.ok_or("Expecting 'attach_container_input' to be present")?);
        }
        OperatorType::LaunchContainer => return launch(call, kind, &name),
        OperatorType::LaunchNestedContainer | OperatorType::LaunchNestedContainerSession => {
            return container(call, kind, &name).and_then(|()| launched(call, &name));
        }
        _ => return container(call, kind, &name),
    };
    present(there, &name)
}

/// Checks the first record of an input, which names the container.
fn first_input(input: &AttachContainerInput) -> Result<(), String> {
    if input.r#type() != attach_container_input::Type::ContainerId {
        return Err("Expecting 'attach_container_input.type' to be CONTAINER_ID".to_owned());
    }
    let id = input.container_id.as_ref().ok_or("Expecting 'attach_container_input.container_id' to be present")?;
    container_id(id).map_err(|why| format!("'attach_container_input.container_id' is invalid: {why}"))
}

/// The content of a later record of an input.
#[derive(Debug, PartialEq)]
pub(super) enum InputRecord {
    /// Bytes for the program; no bytes mean the end of its input.
    Data(Vec<u8>),
    /// Rows and columns of the terminal.
    Size(u32, u32),
    /// A heartbeat, which needs no action.
    Nothing,
}

/// Checks a record of an input that follows the first one.
///
/// # Errors
/// The rule that the record breaks.
pub(super) fn later_input(input: AttachContainerInput) -> Result<InputRecord, String> {
    if input.r#type() != attach_container_input::Type::ProcessIo {
        let kind = input.r#type().as_str_name();
        return Err(format!("Expecting 'attach_container_input.type' to be 'PROCESS_IO' instead of: '{kind}'"));
    }
    let message = input.process_io.ok_or("Expecting 'process_io' to be present")?;
    match message.r#type() {
        process_io::Type::Unknown => Err("'process_io.type' is unknown".to_owned()),
        process_io::Type::Data => {
            let data = message.data.ok_or("Expecting 'process_io.data' to be present")?;
            match data.r#type() {
                process_io::data::Type::Stdin => Ok(InputRecord::Data(data.data.unwrap_or_default())),
                _ => Err("Expecting 'process_io.data.type' to be 'STDIN'".to_owned()),
            }
        }
        process_io::Type::Control => {
            let control = message.control.ok_or("Expecting 'process_io.control' to be present")?;
            match control.r#type() {
                process_io::control::Type::Unknown => Err("'process_io.control.type' is unknown".to_owned()),
                process_io::control::Type::TtyInfo => {
                    let info = control.tty_info.ok_or("Expecting 'process_io.control.tty_info' to be present")?;
                    let size = info.window_size.ok_or("Expecting 'tty_info.window_size' to be present")?;
                    Ok(InputRecord::Size(size.rows, size.columns))
                }
                process_io::control::Type::Heartbeat => {
                    present(control.heartbeat.is_some(), "process_io.control.heartbeat").map(|()| InputRecord::Nothing)
                }
            }
        }
    }
}

/// Checks LAUNCH_CONTAINER, the only call with resources. A nested container uses those of its parent, unless it has
/// control groups of its own.
fn launch(call: &agent::Call, kind: OperatorType, name: &str) -> Result<(), String> {
    container(call, kind, name)?;
    let Some(launch) = &call.launch_container else { return Ok(()) };
    resources::validate(&launch.resources).map_err(|why| format!("Invalid resources: {why}"))?;
    let linux = launch.container.as_ref().and_then(|container| container.linux_info.as_ref());
    let shares = linux.is_none_or(mesos::LinuxInfo::share_cgroups);
    if launch.container_id.parent.is_some() && shares {
        let given = [(launch.resources.is_empty(), "Resources"), (launch.limits.is_empty(), "Resource limits")];
        if let Some((_, what)) = given.iter().find(|(empty, _)| !empty) {
            return Err(format!(
                "{what} may not be specified when using 'LAUNCH_CONTAINER' to launch nested containers which share \
                 their parent's cgroups"
            ));
        }
    }
    launched(call, name)
}

/// Checks the command and the container of a launch.
#[allow(deprecated)]
fn launched(call: &agent::Call, name: &str) -> Result<(), String> {
    let parts = match call.r#type() {
        OperatorType::LaunchContainer => call.launch_container.as_ref().map(|c| (&c.command, &c.container)),
        OperatorType::LaunchNestedContainer => {
            call.launch_nested_container.as_ref().map(|c| (&c.command, &c.container))
        }
        _ => call.launch_nested_container_session.as_ref().map(|c| (&c.command, &c.container)),
    };
    let Some((command, container)) = parts else { return Ok(()) };
    if let Some(Err(why)) = command.as_ref().map(master::validate_command) {
        return Err(format!("'{name}.command' is invalid: {why}"));
    }
    match container.as_ref().map(master::validate_container) {
        Some(Err(why)) => Err(format!("'{name}.container' is invalid: {why}")),
        _ => Ok(()),
    }
}

/// Checks the info of a call about a resource provider. It must have no id: the agent generates it.
fn provider(info: Option<&mesos::ResourceProviderInfo>, name: &str) -> Result<(), String> {
    let info = info.ok_or_else(|| format!("Expecting '{name}' to be present"))?;
    match info.id {
        Some(_) => Err(format!("Expecting '{name}.info.id' to be unset")),
        None => Ok(()),
    }
}

/// Checks the container id of a call that has one.
fn container(call: &agent::Call, kind: OperatorType, name: &str) -> Result<(), String> {
    let (id, nested) = match kind {
        OperatorType::LaunchNestedContainer => (call.launch_nested_container.as_ref().map(|c| &c.container_id), true),
        OperatorType::WaitNestedContainer => (call.wait_nested_container.as_ref().map(|c| &c.container_id), true),
        OperatorType::KillNestedContainer => (call.kill_nested_container.as_ref().map(|c| &c.container_id), true),
        OperatorType::RemoveNestedContainer => (call.remove_nested_container.as_ref().map(|c| &c.container_id), true),
        OperatorType::LaunchNestedContainerSession => {
            (call.launch_nested_container_session.as_ref().map(|c| &c.container_id), true)
        }
        OperatorType::LaunchContainer => (call.launch_container.as_ref().map(|c| &c.container_id), false),
        OperatorType::WaitContainer => (call.wait_container.as_ref().map(|c| &c.container_id), false),
        OperatorType::KillContainer => (call.kill_container.as_ref().map(|c| &c.container_id), false),
        OperatorType::RemoveContainer => (call.remove_container.as_ref().map(|c| &c.container_id), false),
        OperatorType::AttachContainerOutput => (call.attach_container_output.as_ref().map(|c| &c.container_id), false),
        _ => return Ok(()),
    };
    let id = id.ok_or_else(|| format!("Expecting '{name}' to be present"))?;
    container_id(id).map_err(|why| format!("'{name}.container_id' is invalid: {why}"))?;
    if nested && id.parent.is_none() {
        return Err(format!("Expecting '{name}.container_id.parent' to be present"));
    }
    Ok(())
}

fn container_id(id: &mesos::ContainerId) -> Result<(), String> {
    ContainerId::new(&id.value).map_err(|error| error.to_string())?;
    match &id.parent {
        Some(parent) => container_id(parent).map_err(|why| format!("'ContainerID.parent' is invalid: {why}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesos::check_info::Type;
    use mesos::{CheckStatusInfo, TaskStatus, check_status_info};

    fn checked(change: impl FnOnce(&mut TaskStatus)) -> Result<(), String> {
        let mut status = TaskStatus {
            uuid: Some(base::uuid_from([1; 16]).to_vec()),
            source: Some(Source::Executor as i32),
            state: TaskState::TaskRunning as i32,
            ..TaskStatus::default()
        };
        change(&mut status);
        let executor_id = mesos::ExecutorId { value: "e".into() };
        let update = Some(executor::call::Update { status });
        executor_call(&executor::Call {
            r#type: Some(ExecutorType::Update as i32),
            executor_id,
            update,
            ..executor::Call::default()
        })
    }

    fn launch(change: impl FnOnce(&mut agent::call::LaunchContainer)) -> Result<(), String> {
        let id = |value: &str| mesos::ContainerId { value: value.to_owned(), parent: None };
        let mut launch = agent::call::LaunchContainer {
            container_id: mesos::ContainerId { parent: Some(Box::new(id("outer"))), ..id("inner") },
            ..Default::default()
        };
        change(&mut launch);
        operator_call(&agent::Call {
            r#type: Some(OperatorType::LaunchContainer as i32),
            launch_container: Some(launch),
            ..agent::Call::default()
        })
    }

    #[test]
    fn launches_of_containers() {
        let cpus = |value| mesos::Resource {
            name: "cpus".into(),
            scalar: Some(mesos::value::Scalar { value }),
            ..mesos::Resource::default()
        };
        let own_groups = mesos::ContainerInfo {
            r#type: mesos::container_info::Type::Mesos as i32,
            linux_info: Some(mesos::LinuxInfo { share_cgroups: Some(false), ..mesos::LinuxInfo::default() }),
            ..mesos::ContainerInfo::default()
        };
        let variable = mesos::environment::Variable { name: "A".into(), ..Default::default() };
        let variables = mesos::Environment { variables: vec![variable] };
        let command = mesos::CommandInfo { environment: Some(variables), ..mesos::CommandInfo::default() };
        let volume = mesos::ContainerInfo { volumes: vec![mesos::Volume::default()], ..own_groups.clone() };
        assert_eq!(launch(|_| ()), Ok(()));
        assert_eq!(launch(|it| (it.resources, it.container) = (vec![cpus(1.0)], Some(own_groups.clone()))), Ok(()));
        assert_eq!(launch(|it| (it.resources, it.container_id.parent) = (vec![cpus(1.0)], None)), Ok(()));
        let limit = || [("cpus".to_owned(), mesos::value::Scalar { value: 1.0 })].into_iter().collect();
        for (given, words) in [
            (launch(|it| it.resources = vec![cpus(1.0)]), "Resources may not be specified"),
            (launch(|it| it.limits = limit()), "Resource limits may not be specified"),
            (launch(|it| it.resources = vec![cpus(-1.0)]), "Invalid resources: "),
            (
                launch(|it| it.command = Some(command)),
                "'launch_container.command' is invalid: Environment variable 'A'",
            ),
            (launch(|it| it.container = Some(volume)), "'launch_container.container' is invalid: Invalid volume: "),
        ] {
            let error = given.unwrap_err();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn what_is_typed() {
        use attach_container_input::Type as Kind;
        use protos::mesos::agent::ProcessIo;
        use protos::mesos::tty_info::WindowSize;
        let input = |kind: Kind, process_io| AttachContainerInput {
            r#type: Some(kind as i32),
            process_io,
            ..AttachContainerInput::default()
        };
        let data = |kind: process_io::data::Type| ProcessIo {
            r#type: Some(process_io::Type::Data as i32),
            data: Some(process_io::Data { r#type: Some(kind as i32), data: Some(b"x".to_vec()) }),
            control: None,
        };
        let control = |kind: process_io::control::Type, tty_info, heartbeat| ProcessIo {
            r#type: Some(process_io::Type::Control as i32),
            data: None,
            control: Some(process_io::Control { r#type: Some(kind as i32), tty_info, heartbeat }),
        };
        let empty = |kind: process_io::Type| ProcessIo { r#type: Some(kind as i32), ..ProcessIo::default() };
        let typed = |message: ProcessIo| later_input(input(Kind::ProcessIo, Some(message)));
        let size = mesos::TtyInfo { window_size: Some(WindowSize { rows: 2, columns: 3 }) };
        let beat = process_io::control::Heartbeat::default();
        use process_io::control::Type::{Heartbeat, TtyInfo, Unknown};
        assert_eq!(typed(data(process_io::data::Type::Stdin)), Ok(InputRecord::Data(b"x".to_vec())));
        assert_eq!(typed(control(TtyInfo, Some(size), None)), Ok(InputRecord::Size(2, 3)));
        assert_eq!(typed(control(Heartbeat, None, Some(beat))), Ok(InputRecord::Nothing));
        for (given, words) in [
            (later_input(input(Kind::ContainerId, None)), "to be 'PROCESS_IO' instead of: 'CONTAINER_ID'"),
            (later_input(input(Kind::ProcessIo, None)), "Expecting 'process_io' to be present"),
            (typed(ProcessIo::default()), "'process_io.type' is unknown"),
            (typed(empty(process_io::Type::Data)), "Expecting 'process_io.data' to be present"),
            (typed(data(process_io::data::Type::Stdout)), "Expecting 'process_io.data.type' to be 'STDIN'"),
            (typed(empty(process_io::Type::Control)), "Expecting 'process_io.control' to be present"),
            (typed(control(Unknown, None, None)), "'process_io.control.type' is unknown"),
            (typed(control(TtyInfo, None, None)), "Expecting 'process_io.control.tty_info' to be present"),
            (
                typed(control(TtyInfo, Some(mesos::TtyInfo::default()), None)),
                "Expecting 'tty_info.window_size' to be present",
            ),
            (typed(control(Heartbeat, None, None)), "Expecting 'process_io.control.heartbeat' to be present"),
        ] {
            let error = given.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn updates_of_executors() {
        let found = |kind: Option<Type>, tcp: bool| CheckStatusInfo {
            r#type: kind.map(|kind| kind as i32),
            tcp: tcp.then(check_status_info::Tcp::default),
            ..CheckStatusInfo::default()
        };
        assert_eq!(checked(|_| ()), Ok(()));
        assert_eq!(checked(|status| status.check_status = Some(found(Some(Type::Tcp), true))), Ok(()));
        for (given, words) in [
            (checked(|status| status.uuid = None), "Expecting 'uuid' to be present"),
            (checked(|status| status.uuid = Some(vec![1])), "Not a valid UUID"),
            (checked(|status| status.uuid = Some(vec![0; 16])), "Not a valid UUID"),
            (checked(|status| status.source = None), "with invalid source"),
            (checked(|status| status.state = TaskState::TaskStaging as i32), "TASK_STAGING"),
            (checked(|status| status.check_status = Some(found(None, true))), "CheckStatusInfo must specify 'type'"),
            (
                checked(|status| status.check_status = Some(found(Some(Type::Http), true))),
                "Expecting 'http' to be set for HTTP check's status",
            ),
            (checked(|status| status.check_status = Some(found(Some(Type::Unknown), true))), "is not a valid check's"),
        ] {
            let error = given.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
