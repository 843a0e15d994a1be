//! The composing containerizer: passes each container to the containerizer that supports it, and has the table of
//! running containers.
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
use crate::io_switchboard::{Client, Io, IoSwitchboard};
use crate::launcher::Launcher;
use crate::mesos::isolators::network::ports::Held;
use crate::mesos::isolators::{DiskUse, GroupUse, Isolators};
use crate::mesos::provisioner::Provisioner;
use crate::runtime_dir::Records;
use crate::systemd::Systemd;

/// Requests to the launcher's thread, in order.
pub(crate) enum Job {
    Launch(ContainerName, Box<ContainerSpec>),
    /// As `Launch`, after fetching; the sender receives `Fetched`.
    Fetch(ContainerName, Box<ContainerSpec>, mpsc::Sender<Job>),
    Fetched(ContainerName, Box<ContainerSpec>, Option<User>, anyhow::Result<()>),
    Reattach(ContainerName, i32, Option<Time>, Option<String>),
    Signal(ContainerName, i32),
    Destroy(ContainerName),
    /// The sender is dropped when they have ended.
    LeftOvers(Vec<ContainerName>, oneshot::Sender<()>),
}

/// Reports to the core.
pub type Report = Arc<dyn Fn(Input) + Send + Sync>;

/// Serves the connection of an executor that was started with one.
pub type Connect = Arc<dyn Fn(ExecutorKey, UnixStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What an executor's container holds.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The container.
    pub container: ContainerName,
    /// Its sandbox.
    pub sandbox: PathBuf,
    /// What its executor and tasks hold.
    pub resources: Resources,
}

/// Asks what the containers of running executors hold.
pub type Holdings = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<Holding>> + Send>> + Send + Sync>;

/// A container with a living first process.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) pid: i32,
    pub(crate) started: Option<StartTime>,
    /// The sandbox of an executor: its processes have it in their environment.
    pub(crate) sandbox: Option<String>,
    /// Whether its first process is ours, and its program is started by that.
    pub(crate) init: bool,
    /// How its output is rotated, if its variables say so.
    pub(crate) rotation: Option<Rules>,
    /// The ports of a standalone container; those of executors are in the core's state.
    pub(crate) ports: Option<Held>,
}

/// What a container uses.
#[derive(Clone, Debug)]
pub struct Used {
    /// From `/proc`.
    pub processes: containers::Usage,
    /// What its control group has counted, if it has one.
    pub group: Option<GroupUse>,
    /// What was last seen of its sandbox, if anything looks.
    pub disk: Option<DiskUse>,
}

