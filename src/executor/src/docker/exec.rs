//! Runs a command inside a running container, as `docker exec` does (EXE-84).
//!
//! A process of its own runs it and exits with its exit code. When the process is abandoned, the command is killed;
//! Docker would let it run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use containers::Spec;
use serde_json::{Value, json};

use super::client::{Client, request};
use super::error::{DockerError, failed};
use super::frames::Frames;
use super::run::WORDS_MAX;
use super::{EXEC, NAME, SOCKET};
use crate::messages::Command;
use crate::process::NoValue;
use crate::{clock, helper_process};

/// Time limit for finding the process of an abandoned command, and then for its end.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Interval of requests to the daemon for the process of a command.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// An error of running a command, or of reading its end.
#[derive(Debug, thiserror::Error)]
enum ExecError {
    #[error(transparent)]
    Docker(#[from] DockerError),
    #[error("The Docker daemon returned no id for the command")]
    NoId,
    #[error("The command was cancelled before it started")]
    GivenUp,
    #[error("The command cannot be started in the Docker container ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("The Docker daemon returned no exit code for the command")]
    NoExitCode,
    #[error("it has no process")]
    NoProcess,
    #[error("process {0} is not one of the container")]
    Foreign(i32),
    #[error("process {pid} cannot be inspected")]
    Cgroup { pid: i32, source: io::Error },
}

/// A command that can be run repeatedly inside a container.
#[derive(Clone, Debug)]
pub(crate) struct DockerExec {
    socket: PathBuf,
    name: String,
    body: String,
}

impl DockerExec {
    pub(super) fn new(socket: PathBuf, name: String, command: &Command) -> Result<DockerExec, NoValue> {
        Ok(DockerExec { socket, name, body: body(command)?.to_string() })
    }

