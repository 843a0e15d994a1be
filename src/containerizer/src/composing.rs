//! The composing containerizer, which passes each container to the containerizer that supports it and keeps the table
//! of running containers.
//!
//! The agent's core requests launches and terminations, and receives reports. Both run on threads of their own, so that
//! the reactor never waits for a process.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};

use agent::{ContainerName, ContainerSpec, ExecutorKey, Input, Limits};
use base::{Time, lock};
use containers::{ProgramFile, StartTime, User};
use protos::mesos;
use protos::mesos::slave::ContainerTermination;
use resources::Resources;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::SecretResolver;
use crate::container_logger::{ContainerLogger, Rules};
use crate::containerizer::Containerizers;
use crate::deleter::Deleter;
use crate::docker::Docker;
use crate::fetcher::Fetcher;
use crate::io_switchboard::{Client, ContainerIo, IoSwitchboard};
use crate::launcher::Launcher;
use crate::mesos::isolators::network::ports::HeldPorts;
use crate::mesos::isolators::{DiskUse, GroupUse, Isolators};
use crate::mesos::provisioner::Provisioner;
use crate::runtime_dir::Records;
use crate::systemd::Systemd;

/// A request to the launcher's thread; requests are handled in order.
pub(crate) enum LauncherRequest {
    Launch(ContainerName, Box<ContainerSpec>),
    /// Launches a container after its URIs were fetched; the sender receives `Fetched`.
    Fetch(ContainerName, Box<ContainerSpec>, mpsc::Sender<LauncherRequest>),
    Fetched(ContainerName, Box<ContainerSpec>, Option<User>, anyhow::Result<()>),
    Reattach(ContainerName, i32, Option<Time>, Option<String>),
    Signal(ContainerName, i32),
    Destroy(ContainerName),
    /// Destroys leftover containers of the previous agent process. The sender is dropped when all have ended.
    DestroyLeftovers(Vec<ContainerName>, oneshot::Sender<()>),
}

/// A function that reports to the agent's core.
pub type Report = Arc<dyn Fn(Input) + Send + Sync>;

