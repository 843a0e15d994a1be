//! Carries out the outputs of the agent's core: it sends messages to the network and events to streams, writes
//! checkpoints to the disk, and passes containers to the containerizer.
//!
//! It decides nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::containers::User;
use ::detector::LeaderActivity;
use agent::oversubscription::{Load, Measurement};
use agent::{Agent, Answer, ContainerName, Done, Input, Output, Persist, VolumeLink};
use base::Pid;
use containerizer::{ComposingContainerizer, Deleter, Fetcher, Report, delete, volumes};
use protos::mesos::slave_info::Capability;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use wire::libprocess::Network;

use super::checkpoint_writer::CheckpointWriter;
use super::executor_tokens::ExecutorTokens;
use super::views::statistics::used;
use super::volume_changes::{VolumeChange, VolumeChanges};
use crate::clock::Clock;
use crate::common::Common;
use crate::driver::CoreShell;
use crate::fault;
use crate::files::Files;
use crate::pending_requests::PendingRequests;
use crate::streams::Streams;

/// The exit code and message with which the process is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) message: String,
}

/// The objects that the core's outputs act on. Shared with the routes.
pub(super) struct Shell {
    pub(super) network: Network,
    pub(super) pid: Pid,
    pub(super) streams: Arc<Streams>,
    pub(super) pending_requests: Arc<PendingRequests<Answer>>,
    pub(super) containers: ComposingContainerizer,
    /// Function that passes an input to the core.
    pub(super) report: Report,
    pub(super) clock: Clock,
    pub(super) fetcher: Fetcher,
    /// Keys that sign and verify executors' tokens.
    pub(super) tokens: ExecutorTokens,
    /// Checkpoints on the disk.
    pub(super) checkpoint_writer: Arc<CheckpointWriter>,
    /// Persistent volumes to create and to destroy.
    pub(super) volume_changes: Arc<VolumeChanges>,
    /// Deletes files that are no longer needed.
    pub(super) deleter: Deleter,
    /// Directory of the checkpoints.
    pub(super) meta: PathBuf,
    /// Makes the detector of the leading master report again.
    pub(super) redetect: Arc<Notify>,
    /// Last sign of life of the leading master, such as a ping.
    pub(super) leader_activity: Arc<LeaderActivity>,
    pub(super) exit: watch::Sender<Option<Exit>>,
    pub(super) common: Arc<Common>,
    /// Capabilities of the agent.
    pub(super) capabilities: Vec<Capability>,
}

impl CoreShell<Agent> for Shell {
    fn persist(&self, entries: Vec<Persist>) -> anyhow::Result<()> {
        for entry in &entries {
            // These entries create a directory that may be about to be deleted.
            if let Persist::Directory { path } | Persist::Replace { path, .. } = entry {
                self.deleter.wait(&self.meta.join(path));
            }
        }
        self.checkpoint_writer.write(&entries)
    }

    fn carry_out(&self, output: Output) {
        fault::point("before an output");
        match output {
            Output::Send { to, message } => {
                self.network.send(&self.pid, &to, message.full_name(), &message.encode());
            }
            Output::SendAs { attempt, to, message } => {
                let from = Pid::new(&format!("crammd5-authenticatee({attempt})"), self.pid.address());
                self.network.send(&from, &to, message.full_name(), &message.encode());
            }
            Output::Link { to } => self.network.link(&to),
            Output::ExecutorEvent { stream, event } => self.streams.send(stream.0, &*event),
            Output::CloseStream { stream } => self.streams.close(stream.0),
            Output::Respond { request, answer } => self.pending_requests.answer(request.0, answer),
            Output::Launch { container, mut spec } => {
                self.tokens.give(&container, &mut spec);
                self.deleter.spare(Path::new(&spec.sandbox));
                attach(&self.common.files, &container, &spec.sandbox);
                self.containers.launch(container, spec);
            }
            Output::Reattach { container, pid, recorded, sandbox } => {
                self.containers.reattach(container, pid, recorded, sandbox);
            }
            Output::Signal { container, signal } => self.containers.signal(container, signal),
            Output::Destroy { container } => self.containers.destroy(container),
            Output::Delete { paths } => self.deleter.push(paths, &Handle::current()),
            Output::DeleteSandbox { path, request } => {
                let pending_requests = self.pending_requests.clone();
                tokio::task::spawn_blocking(move || {
                    delete(Path::new(&path));
                    pending_requests.answer(request.0, Ok(Done::Complete));
                });
            }
            Output::RecordTermination { container, termination } => {
                self.containers.record_termination(&container, &termination)
            }
            Output::Forget { container } => self.containers.forget(&container),
            Output::ChangeVolumes { change, gone, new } => {
                self.volume_changes.add(VolumeChange { change, gone, new });
            }
            Output::LinkVolumes { container, sandbox, user, added, removed } => {
                if let Err(error) = link_volumes(Path::new(&sandbox), user.as_deref(), &added, &removed) {
                    (self.report)(Input::ContainerUpdateFailed { container, why: format!("{error:#}") });
                }
            }
            Output::Resize { container, resources, limits } => self.containers.update(&container, &resources, limits),
            Output::Measure => self.measure(),
            Output::RedetectMaster => self.redetect.notify_one(),
            Output::Exit { code, message } => {
                self.exit.send_replace(Some(Exit { code, message }));
            }
        }
    }
}

impl Shell {
    /// Measures the load of the host and the usage of containers in the background, and reports them to the core.
    fn measure(&self) {
        let (containers, report, clock) = (self.containers.clone(), self.report.clone(), self.clock);
        tokio::task::spawn_blocking(move || {
            let [one_minute, five_minutes, fifteen_minutes] = crate::host::load();
            let usage = containers.usage();
            let measurement = Measurement {
                load: Load { one_minute, five_minutes, fifteen_minutes },
                containers: usage.iter().map(|(name, usage)| (name.clone(), used(usage, clock.now()))).collect(),
            };
            report(Input::Measured { measurement: Box::new(measurement) });
        });
    }
}

fn link_volumes(
    sandbox: &Path,
    user: Option<&str>,
    added: &[VolumeLink],
    removed: &[VolumeLink],
) -> anyhow::Result<()> {
    let user = match user {
        Some(name) if !added.is_empty() => Some(User::by_name(name)?).filter(|user| !user.is_current()),
        _ => None,
    };
    volumes::unlink_all(sandbox, removed)?;
    volumes::link_all(sandbox, added, user.as_ref())
}

/// Attaches a sandbox under its three virtual paths (docs/mesos/endpoints.md). Nested containers are reached through
/// those of their parents.
pub(super) fn attach(files: &Files, container: &ContainerName, sandbox: &str) {
    if container.parent().is_some() {
        return;
    }
    let real = Path::new(sandbox);
    files.attach(sandbox, real);
    let Some((runs, _)) = sandbox.rsplit_once('/') else { return };
    files.attach(&format!("{runs}/latest"), real);
    if let Some(at) = runs.rfind("/frameworks/") {
        files.attach(&format!("{}/latest", &runs[at..]), real);
    }
}

/// Detaches all sandboxes in a directory that is about to be deleted.
pub(super) fn detach_below(files: &Files, path: &str) {
    files.detach_below(path);
    if let Some(at) = path.rfind("/frameworks/") {
        files.detach_below(&path[at..]);
    }
}
