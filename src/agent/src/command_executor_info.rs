//! Builds the executor info of the command executor for a task with a command (EXE-20).

use protos::mesos as pb;

use crate::config::Config;

/// CPUs that the command executor adds to its task's resources.
const CPUS: f64 = 0.1;
/// Memory that the command executor adds to its task's resources, in MB.
const MEM: f64 = 32.0;
/// Margin of the executor's grace period beyond its task's: one second to notice, one to report.
const SHUTDOWN_MARGIN_NANOSECONDS: i64 = 2_000_000_000;
/// Length from which a command is shortened in the executor's name.
const NAME_COMMAND_MAX: usize = 15;
/// Number of characters of a shortened command.
const NAME_COMMAND_CUT: usize = 12;

/// Returns the executor info for a task without an executor.
pub(crate) fn command_executor_info(
    config: &Config,
    framework: &pb::FrameworkInfo,
    task: &pb::TaskInfo,
) -> pb::ExecutorInfo {
    let none = pb::CommandInfo::default();
    let task_command = task.command.as_ref().unwrap_or(&none);
    let role = task.resources.iter().find_map(|resource| resource.allocation_info.clone());
    let scalar = |name: &str, value: f64| pb::Resource {
        name: name.into(),
        r#type: pb::value::Type::Scalar as i32,
        scalar: Some(pb::value::Scalar { value }),
        allocation_info: role.clone(),
        ..pb::Resource::default()
    };
    let grace = task.kill_policy.and_then(|policy| policy.grace_period);
    #[allow(deprecated)]
    pb::ExecutorInfo {
        executor_id: pb::ExecutorId { value: task.task_id.value.clone() },
        framework_id: framework.id.clone(),
        command: Some(pb::CommandInfo {
            shell: Some(false),
            value: Some(config.program.clone()),
            arguments: vec![config.program.clone(), "executor".to_owned(), "command".to_owned()],
            uris: task_command.uris.clone(),
            environment: task_command.environment.clone(),
            user: task_command.user.clone(),
        }),
        container: task.container.as_deref().cloned(),
        resources: vec![scalar("cpus", CPUS), scalar("mem", MEM)],
        name: Some(
            ["Command Executor (Task: ", &task.task_id.value, ") (Command: ", &shown(task_command), ")"].concat(),
        ),
        source: Some(task.task_id.value.to_string()),
        discovery: task.discovery.as_deref().cloned(),
        shutdown_grace_period: grace.map(|grace| pb::DurationInfo {
            nanoseconds: grace.nanoseconds.saturating_add(SHUTDOWN_MARGIN_NANOSECONDS),
        }),
        labels: task.labels.clone(),
        ..pb::ExecutorInfo::default()
    }
}

/// Returns a command as the executor's name shows it.
fn shown(command: &pb::CommandInfo) -> String {
    let value = command.value();
    let text = if value.len() > NAME_COMMAND_MAX {
        format!("{}...", value.chars().take(NAME_COMMAND_CUT).collect::<String>())
    } else {
        value.to_owned()
    };
    if command.shell() { ["sh -c '", &text, "'"].concat() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(value: &str, shell: bool) -> String {
        shown(&pb::CommandInfo { value: Some(value.into()), shell: Some(shell), ..pb::CommandInfo::default() })
    }

    #[test]
    fn commands_are_cut() {
        assert_eq!(named("while true; do :; done", true), "sh -c 'while true; ...'");
        assert_eq!(named("sleep 1000", true), "sh -c 'sleep 1000'");
        assert_eq!(named("/bin/echo", false), "/bin/echo");
    }
}