/// What the launcher's thread works with.
pub(crate) struct Tools {
    /// The executors' program under the name that the core knows it by.
    pub(crate) executor: Option<(String, ProgramFile)>,
    /// Receives reports about containers.
    pub(crate) report: Report,
    pub(crate) records: Records,
    pub(crate) connect: Connect,
    pub(crate) fetcher: Fetcher,
    pub(crate) isolators: Isolators,
    pub(crate) containerizers: Containerizers,
    /// The containers that run, which containerizers know too.
    pub(crate) live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
    /// Set before the agent goes, to leave its containers to the next one.
    pub(crate) docker: Docker,
    pub(crate) rotation: ContainerLogger,
    pub(crate) secrets: SecretResolver,
    pub(crate) systemd: Systemd,
    /// Where the sandboxes of standalone containers are.
    pub(crate) standalone: PathBuf,
    pub(crate) deleter: Deleter,
    pub(crate) on_step: fn(&'static str),
}

/// The running containers. Cheap to clone.
#[derive(Clone)]
pub struct ComposingContainerizer {
    jobs: mpsc::Sender<Job>,
    live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
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
    /// Starts the launcher's thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(tools: Tools) -> std::io::Result<ComposingContainerizer> {
        let (jobs, queue) = mpsc::channel();
        let (live, containerizers) = (tools.live.clone(), tools.containerizers.clone());
        let (isolators, docker, sessions) = (tools.isolators.clone(), tools.docker.clone(), IoSwitchboard::default());
        let (records, report) = (tools.records.clone(), tools.report.clone());
        let (rotation, standalone) = (tools.rotation.clone(), tools.standalone.clone());
        let launcher = Launcher::new(tools, sessions.clone(), Handle::current());
        std::thread::Builder::new().name("launcher".into()).spawn(move || {
            launcher.start_template();
            for job in queue {
                launcher.work(job);
            }
        })?;
        Ok(ComposingContainerizer {
            jobs,
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

    /// Launches a container. What became of it is reported.
    pub fn launch(&self, container: ContainerName, spec: Box<ContainerSpec>) {
        let waits = !spec.uris.is_empty() || SecretResolver::is_wanted(&spec);
        match waits || self.containerizers.of(&spec).provides(&spec) {
            false => self.send(Job::Launch(container, spec)),
            true => self.send(Job::Fetch(container, spec, self.jobs.clone())),
        }
    }

    /// Watches a process that an earlier agent started; `recorded` is when its pid was written down.
    pub fn reattach(&self, container: ContainerName, pid: u32, recorded: Option<Time>, sandbox: Option<String>) {
        self.send(Job::Reattach(container, i32::try_from(pid).unwrap_or(0), recorded, sandbox));
    }

    /// Sends a signal to the processes of a container.
    pub fn signal(&self, container: ContainerName, signal: i32) {
        self.send(Job::Signal(container, signal));
    }

    /// Ends a container and those inside it.
    pub fn destroy(&self, container: ContainerName) {
        self.send(Job::Destroy(container));
    }

    /// Tells the core something of a container.
    pub(crate) fn report(&self, input: Input) {
        (self.report)(input);
    }

    /// The first process of every living container.
    pub fn pids(&self) -> Vec<(ContainerName, i32)> {
        lock(&self.live).iter().map(|(name, live)| (name.clone(), live.pid)).collect()
    }

    /// The processes in each running container's control group, without those of nested containers; for Docker's
    /// containers those that Docker lists. Blocks.
    pub(crate) fn processes(&self) -> BTreeMap<ContainerName, Vec<i32>> {
        let names: Vec<ContainerName> = lock(&self.live).keys().cloned().collect();
        let mut seen = BTreeSet::new();
        // A container comes before those inside it.
        let own = |name: ContainerName| {
            let all = self.containerizers.iter().flat_map(|one| one.processes(&name));
            let own: Vec<i32> = all.filter(|pid| seen.insert(*pid)).collect();
            (name, own)
        };
        names.into_iter().rev().map(own).collect()
    }

    /// The ports that containers by themselves hold.
    pub(crate) fn ports(&self) -> Vec<(ContainerName, Held)> {
        lock(&self.live).iter().filter_map(|(name, live)| Some((name.clone(), live.ports.clone()?))).collect()
    }

    /// Sets what a running container may use from now on.
    pub fn update(&self, container: &ContainerName, held: &[mesos::Resource], limits: Limits) {
        self.containerizers.iter().for_each(|one| one.update(container, held, limits));
    }

    /// Recovers the containers of an earlier agent: the outermost containers `kept` keep running, others are destroyed.
    /// The returned receiver is ready when that is done.
    ///
    /// # Errors
    /// Docker does not tell which of the containers it has.
    pub async fn recover(&self, kept: &BTreeSet<String>) -> anyhow::Result<oneshot::Receiver<()>> {
        for one in self.containerizers.iter() {
            one.recover(kept).await?;
        }
        let left = self.records.owned().into_iter().filter(|name| !kept.contains(name.as_str()));
        let (ended, seen) = oneshot::channel();
        self.send(Job::LeftOvers(left.collect(), ended));
        Ok(seen)
    }

    /// Watches containers, their output and the disk of images from now on.
    pub fn watch(&self, held: &Holdings) -> Vec<JoinHandle<()>> {
        let mut tasks = self.isolators.watch(self, held);
        tasks.extend(self.rotation.clone().start(self.clone(), self.standalone.clone()));
        tasks.extend(crate::mesos::provisioner::gc::watch(self.images()));
        tasks
    }

    /// The agent goes, and the next one takes its containers up again.
    pub fn leave(&self) {
        self.docker.leave();
    }

    /// Notes how a nested or standalone container has ended.
    pub fn note_end(&self, container: &ContainerName, termination: &ContainerTermination) {
        self.records.note_end(container, termination);
    }

    /// Forgets what is noted of a container and those inside it.
    pub fn forget(&self, container: &ContainerName) {
        self.records.forget(container);
    }

    /// Prepares a session that is to be launched, with its first client; false if there is one of this name.
    pub fn add_session(&self, container: &ContainerName, client: Arc<dyn Client>) -> bool {
        self.sessions.add(container, client)
    }

    /// Forgets a session that was not launched.
    pub fn forget_session(&self, container: &ContainerName) {
        self.sessions.forget(container);
    }

    /// The input and output of a session, or of a container with a terminal.
    pub fn attach(&self, container: &ContainerName) -> Option<Arc<Io>> {
        self.sessions.get(container)
    }

    /// Usage of each running container, from one scan of `/proc` and of its control group. May take milliseconds.
    pub fn usage(&self) -> BTreeMap<ContainerName, Used> {
        let table = containers::ProcessTable::scan();
        let one = |(name, pid): (ContainerName, i32)| {
            let mut used = Used { processes: table.usage(pid)?, group: None, disk: None };
            self.containerizers.iter().for_each(|one| one.usage(&name, &mut used));
            Some((name, used))
        };
        self.pids().into_iter().filter_map(one).collect()
    }

    /// The sandboxes of running containers, with the rules of their log rotation; those of standalone containers are
    /// below `alone`.
    pub(crate) fn sandboxes(&self, alone: &std::path::Path) -> Vec<(std::path::PathBuf, Option<Rules>)> {
        let live = lock(&self.live);
        let one = |(name, live_one): (&ContainerName, &Live)| {
            let root = name.root();
            let own = live.get(&root).and_then(|live| live.sandbox.as_deref());
            let base = own.map_or_else(|| alone.join(root.as_str()), std::path::PathBuf::from);
            let inside = name.as_str().split('.').skip(1);
            (inside.fold(base, |directory, id| directory.join("containers").join(id)), live_one.rotation)
        };
        live.iter().map(one).collect()
    }

    /// The images that containers' roots are made of.
    pub fn images(&self) -> Provisioner {
        self.isolators.images().clone()
    }

    fn send(&self, job: Job) {
        // The thread ends only with the last sender.
        let _ = self.jobs.send(job);
    }
}
