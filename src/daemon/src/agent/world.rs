//! The agent core's side of the world: its messages go to the network, its events to streams, its checkpoints to disk,
//! its containers to the launcher.
//!
//! It decides nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Agent, Answer, ContainerName, Input, Outbox, Output, Persist};
use base::{Pid, Time};
use tokio::sync::{Notify, watch};
use wire::libprocess::Network;

use super::containers::Containers;
use crate::answers::Answers;
use crate::driver::{Core, World};
use crate::streams::Streams;

impl Core for Agent {
    type Input = Input;
    type Persist = Persist;
    type Output = Output;

    fn batch(&mut self, inputs: &mut dyn Iterator<Item = Input>, now: Time) -> (Vec<Persist>, Vec<Output>) {
        let mut out = Outbox::default();
        for input in inputs {
            self.handle(input, now, &mut out);
        }
        self.end_batch(now, &mut out);
        (out.persist, out.outputs)
    }

    fn next_wake(&self) -> Option<Time> {
        Agent::next_wake(self)
    }

    fn wake() -> Input {
        Input::Wake
    }
}

/// How the process is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) message: String,
}

/// What the core's outputs act on. Shared by the routes.
pub(super) struct Shell {
    pub(super) network: Network,
    pub(super) pid: Pid,
    pub(super) streams: Streams,
    pub(super) answers: Answers<Answer>,
    pub(super) containers: Containers,
    /// `<work_dir>/meta`.
    pub(super) meta: PathBuf,
    /// Asks leader detection to report anew.
    pub(super) redetect: Arc<Notify>,
    pub(super) exit: watch::Sender<Option<Exit>>,
}

impl World<Agent> for Shell {
    fn persist(&self, entries: Vec<Persist>) -> anyhow::Result<()> {
        let mut batch = store::Batch::new(&self.meta);
        for entry in &entries {
            match entry {
                Persist::Replace { path, bytes } => batch.replace(path, bytes)?,
                Persist::Append { path, bytes } => batch.append(path, bytes)?,
                Persist::Folder { path } => batch.folder(path)?,
                Persist::Link { path, target } => batch.link(path, target)?,
                Persist::Remove { path } => batch.remove(path)?,
            }
        }
        batch.commit()?;
        Ok(())
    }

    fn carry_out(&self, output: Output) {
        match output {
            Output::Send { to, message } => {
                self.network.send(&self.pid, &to, message.full_name(), &message.encode());
            }
            Output::Link { to } => self.network.link(&to),
            Output::ExecutorEvent { stream, event } => self.streams.send(stream.0, &*event),
            Output::CloseStream { stream } => self.streams.close(stream.0),
            Output::Respond { request, answer } => self.answers.answer(request.0, answer),
            Output::Launch { container, spec } => self.containers.launch(container, spec),
            Output::Reattach { container, pid } => self.reattach(container, pid),
            Output::Signal { container, signal } => self.containers.signal(container, signal),
            Output::Destroy { container } => self.containers.destroy(container),
            Output::Delete { paths } => delete(paths),
            Output::RedetectMaster => self.redetect.notify_one(),
            Output::Exit { code, message } => {
                self.exit.send_replace(Some(Exit { code, message }));
            }
        }
    }
}

impl Shell {
    fn reattach(&self, container: ContainerName, pid: u32) {
        self.containers.reattach(container, pid, None);
    }
}

/// Deletes folders and files in the background; what cannot be deleted is told in the log.
fn delete(paths: Vec<String>) {
    tokio::task::spawn_blocking(move || {
        for path in paths {
            let path = Path::new(&path);
            let folder = std::fs::symlink_metadata(path).map(|metadata| metadata.is_dir());
            let gone = match folder {
                Ok(true) => std::fs::remove_dir_all(path),
                Ok(false) => std::fs::remove_file(path),
                Err(error) => Err(error),
            };
            if let Err(error) = gone
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("cannot delete '{}': {error}", path.display());
            }
        }
    });
}
