//! From a task to the process that it is: program, environment, streams.
//!
//! Nothing is started here.

use std::ffi::OsString;

use containers::{Output, Program, Spec};
use prost::{DecodeError, Message};

use crate::environment::TOKEN;
use crate::messages::{Command, Task};

/// A task that no process can be made of; the words go into its TASK_FAILED.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("The task has no command")]
    NoCommand,
    #[error("The task's command has no value")]
    NoValue,
    #[error("The task's command cannot be read")]
    Malformed(#[source] DecodeError),
}

/// The process of `task`, in the executor's folder and with its streams. `inherited` is the executor's own environment.
pub(crate) fn task_spec(task: &Task, inherited: impl Iterator<Item = (OsString, OsString)>) -> Result<Spec, TaskError> {
    let bytes = task.command.as_deref().ok_or(TaskError::NoCommand)?;
    let command = Command::decode(bytes).map_err(TaskError::Malformed)?;
    let mut spec = Spec::new(program(&command)?);
    spec.environment = environment(inherited, task.allocation_role(), &command);
    spec.stdout = Output::Inherit;
    spec.stderr = Output::Inherit;
    spec.die_with_parent = true;
    Ok(spec)
}

/// What a `CommandInfo` runs.
pub(crate) fn program(command: &Command) -> Result<Program, TaskError> {
    let value = || command.value.as_ref().map(OsString::from).ok_or(TaskError::NoValue);
    if command.shell() {
        return Ok(Program::Shell(value()?));
    }
    Ok(Program::Argv { file: value()?, argv: command.arguments.iter().map(OsString::from).collect() })
}

/// The executor's environment without its secret, the role, and the command's variables; later ones win. A variable
/// whose value is a secret that nobody has resolved is left out.
pub(crate) fn environment(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    role: Option<&str>,
    command: &Command,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = inherited.filter(|(name, _)| name != TOKEN).collect();
    all.extend(role.map(|role| ("MESOS_ALLOCATION_ROLE".into(), role.into())));
    for variable in command.environment.iter().flat_map(|environment| &environment.variables) {
        if let Some(value) = &variable.value {
            all.push(((&variable.name).into(), value.into()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{AllocationInfo, Environment, Resource, Variable};

    fn variable(name: &str, value: Option<&str>) -> Variable {
        Variable { name: name.into(), value: value.map(str::to_owned) }
    }

    fn task(command: &Command) -> Task {
        let role = AllocationInfo { role: Some("dev".into()) };
        Task {
            command: Some(command.encode_to_vec()),
            resources: vec![Resource::default(), Resource { allocation_info: Some(role) }],
            ..Task::default()
        }
    }

    #[test]
    fn environment_of_a_task() {
        let variables = vec![variable("A", Some("task")), variable("S", None), variable("EMPTY", Some(""))];
        let command =
            Command { environment: Some(Environment { variables }), value: Some("true".into()), ..Command::default() };
        let inherited = [("A", "agent"), (TOKEN, "secret"), ("B", "b")].map(|(n, v)| (n.into(), v.into()));
        let spec = task_spec(&task(&command), inherited.into_iter()).unwrap();
        let all: Vec<String> =
            spec.environment.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        assert_eq!(all, ["A=agent", "B=b", "MESOS_ALLOCATION_ROLE=dev", "A=task", "EMPTY="]);
    }

    #[test]
    fn programs() {
        let shell = Command { value: Some("a | b".into()), ..Command::default() };
        assert_eq!(program(&shell).unwrap(), Program::Shell("a | b".into()));
        let arguments = vec!["echo".to_owned(), "x".to_owned()];
        let argv = Command { shell: Some(false), value: Some("/bin/echo".into()), arguments, ..Command::default() };
        let expected = Program::Argv { file: "/bin/echo".into(), argv: vec!["echo".into(), "x".into()] };
        assert_eq!(program(&argv).unwrap(), expected);
    }

    #[test]
    fn tasks_without_a_command() {
        let none = task_spec(&Task::default(), std::iter::empty()).unwrap_err();
        assert_eq!(none.to_string(), "The task has no command");
        let empty = task_spec(&task(&Command::default()), std::iter::empty()).unwrap_err();
        assert_eq!(empty.to_string(), "The task's command has no value");
        let broken = Task { command: Some(vec![0xff]), ..Task::default() };
        assert!(matches!(task_spec(&broken, std::iter::empty()), Err(TaskError::Malformed(_))));
    }
}
