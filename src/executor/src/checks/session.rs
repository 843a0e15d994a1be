//! Runs a check's command in a session: a container inside the task's, for tasks of pods that see other files than
//! their executor does (EXE-84).
//!
//! A process of its own asks the agent to launch the container, waits for its end, has it removed, and exits with its
//! exit code.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use containers::{Spec, WaitStatus};
use prost::Message;

use super::error::InvalidCheck;
use crate::blocking::{self, NoAnswer};
use crate::environment::{Endpoint, Settings};
use crate::messages::{
    AgentCall, AgentCallType, AgentResponse, Command, ContainerId, Environment, LaunchSession, OfContainer, ProcessIo,
    Task,
};
use crate::process::NoValue;
use crate::records::Records;
use crate::tls::Tls;
use crate::{clock, exchange, helper_process, http};

/// Environment variable with the id of the task's container: its ids, the outermost first, separated by dots.
const PARENT: &str = "TEPUI_SESSION_PARENT";
/// Environment variable with the command's message, as hexadecimal digits.
const COMMAND: &str = "TEPUI_SESSION_COMMAND";

/// Time limit of calls to the agent that wait for nothing, and of the end of a killed command.
const QUICK: Duration = Duration::from_secs(10);
/// Maximum length of a response in bytes; longer ones are errors, and not read to their end.
const BODY_LIMIT: usize = 64 * 1024;
const SIGKILL: i32 = 9;
/// Addend to the number of the signal that ended the command, for the exit code, as in a shell.
const SIGNALLED: i32 = 128;

/// A command that can be run repeatedly inside a task's container.
#[derive(Clone, Debug)]
pub(super) struct Session {
    parent: String,
    command: String,
}

impl Session {
    /// Creates a session command. `command` is the bytes of a check's `CommandInfo`. The command has the environment of
    /// the task's command and its own variables, and runs as the task's user.
    pub(super) fn new(parent: &ContainerId, task: &Task, command: &[u8]) -> Result<Session, InvalidCheck> {
        let of_task = task.command.as_deref().map(Command::decode).transpose()?.unwrap_or_default();
        Command::decode(command)?.value.ok_or(NoValue)?;
        let variables = of_task.environment.into_iter().flat_map(|environment| environment.variables);
        let variables = variables.filter(|variable| variable.value.is_some()).collect();
        let before = Command { user: of_task.user, environment: Some(Environment { variables }), ..Command::default() };
        // Read as one message, later variables are appended to earlier ones, and a later user replaces an earlier one.
        let whole = [&before.encode_to_vec(), command].concat();
        Ok(Session { parent: dotted(parent), command: base::hex(&whole) })
    }

    /// Returns the process that runs the command, and the pipe that must be kept open while the process is waited for.
    pub(super) fn spec(&self) -> io::Result<(Spec, PipeWriter)> {
        let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        environment.push((PARENT.into(), self.parent.clone().into()));
        environment.push((COMMAND.into(), self.command.clone().into()));
        helper_process::spec("session", environment)
    }
}

/// Runs the command that the environment describes.
pub(crate) fn main() -> ExitCode {
    let settings = match Settings::read(&|name| std::env::var_os(name)) {
        Ok(settings) => settings,
        Err(error) => return crate::refuse(&error),
    };
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let Some(command) = unhex(&variable(COMMAND)) else { return ExitCode::FAILURE };
    let parent = variable(PARENT)
        .split('.')
        .fold(None, |parent, id| Some(Box::new(ContainerId { value: id.to_owned(), parent })));
    let value = format!("check-{}", base::uuid_text(clock::uuid()));
    let run = Arc::new(Run { settings, id: ContainerId { value, parent }, stage: Mutex::default() });
    let watched = run.clone();
    helper_process::exit_when_abandoned(move || watched.give_up());
    match run.run(command) {
        Ok(code) => ExitCode::from(code),
        Err(Failure::Refused(words)) => {
            stdio::err!("{words}");
            ExitCode::FAILURE
        }
        Err(Failure::Away(error)) => {
            // An executor without its agent ends its probes: that is not evidence about the task.
            std::thread::park_timeout(QUICK);
            stdio::err!(
                "The request to run a check's command cannot be sent to the agent: {}",
                base::error_chain(&error)
            );
            ExitCode::FAILURE
        }
    }
}

