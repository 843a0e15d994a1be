//! Describes the process of a task: program, environment, streams.
//!
//! It starts no process.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use containers::{Output, Program, Spec};
use prost::{DecodeError, Message};

use crate::environment::TOKEN;
use crate::messages::{Command, Task};

/// An error of a task from which no process can be started; the text is the message of its TASK_FAILED.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("The task has no command")]
    NoCommand,
    #[error("The task's command has no value")]
    NoValue,
    #[error("The task's command cannot be read")]
    Malformed(#[source] DecodeError),
}

/// An error of a check's command without a value.
#[derive(Debug, thiserror::Error)]
#[error("the command has no value")]
pub(crate) struct NoValue;

/// Returns the process of `task`, in the executor's directory and with its streams. `inherited` is the executor's own
/// environment.
pub(crate) fn task_spec(task: &Task, inherited: impl Iterator<Item = (OsString, OsString)>) -> Result<Spec, TaskError> {
    let bytes = task.command.as_deref().ok_or(TaskError::NoCommand)?;
    let command = Command::decode(bytes).map_err(TaskError::Malformed)?;
    let inherited: Vec<(OsString, OsString)> = inherited.collect();
    let image =
        |name: &str| words(inherited.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str()));
    let mut spec = Spec::new(program_or(&command, &image(IMAGE_ENTRYPOINT), &image(IMAGE_CMD))?);
    spec.environment = environment(inherited.into_iter(), task.allocation_role(), &command);
    spec.stdout = Output::Inherit;
    spec.stderr = Output::Inherit;
    spec.die_with_parent = true;
    pass_input(&mut spec);
    Ok(spec)
}

/// Sets the task's standard input to the executor's: nothing, or the terminal of the task.
pub(crate) fn pass_input(spec: &mut Spec) {
    let own = rustix::stdio::stdin();
    if let Ok(copy) = rustix::io::fcntl_dupfd_cloexec(own, 3) {
        spec.isolation.terminal = rustix::termios::isatty(own);
        spec.stdin = Some(Arc::new(copy));
    }
}

/// Variable with the entrypoint of the image, for a task without a command of its own: each word with its length before
/// it, as `4:echo`.
const IMAGE_ENTRYPOINT: &str = "TEPUI_IMAGE_ENTRYPOINT";
const IMAGE_CMD: &str = "TEPUI_IMAGE_CMD";

/// Parses the words of such a variable.
fn words(text: Option<&OsStr>) -> Vec<OsString> {
    let mut rest = text.map(OsStr::as_encoded_bytes).unwrap_or_default();
    let mut words = Vec::new();
    while let Some(at) = rest.iter().position(|byte| *byte == b':') {
        let length = std::str::from_utf8(&rest[..at]).ok().and_then(|number| number.parse::<usize>().ok());
        let Some((word, after)) = length.and_then(|length| rest[at + 1..].split_at_checked(length)) else { break };
        words.push(OsString::from_vec(word.to_vec()));
        rest = after;
    }
    words
}

/// Returns the program of a `CommandInfo` like [`program`]; a command without one is that of the image (AGT-103).
fn program_or(command: &Command, entrypoint: &[OsString], cmd: &[OsString]) -> Result<Program, TaskError> {
    if command.value.is_some() || command.shell() || entrypoint.is_empty() && cmd.is_empty() {
        return program(command);
    }
    let arguments: Vec<OsString> = command.arguments.iter().map(OsString::from).collect();
    let mut argv = entrypoint.to_vec();
    match (entrypoint.is_empty(), arguments.is_empty()) {
        (_, true) => argv.extend_from_slice(cmd),
        (false, false) => argv.extend(arguments),
        (true, false) => argv.extend(cmd.first().cloned().into_iter().chain(arguments)),
    }
    let file = argv.first().cloned().ok_or(TaskError::NoValue)?;
    Ok(Program::Argv { file, argv })
}

/// Returns the program that a `CommandInfo` runs.
pub(crate) fn program(command: &Command) -> Result<Program, TaskError> {
    let value = || command.value.as_ref().map(OsString::from).ok_or(TaskError::NoValue);
    if command.shell() {
        return Ok(Program::Shell(value()?));
    }
    Ok(Program::Argv { file: value()?, argv: command.arguments.iter().map(OsString::from).collect() })
}

/// Returns the executor's environment without its secret, with the role and the command's variables added. Later
/// variables override earlier ones. A variable with an unresolved secret is omitted.
pub(crate) fn environment(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    role: Option<&str>,
    command: &Command,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = inherited
        .filter(|(name, _)| ![TOKEN, IMAGE_ENTRYPOINT, IMAGE_CMD].iter().any(|hidden| name == hidden))
        .collect();
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
    fn images_say_what_is_run() {
        let list = |text: &str| words(Some(OsStr::new(text)));
        assert_eq!(list("1:e3:a:b0:"), ["e", "a:b", ""].map(OsString::from));
        assert!(list("nonsense").is_empty() && list("9:x").is_empty() && words(None).is_empty());
        let run = |arguments: &[&str], entrypoint: &str, cmd: &str| {
            let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
            let command = Command { shell: Some(false), arguments, ..Command::default() };
            match program_or(&command, &list(entrypoint), &list(cmd)) {
                Ok(Program::Argv { argv, .. }) => argv.join(OsStr::new(" ")).into_string().unwrap(),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(run(&[], "1:e", "1:c1:d"), "e c d");
        assert_eq!(run(&["a"], "1:e", "1:c1:d"), "e a");
        assert_eq!(run(&["a"], "", "1:c1:d"), "c a");
        assert_eq!(run(&["a"], "", ""), "Err(NoValue)");
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