/// A function that serves the connection of an executor that was started with one.
pub type Connect = Arc<dyn Fn(ExecutorKey, UnixStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Resources that an executor's container holds.
#[derive(Clone, Debug)]
pub struct ContainerResources {
    /// Name of the container.
    pub container: ContainerName,
    /// Path of the sandbox.
    pub sandbox: PathBuf,
    /// Resources of the executor and its tasks.
    pub resources: Resources,
}

/// A function that returns the resources of the containers of running executors.
pub type ListContainerResources =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<ContainerResources>> + Send>> + Send + Sync>;

/// A running container.
#[derive(Clone, Debug)]
pub(crate) struct RunningContainer {
    pub(crate) pid: i32,
    pub(crate) started: Option<StartTime>,
    /// Sandbox of an executor; its processes have this path in their environment.
    pub(crate) sandbox: Option<String>,
    /// Whether the first process is the agent's own, which then starts the container's program.
    pub(crate) init: bool,
    /// Rules for the rotation of its output, if its variables set any.
    pub(crate) rotation: Option<Rules>,
    /// Ports that a standalone container holds; those of executors are in the core's state.
    pub(crate) ports: Option<HeldPorts>,
}

/// Resource use of a container.
#[derive(Clone, Debug)]
pub struct ContainerUsage {
    /// Use of its processes, from `/proc`.
    pub processes: containers::Usage,
    /// Use of its control group; `None` without one.
    pub group: Option<GroupUse>,
    /// Last measured use of the disk by its sandbox; `None` if it is not measured.
    pub disk: Option<DiskUse>,
}

/// Everything that the launcher's thread works with.
pub(crate) struct LauncherParts {
    /// Program of the executors, with the name by which the core knows it.
    pub(crate) executor: Option<(String, ProgramFile)>,
    /// Function that receives reports about containers.
    pub(crate) report: Report,
    pub(crate) records: Records,
    pub(crate) connect: Connect,
    pub(crate) fetcher: Fetcher,
    pub(crate) isolators: Isolators,
    pub(crate) containerizers: Containerizers,
    /// Running containers by name.
    pub(crate) live: Arc<Mutex<BTreeMap<ContainerName, RunningContainer>>>,
    /// The Docker containerizer, which is notified when the agent stops, so that its containers are left to the next
    /// agent process.
    pub(crate) docker: Docker,
    pub(crate) rotation: ContainerLogger,
    pub(crate) secrets: SecretResolver,
    pub(crate) systemd: Systemd,
    /// Directory of the sandboxes of standalone containers.
    pub(crate) standalone: PathBuf,
    pub(crate) deleter: Deleter,
    pub(crate) on_step: fn(&'static str),
}

/// The composing containerizer, with the table of running containers. Cheap to clone.
#[derive(Clone)]
pub struct ComposingContainerizer {
    requests: mpsc::Sender<LauncherRequest>,
    live: Arc<Mutex<BTreeMap<ContainerName, RunningContainer>>>,
    report: Report,
    isolators: Isolators,
    containerizers: Containerizers,
    docker: Docker,
    sessions: IoSwitchboard,
    records: Records,
    rotation: ContainerLogger,
    standalone: PathBuf,
}

impl ComposingContainerizer {
    /// Starts the launcher's thread, and returns a handle to it.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(parts: LauncherParts) -> std::io::Result<ComposingContainerizer> {
        let (requests, queue) = mpsc::channel();
        let (live, containerizers) = (parts.live.clone(), parts.containerizers.clone());
        let (isolators, docker, sessions) = (parts.isolators.clone(), parts.docker.clone(), IoSwitchboard::default());
        let (records, report) = (parts.records.clone(), parts.report.clone());
        let (rotation, standalone) = (parts.rotation.clone(), parts.standalone.clone());
        let launcher = Launcher::new(parts, sessions.clone(), Handle::current());
        std::thread::Builder::new().name("launcher".into()).spawn(move || {
            launcher.start_template();
            for request in queue {
                launcher.handle(request);
            }
        })?;
        Ok(ComposingContainerizer {
            requests,
            live,
            report,
            isolators,
            containerizers,
            docker,
            sessions,
            records,
            rotation,
            standalone,
        })
    }

    /// Launches a container. The outcome is reported to the core.
    pub fn launch(&self, container: ContainerName, spec: Box<ContainerSpec>) {
        let waits = !spec.uris.is_empty() || SecretResolver::is_wanted(&spec);
        match waits || self.containerizers.of(&spec).needs_provisioning(&spec) {
            false => self.send(LauncherRequest::Launch(container, spec)),
            true => self.send(LauncherRequest::Fetch(container, spec, self.requests.clone())),
        }
    }

    /// Watches a process that the previous agent process started; `recorded` is the time at which its pid was recorded.
    pub fn reattach(&self, container: ContainerName, pid: u32, recorded: Option<Time>, sandbox: Option<String>) {
        self.send(LauncherRequest::Reattach(container, i32::try_from(pid).unwrap_or(0), recorded, sandbox));
    }

    /// Sends a signal to a container.
    pub fn signal(&self, container: ContainerName, signal: i32) {
        self.send(LauncherRequest::Signal(container, signal));
    }

    /// Destroys a container and those inside it.
    pub fn destroy(&self, container: ContainerName) {
        self.send(LauncherRequest::Destroy(container));
    }

    /// Reports an input to the core.
    pub(crate) fn report(&self, input: Input) {
        (self.report)(input);
    }

    /// Returns the pid of the first process of every running container.
    pub fn pids(&self) -> Vec<(ContainerName, i32)> {
        lock(&self.live).iter().map(|(name, live)| (name.clone(), live.pid)).collect()
    }

    /// Returns the processes in each running container's control group, without those of nested containers. For
    /// Docker's containers it returns those that Docker lists. Blocks.
    pub(crate) fn processes(&self) -> BTreeMap<ContainerName, Vec<i32>> {
        let names: Vec<ContainerName> = lock(&self.live).keys().cloned().collect();
        let mut seen = BTreeSet::new();
        // In reverse order nested containers come before their parents.
        let own = |name: ContainerName| {
            let all = self.containerizers.iter().flat_map(|one| one.processes(&name));
            let own: Vec<i32> = all.filter(|pid| seen.insert(*pid)).collect();
            (name, own)
        };
        names.into_iter().rev().map(own).collect()
    }

    /// Returns the ports that standalone containers hold.
    pub(crate) fn ports(&self) -> Vec<(ContainerName, HeldPorts)> {
        lock(&self.live).iter().filter_map(|(name, live)| Some((name.clone(), live.ports.clone()?))).collect()
    }

    /// Updates the resources and limits of a running container.
    pub fn update(&self, container: &ContainerName, held: &[mesos::Resource], limits: Limits) {
        self.containerizers.iter().for_each(|one| one.update(container, held, limits));
    }

    /// Recovers the containers of the previous agent process: the top-level containers `kept` keep running, others are
    /// destroyed. The returned receiver is ready when that is done.
    ///
    /// # Errors
    /// Docker does not list its containers.
    pub async fn recover(&self, kept: &BTreeSet<String>) -> anyhow::Result<oneshot::Receiver<()>> {
        for one in self.containerizers.iter() {
            one.recover(kept).await?;
        }
        let left = self.records.owned().into_iter().filter(|name| !kept.contains(name.as_str()));
        let (ended, seen) = oneshot::channel();
        self.send(LauncherRequest::DestroyLeftovers(left.collect(), ended));
        Ok(seen)
    }

    /// Starts the tasks that watch containers, their output, and the disk of images.
    pub fn watch(&self, held: &ListContainerResources) -> Vec<JoinHandle<()>> {
        let mut tasks = self.isolators.watch(self, held);
        tasks.extend(self.rotation.clone().start(self.clone(), self.standalone.clone()));
        tasks.extend(crate::mesos::provisioner::gc::watch(self.images()));
        tasks
    }

    /// Leaves the containers to the next agent process, because this one stops.
    pub fn leave(&self) {
        self.docker.leave();
    }

    /// Records how a nested or standalone container has ended.
    pub fn record_termination(&self, container: &ContainerName, termination: &ContainerTermination) {
        self.records.record_termination(container, termination);
    }

    /// Deletes the records of a container and of those inside it.
    pub fn forget(&self, container: &ContainerName) {
        self.records.forget(container);
    }

    /// Prepares a session that is about to be launched, with its first client. Returns `false` if there is already a
    /// session with this name.
    pub fn add_session(&self, container: &ContainerName, client: Arc<dyn Client>) -> bool {
        self.sessions.add(container, client)
    }

    /// Removes a session that was not launched.
    pub fn forget_session(&self, container: &ContainerName) {
        self.sessions.forget(container);
    }

    /// Returns the input and output of a session, or of a container with a terminal.
    pub fn attach(&self, container: &ContainerName) -> Option<Arc<ContainerIo>> {
        self.sessions.get(container)
    }

    /// Returns the resource use of each running container, from one scan of `/proc` and from its control group. May
    /// take milliseconds.
    pub fn usage(&self) -> BTreeMap<ContainerName, ContainerUsage> {
        let table = containers::ProcessTable::scan();
        let one = |(name, pid): (ContainerName, i32)| {
            let mut used = ContainerUsage { processes: table.usage(pid)?, group: None, disk: None };
            self.containerizers.iter().for_each(|one| one.usage(&name, &mut used));
            Some((name, used))
        };
        self.pids().into_iter().filter_map(one).collect()
    }

    /// Returns the sandboxes of running containers, with their rules of log rotation. Those of standalone containers
    /// are below `alone`.
    pub(crate) fn sandboxes(&self, alone: &std::path::Path) -> Vec<(std::path::PathBuf, Option<Rules>)> {
        let live = lock(&self.live);
        let one = |(name, live_one): (&ContainerName, &RunningContainer)| {
            let root = name.root();
            let own = live.get(&root).and_then(|live| live.sandbox.as_deref());
            let base = own.map_or_else(|| alone.join(root.as_str()), std::path::PathBuf::from);
            let inside = name.as_str().split('.').skip(1);
            (inside.fold(base, |directory, id| directory.join("containers").join(id)), live_one.rotation)
        };
        live.iter().map(one).collect()
    }

    /// Returns the provisioner of container images.
    pub fn images(&self) -> Provisioner {
        self.isolators.images().clone()
    }

    fn send(&self, request: LauncherRequest) {
        // The thread ends only with the last sender.
        let _ = self.requests.send(request);
    }
}
