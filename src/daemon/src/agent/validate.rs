//! Whether a call to the agent has the parts that its type wants (wire/http.md 7.2 and 8.1).
//!
//! What the parts say is the core's to judge.

use base::ContainerId;
use protos::mesos::agent::{self, call::Type as OperatorType};
use protos::mesos::executor::{self, call::Type as ExecutorType};
use protos::mesos::{self, TaskState, task_status::Source};

fn present(there: bool, name: &str) -> Result<(), String> {
    if there { Ok(()) } else { Err(format!("Expecting '{name}' to be present")) }
}

/// Checks an executor's call by itself.
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
    if uuid.len() != 16 {
        return Err("Not a valid UUID".to_owned());
    }
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

/// What a check has found must be of its own kind.
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

/// Checks a call of the operator API by itself.
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
        OperatorType::AddResourceProviderConfig => call.add_resource_provider_config.is_some(),
        OperatorType::UpdateResourceProviderConfig => call.update_resource_provider_config.is_some(),
        OperatorType::RemoveResourceProviderConfig => call.remove_resource_provider_config.is_some(),
        OperatorType::MarkResourceProviderGone => call.mark_resource_provider_gone.is_some(),
        OperatorType::AttachContainerInput => call.attach_container_input.is_some(),
        _ => return container(call, kind, &name),
    };
    present(there, &name)
}

/// The calls that name a container.
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
            uuid: Some(vec![1; 16]),
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
