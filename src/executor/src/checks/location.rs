//! The place where a task's checks are performed: beside the executor, in a sandbox, or in a container.
//!
//! It starts no process.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use containers::Spec;
use prost::Message;

use super::error::InvalidCheck;
use super::probe::{Probe, to_stderr};
use super::session::Session;
use crate::docker::DockerTask;
use crate::messages::{Command, ContainerId, Task};
use crate::process::{environment, program};

/// Place where the commands of a task's checks run.
pub(crate) enum CheckLocation<'a> {
    /// The executor's directory, as for the task.
    Executor,
    /// A sandbox of the task's own.
    Sandbox(&'a Path),
    /// The task's container, which sees other files than the executor.
    Container(&'a ContainerId),
    /// The task's Docker container.
    Docker(&'a DockerTask),
}

impl CheckLocation<'_> {
    /// Returns the probe for a check's command, which is given as bytes. The command has the environment of the task's
    /// command and its own variables. With a sandbox of the task's own it does not have the executor's variables.
    pub(super) fn command(&self, bytes: &[u8], task: &Task) -> Result<Probe, InvalidCheck> {
        if let CheckLocation::Container(id) = self {
            return Ok(Probe::Session(Box::new(Session::new(id, task, bytes)?)));
        }
        let command = Command::decode(bytes)?;
        if let CheckLocation::Docker(container) = self {
            return Ok(Probe::DockerExec(Box::new(container.exec(&command)?)));
        }
        let task_command = task.command.as_deref().map(Command::decode).transpose()?;
        let mut spec = Spec::new(program(&command)?);
        let task_command = task_command.unwrap_or_default();
        let mut inherited: Vec<_> = std::env::vars_os().collect();
        if let CheckLocation::Sandbox(sandbox) = self {
            inherited.retain(|(name, _)| name == "PATH");
            inherited.push(("MESOS_SANDBOX".into(), sandbox.into()));
            spec.working_dir = Some((*sandbox).to_owned());
        }
        let of_task = environment(inherited.into_iter(), task.allocation_role(), &task_command);
        spec.environment = environment(of_task.into_iter(), None, &command);
        to_stderr(&mut spec);
        Ok(Probe::Command(Box::new(spec)))
    }
}

/// Network namespace of HTTP and TCP probes; by default the executor's.
#[derive(Clone, Debug, Default)]
pub(super) struct Network(Option<Arc<OwnedFd>>);

impl Network {
    /// Returns the network namespace of a process.
    pub(super) fn of(pid: i32) -> io::Result<Network> {
        let network = File::open(format!("/proc/{pid}/ns/net"))?;
        let (its, own) = (network.metadata()?, std::fs::metadata("/proc/self/ns/net")?);
        let other = (its.dev(), its.ino()) != (own.dev(), own.ino());
        Ok(Network(other.then(|| Arc::new(network.into()))))
    }

    /// Returns the namespace for processes that must enter it; `None` if it is the executor's.
    pub(super) fn namespace(&self) -> Option<Arc<OwnedFd>> {
        self.0.clone()
    }

    /// Calls `open` in the network namespace.
    pub(super) fn enter<T: Send>(&self, open: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match &self.0 {
            None => open(),
            Some(namespace) => containers::in_network(namespace.as_fd(), open)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_network_is_not_entered() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(Network::of(own).unwrap().namespace().is_none());
        assert!(Network::of(i32::MAX).is_err());
        assert_eq!(Network::default().enter(|| Ok(1)).unwrap(), 1);
    }
}