/// Reason for a missing exit code.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Away(#[from] NoAnswer),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Away(error.into())
    }
}

/// Stage of the session, which states whether the agent may have launched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LaunchStage {
    #[default]
    NotLaunched,
    Launched,
    Abandoned,
}

struct Run {
    settings: Settings,
    id: ContainerId,
    stage: Mutex<LaunchStage>,
}

impl Run {
    /// Runs the command to its end and returns its exit code.
    fn run(&self, command: Vec<u8>) -> Result<u8, Failure> {
        if self.advance_to(LaunchStage::Launched) == LaunchStage::Abandoned {
            return Err(Failure::Refused("The command was cancelled before it started".to_owned()));
        }
        let launch = LaunchSession { container_id: self.id.clone(), command: Some(command) };
        let launch = AgentCall {
            r#type: Some(AgentCallType::LaunchNestedContainerSession as i32),
            launch_nested_container_session: Some(launch),
            ..AgentCall::default()
        };
        let (mut records, mut refusal, mut broken) = (Records::new(), Vec::new(), false);
        let status = self.ask(&launch, None, &mut |status, data| {
            if status != 200 {
                refusal.extend_from_slice(data);
                return refusal.len() > BODY_LIMIT;
            }
            broken = records.feed(data, &mut show).is_err();
            broken
        })?;
        match status {
            200 if !broken => {}
            200 => return Err(Failure::Refused("The agent's stream cannot be read".to_owned())),
            503 => return Err(Failure::Away(NoAnswer::None)),
            _ => {
                let why = String::from_utf8_lossy(&refusal);
                return Err(Failure::Refused(format!("A check's command cannot be run ({status}): {why}")));
            }
        }
        let ended = self.wait(None)?;
        self.remove();
        let ended =
            ended.ok_or_else(|| Failure::Refused("The exit status of a check's command is unknown".to_owned()))?;
        let code = ended.code().unwrap_or_else(|| ended.signal().unwrap_or(0) + SIGNALLED);
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// Ends an abandoned command.
    fn give_up(&self) {
        if self.advance_to(LaunchStage::Abandoned) != LaunchStage::Launched {
            return;
        }
        let kill = OfContainer { container_id: self.id.clone(), signal: Some(SIGKILL) };
        let kill = AgentCall {
            r#type: Some(AgentCallType::KillNestedContainer as i32),
            kill_nested_container: Some(kill),
            ..AgentCall::default()
        };
        // If the agent is gone, the end of the connection has ended the session.
        if self.ask(&kill, Some(QUICK), &mut |_, _| true).is_ok() && self.wait(Some(QUICK)).is_ok() {
            self.remove();
        }
    }

    /// Sets the next stage, unless the session must never be launched, and returns the one before.
    fn advance_to(&self, next: LaunchStage) -> LaunchStage {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if *stage == LaunchStage::Abandoned { LaunchStage::Abandoned } else { std::mem::replace(&mut *stage, next) }
    }

    fn wait(&self, limit: Option<Duration>) -> Result<Option<WaitStatus>, Failure> {
        let of = OfContainer { container_id: self.id.clone(), signal: None };
        let call = AgentCall {
            r#type: Some(AgentCallType::WaitNestedContainer as i32),
            wait_nested_container: Some(of),
            ..AgentCall::default()
        };
        let mut body = Vec::new();
        let status = self.ask(&call, limit, &mut |_, data| {
            body.extend_from_slice(data);
            body.len() > BODY_LIMIT
        })?;
        let waited = AgentResponse::decode(body.as_slice()).ok().filter(|_| status == 200);
        let waited = waited.and_then(|answer| answer.wait_nested_container);
        Ok(waited.and_then(|waited| waited.exit_status).map(WaitStatus::from_raw))
    }

    fn remove(&self) {
        let of = OfContainer { container_id: self.id.clone(), signal: None };
        let call = AgentCall {
            r#type: Some(AgentCallType::RemoveNestedContainer as i32),
            remove_nested_container: Some(of),
            ..AgentCall::default()
        };
        match self.ask(&call, Some(QUICK), &mut |_, _| true) {
            Ok(200 | 404) => {}
            Ok(status) => stdio::err!("The session of a check cannot be removed: the agent answers {status}"),
            Err(error) => stdio::err!("The session of a check cannot be removed: {}", base::error_chain(&error)),
        }
    }

    fn ask(
        &self,
        call: &AgentCall,
        limit: Option<Duration>,
        sink: &mut dyn FnMut(u16, &[u8]) -> bool,
    ) -> Result<u16, NoAnswer> {
        let settings = &self.settings;
        let request = http::post(exchange::PATH, &settings.host, settings.token.as_deref(), &call.encode_to_vec());
        let mut socket: Box<dyn Both> = match &settings.endpoint {
            Endpoint::Tcp(address) => {
                let socket = TcpStream::connect_timeout(address, QUICK)?;
                socket.set_read_timeout(limit)?;
                Box::new(socket)
            }
            Endpoint::Tls(address) => {
                let socket = TcpStream::connect_timeout(address, QUICK)?;
                socket.set_read_timeout(limit)?;
                Box::new(Tls::new(address.ip())?.over(socket))
            }
            Endpoint::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(limit)?;
                Box::new(socket)
            }
        };
        socket.write_all(&request)?;
        blocking::read(&mut socket, sink)
    }
}

