//! A Docker container of the command executor: a process to start, its reports, and ways to end it.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use containers::{Output, Program, Spec};
use prost::Message;

use super::client::{Client, request};
use super::error::InvalidTask;
use super::exec::DockerExec;
use super::messages::{Container, ContainerType};
use super::request::{ContainerSettings, create_request};
use super::{CREATE, DEVICES, DNS, IMAGE, LOGIN, NAME, PREFIX, PULL, QUOTA, SANDBOX, SOCKET, STOP_TIMEOUT};
use crate::environment::Endpoint;
use crate::exchange::Exchange;
use crate::kill::DEFAULT_GRACE;
use crate::messages::Command;
use crate::process::NoValue;

/// Maximum length of a report; reports are short except for the container's description, and longer ones are invalid.
const EVENT_MAX: usize = 128 * 1024;

/// Returns whether a task's `ContainerInfo` is one for Docker.
pub(crate) fn is_docker(container: Option<&[u8]>) -> bool {
    container
        .and_then(|bytes| Container::decode(bytes).ok())
        .is_some_and(|container| container.r#type == ContainerType::Docker as i32)
}

/// A report of the process beside the container.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ContainerEvent {
    /// The container runs.
    Started {
        /// Id of the container's first process on the host.
        pid: i32,
        /// Address of the container if it has one of its own.
        address: Option<String>,
        /// The output of `docker inspect`, unless it is too long.
        description: Option<String>,
    },
    /// The container could not be started, for this reason.
    Failed(String),
    /// The container has ended, with this message about its end.
    Ended(String),
}

/// An error of a Docker task that cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("This agent has no Docker containerizer (--containerizers)")]
    NoDocker,
    #[error(transparent)]
    Invalid(#[from] InvalidTask),
    #[error(transparent)]
    Pipe(#[from] io::Error),
}

pub(crate) struct DockerTask {
    name: String,
    socket: PathBuf,
    client: Client,
    pipe: std::io::PipeReader,
    text: Vec<u8>,
    description: Option<String>,
    pub(crate) started: bool,
    /// Message about the container's end.
    pub(crate) words: Option<String>,
    /// Request to stop the container, whose response is not read; kept open, so that the daemon continues it.
    stopping: Option<Exchange>,
    /// Time for the container to stop without a kill policy.
    pub(crate) grace: Duration,
}

impl DockerTask {
    /// Returns the container of a task, and the process that runs it.
    pub(crate) fn new(task: &[u8], container: &str) -> Result<(DockerTask, Spec), TaskError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let socket = variable(SOCKET).ok_or(TaskError::NoDocker)?;
        let name = format!("{PREFIX}{container}");
        let sandbox = PathBuf::from(variable("MESOS_DIRECTORY").unwrap_or_default());
        let sandbox_in_container = variable(SANDBOX).unwrap_or_else(|| "/mnt/mesos/sandbox".to_owned());
        let dns = variable(DNS).and_then(|text| serde_json::from_str(&text).ok());
        let quota = variable(QUOTA).is_some();
        let devices = variable(DEVICES).and_then(|text| serde_json::from_str(&text).ok());
        let login = variable(LOGIN);
        let settings = ContainerSettings {
            name: &name,
            sandbox: &sandbox,
            sandbox_in_container: &sandbox_in_container,
            quota,
            dns,
            login,
            devices,
        };
        let create_request = create_request(task, &settings)?;
        let (pipe, events) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true).map_err(io::Error::from)?;
        let argv = ["tepui-executor", "executor", "docker"].map(OsString::from).into();
        let mut spec = Spec::new(Program::Argv { file: "/proc/self/exe".into(), argv });
        let create = create_request.create.to_string();
        spec.environment = [
            (SOCKET, socket.as_str()),
            (NAME, &name),
            (IMAGE, &create_request.image),
            (PULL, if create_request.pull { "1" } else { "0" }),
            (CREATE, &create),
            (LOGIN, &create_request.login),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .into();
        spec.stdin = Some(Arc::new(events.into()));
        (spec.stdout, spec.stderr) = (Output::Inherit, Output::Inherit);
        spec.die_with_parent = true;
        let client = Client::new(&socket);
        let socket = PathBuf::from(socket);
        let task = DockerTask {
            name,
            socket,
            client,
            pipe,
            text: Vec::new(),
            description: None,
            started: false,
            words: None,
            stopping: None,
            grace: variable(STOP_TIMEOUT).and_then(|text| base::parse_duration(&text).ok()).unwrap_or(DEFAULT_GRACE),
        };
        Ok((task, spec))
    }

    /// Returns a command to run inside the container.
    pub(crate) fn exec(&self, command: &Command) -> Result<DockerExec, NoValue> {
        DockerExec::new(self.socket.clone(), self.name.clone(), command)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads the reports that have arrived.
    pub(crate) fn events(&mut self) -> Vec<ContainerEvent> {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = self.pipe.read(&mut buffer) {
            self.text.extend_from_slice(&buffer[..length]);
            if self.text.len() > EVENT_MAX {
                self.text.clear();
            }
        }
        let mut events = Vec::new();
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let (kind, words) = line.split_once(' ').unwrap_or((&line, ""));
            match kind {
                "inspected" => self.description = Some(format!("[{words}]")),
                "started" => {
                    self.started = true;
                    let mut words = words.split_whitespace();
                    let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                    let address = words.next().map(str::to_owned);
                    events.push(ContainerEvent::Started { pid, address, description: self.description.take() });
                }
                "failed" => events.push(ContainerEvent::Failed(words.to_owned())),
                _ => events.push(ContainerEvent::Ended(words.to_owned())),
            }
        }
        for report in &events {
            if let ContainerEvent::Failed(words) | ContainerEvent::Ended(words) = report {
                self.words = Some(words.clone());
            }
        }
        events
    }

    /// Stops the container with the signal of its image. Returns `false` if it was not started: its process can be
    /// ended then.
    pub(crate) fn stop(&mut self, grace: Duration) -> bool {
        if !self.started {
            return false;
        }
        // The daemon counts whole seconds; the executor's own escalation decides.
        let seconds = grace.as_secs().saturating_add(1).min(1 << 31);
        let stop = request("POST", &format!("/containers/{}/stop?t={seconds}", self.name), None);
        match Exchange::send(&Endpoint::Unix(self.socket.clone()), &stop) {
            Ok(exchange) => self.stopping = Some(exchange),
            Err(error) => stdio::err!("The request to stop the Docker container failed: {error}"),
        }
        true
    }

    /// Kills the container. Blocks until the daemon has answered.
    pub(crate) fn kill(&self) {
        if let Err(error) = self.client.kill(&self.name, "SIGKILL") {
            stdio::err!("The Docker container cannot be killed: {}", base::error_chain(&error));
        }
    }

    /// Deletes the container in any state, after the process beside it has ended without a report.
    pub(crate) fn abandon(&self) {
        if let Err(error) = self.client.remove(&self.name) {
            stdio::err!("The Docker container cannot be removed: {}", base::error_chain(&error));
        }
    }
}