    /// Returns the process that runs the command, and the pipe that must be kept open while the process is waited for.
    pub(crate) fn spec(&self) -> io::Result<(Spec, PipeWriter)> {
        let set = |name: &str, value: OsString| (OsString::from(name), value);
        let environment = vec![
            set(SOCKET, self.socket.clone().into()),
            set(NAME, self.name.clone().into()),
            set(EXEC, self.body.clone().into()),
        ];
        helper_process::spec("docker", environment)
    }
}

/// Returns the body of the request to the daemon: the container's variables, with the command's added.
fn body(command: &Command) -> Result<Value, NoValue> {
    let value = command.value.as_deref().ok_or(NoValue)?;
    let words: Vec<&str> = match command.shell() {
        true => vec!["/bin/sh", "-c", value],
        false => std::iter::once(value).chain(command.arguments.iter().map(String::as_str)).collect(),
    };
    let variables = command.environment.iter().flat_map(|environment| &environment.variables);
    // Of several variables of one name the last one counts.
    let variables: BTreeMap<&str, &str> =
        variables.filter_map(|variable| Some((variable.name.as_str(), variable.value.as_deref()?))).collect();
    let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(json!({"AttachStdout": true, "AttachStderr": true, "Cmd": words, "Env": variables}))
}

/// Runs the command that the environment describes.
pub(super) fn main(body: &str) -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let run = Run { client: Client::new(variable(SOCKET)), stage: Mutex::default() };
    let run = Arc::new(run);
    let watch = run.clone();
    helper_process::exit_when_abandoned(move || watch.give_up());
    match run.run(&variable(NAME), body) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            stdio::err!("{}", base::error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Stage of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Beginning,
    /// The command with this id is started, or about to be.
    Started(String),
    GivenUp,
}

struct Run {
    client: Client,
    stage: Mutex<Stage>,
}

impl Run {
    /// Runs the command to its end and returns its exit code.
    fn run(&self, container: &str, body: &str) -> Result<u8, ExecError> {
        let made = self.client.quick("POST", &format!("/containers/{container}/exec"), Some(body));
        let made = made.map_err(failed("The command cannot be run in the Docker container"))?;
        let id = made["Id"].as_str().ok_or(ExecError::NoId)?;
        if self.reach(Stage::Started(id.to_owned())) == Stage::GivenUp {
            return Err(ExecError::GivenUp);
        }
        let start = request("POST", &format!("/exec/{id}/start"), Some(r#"{"Detach": false, "Tty": false}"#));
        let (mut frames, mut refusal) = (Frames::default(), Vec::new());
        let status = self.client.stream(&start, None, &mut |status, data| {
            match status {
                200 => frames.feed(data),
                _ => refusal.extend_from_slice(data),
            }
            refusal.len() > WORDS_MAX
        });
        let status = status.map_err(failed("The command's output cannot be read"))?;
        if status != 200 {
            return Err(ExecError::Refused { status, message: String::from_utf8_lossy(&refusal).into_owned() });
        }
        let code = self.inspect(id)?["ExitCode"].as_u64();
        let code = code.ok_or(ExecError::NoExitCode)?;
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }

    fn inspect(&self, id: &str) -> Result<Value, DockerError> {
        let inspected = self.client.quick("GET", &format!("/exec/{id}/json"), None);
        inspected.map_err(failed("Failed to ask the Docker daemon for the command"))
    }

    /// Sets the stage, unless the command was given up, and returns the stage before.
    fn reach(&self, next: Stage) -> Stage {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let before = stage.clone();
        if before != Stage::GivenUp {
            *stage = next;
        }
        before
    }

    /// Ends an abandoned command with all processes that it has started.
    fn give_up(&self) {
        let Stage::Started(id) = self.reach(Stage::GivenUp) else { return };
        let deadline = clock::now() + END_LIMIT;
        match self.process(&id, deadline) {
            Ok(Some(pid)) => {
                let left = deadline.saturating_duration_since(clock::now());
                if let Err(error) = containers::destroy(pid, containers::start_time(pid), left) {
                    stdio::err!("{error}");
                }
            }
            Ok(None) => {}
            Err(error) => {
                stdio::err!(
                    "A check's command in the Docker container cannot be stopped: {}",
                    base::error_chain(&error)
                );
            }
        }
    }

    /// Returns the host's id of the first process of the command; `None` if it has ended.
    #[allow(clippy::disallowed_methods)] // the daemon does not report when the process is there
    fn process(&self, id: &str, deadline: Instant) -> Result<Option<i32>, ExecError> {
        loop {
            let inspected = self.inspect(id)?;
            let pid = inspected["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
            match inspected["Running"] == true {
                true if pid > 1 => return if_of(pid, inspected["ContainerID"].as_str().unwrap_or_default()),
                false if !inspected["ExitCode"].is_null() => return Ok(None),
                _ if clock::now() >= deadline => return Err(ExecError::NoProcess),
                _ => std::thread::sleep(ASK_AGAIN),
            }
        }
    }
}

/// Returns the process if it belongs to the container: another process may have the id by now, or the id may be of
/// another pid namespace.
fn if_of(pid: i32, container: &str) -> Result<Option<i32>, ExecError> {
    match std::fs::read_to_string(format!("/proc/{pid}/cgroup")) {
        Ok(groups) if !container.is_empty() && groups.contains(container) => Ok(Some(pid)),
        Ok(_) => Err(ExecError::Foreign(pid)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ExecError::Cgroup { pid, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Environment, Variable};

    fn variable(name: &str, value: Option<&str>) -> Variable {
        Variable { name: name.into(), value: value.map(str::to_owned) }
    }

    #[test]
    fn requests_to_docker() {
        let variables = vec![variable("A", Some("1")), variable("S", None), variable("A", Some("2"))];
        let shell =
            Command { value: Some("a | b".into()), environment: Some(Environment { variables }), ..Command::default() };
        let request = body(&shell).unwrap();
        assert_eq!((&request["Cmd"], &request["Env"]), (&json!(["/bin/sh", "-c", "a | b"]), &json!(["A=2"])));
        let arguments = vec!["x".to_owned(), "y".to_owned()];
        let plain = Command { shell: Some(false), value: Some("/bin/a".into()), arguments, ..Command::default() };
        assert_eq!(body(&plain).unwrap()["Cmd"], json!(["/bin/a", "x", "y"]));
        assert_eq!(body(&Command::default()).unwrap_err().to_string(), "the command has no value");
    }

    #[test]
    fn only_processes_of_the_container_are_ended() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(if_of(own, "no such container").unwrap_err().to_string().contains("not one of the container"));
        assert!(if_of(own, "").is_err());
        assert_eq!(if_of(i32::MAX, "x").unwrap(), None);
    }

    #[test]
    fn an_abandoned_command_starts_nothing() {
        let run = Run { client: Client::new("/nowhere"), stage: Mutex::default() };
        run.give_up();
        assert_eq!(run.reach(Stage::Started("id".to_owned())), Stage::GivenUp);
        assert_eq!(run.reach(Stage::Beginning), Stage::GivenUp);
    }
}