trait Both: Read + Write {}

impl<T: Read + Write> Both for T {}

/// Copies a record of the command's output to standard error.
fn show(record: &[u8]) {
    let data = ProcessIo::decode(record).ok().and_then(|message| message.data).and_then(|data| data.data);
    // With a full disk the output is lost.
    let _ = io::stderr().write_all(&data.unwrap_or_default());
}

fn dotted(id: &ContainerId) -> String {
    match &id.parent {
        Some(parent) => format!("{}.{}", dotted(parent), id.value),
        None => id.value.clone(),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |two: &[u8]| u8::try_from(digit(two.first()?)? << 4 | digit(two.get(1)?)?).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Variable;

    #[test]
    fn the_command_has_the_tasks_variables_and_user() {
        let command = |name: &str, user: Option<&str>| {
            let variables = vec![Variable { name: name.into(), value: Some(name.into()) }];
            let environment = Some(Environment { variables });
            Command { user: user.map(str::to_owned), value: Some(name.into()), environment, ..Command::default() }
        };
        let task = Task { command: Some(command("task", Some("me")).encode_to_vec()), ..Task::default() };
        let parent =
            ContainerId { value: "b".into(), parent: Some(Box::new(ContainerId { value: "a".into(), parent: None })) };
        let session = Session::new(&parent, &task, &command("check", None).encode_to_vec()).unwrap();
        assert_eq!(session.parent, "a.b");
        let whole = Command::decode(unhex(&session.command).unwrap().as_slice()).unwrap();
        assert_eq!((whole.value.as_deref(), whole.user.as_deref()), (Some("check"), Some("me")));
        let names: Vec<String> = whole.environment.unwrap().variables.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["task", "check"]);
        assert!(Session::new(&parent, &task, &Command::default().encode_to_vec()).is_err());
        assert_eq!((unhex("0"), unhex("zz"), unhex("")), (None, None, Some(Vec::new())));
    }
}
