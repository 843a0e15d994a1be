//! The agent's running containers: starts them, waits for their ends, ends them.
//!
//! Starting and ending happen on threads of their own, so that the reactor never waits for a process. It decides nothing:
//! the core says what to start and what to end, and is told what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, mpsc};

use agent::{ContainerName, ContainerSpec, Input, Limits};
use base::Time;
use containers::{ProgramFile, StartTime, User};
use protos::mesos;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::deleter::Deleter;
use super::docker::Docker;
use super::fetch::Fetcher;
use super::images::Images;
use super::isolation::{GroupUse, Isolator, Networks};
use super::lines::Lines;
use super::ports::Held;
use super::records::Records;
use super::rotate::{Rotation, Rules};
use super::secrets::Resolver;
use super::sessions::Sessions;
use super::systemd::Systemd;
use super::worker::Worker;
use crate::sync::lock;

/// What the launcher's thread is asked to do, in order.
pub(super) enum Job {
    Launch(ContainerName, Box<ContainerSpec>),
    /// As `Launch`, once all that it wants is there; the sender takes `Fetched`.
    Fetch(ContainerName, Box<ContainerSpec>, mpsc::Sender<Job>),
    Fetched(ContainerName, Box<ContainerSpec>, Option<User>, anyhow::Result<()>),
    Reattach(ContainerName, i32, Option<Time>, Option<String>),
    Signal(ContainerName, i32),
    Destroy(ContainerName),
    /// The sender is dropped when they have ended.
    LeftOvers(Vec<ContainerName>, oneshot::Sender<()>),
}

/// Tells the core what has become of something.
pub(super) type Report = Arc<dyn Fn(Input) + Send + Sync>;

/// A container with a living first process.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) pid: i32,
    pub(super) started: Option<StartTime>,
    /// The sandbox of an executor: its processes have it in their environment.
    pub(super) sandbox: Option<String>,
    /// Whether its first process is ours, and its program is started by that.
    pub(super) init: bool,
    /// How its output is rotated, if its variables say so.
    pub(super) rotation: Option<Rules>,
    /// The ports that it holds, if it is a container by itself; those of executors are in the core's books.
    pub(super) ports: Option<Held>,
}

/// What a container uses.
#[derive(Clone, Debug)]
pub(super) struct Used {
    /// From `/proc`.
    pub(super) processes: containers::Usage,
    /// What its control group has counted, if it has one.
    pub(super) group: Option<GroupUse>,
}

/// What the launcher's thread works with.
pub(super) struct Tools {
    /// The executors' program under the name that the core knows it by.
    pub(super) executor: Option<(String, ProgramFile)>,
    /// Hears what becomes of containers.
    pub(super) report: Report,
    pub(super) records: Records,
    pub(super) lines: Lines,
    pub(super) fetcher: Fetcher,
    pub(super) isolator: Isolator,
    pub(super) docker: Docker,
    pub(super) rotation: Rotation,
    pub(super) secrets: Resolver,
    pub(super) systemd: Systemd,
    pub(super) deleter: Deleter,
}

/// The running containers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Containers {
    jobs: mpsc::Sender<Job>,
    live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
    isolator: Isolator,
    docker: Docker,
    pub(super) sessions: Sessions,
    pub(super) records: Records,
}

impl Containers {
    /// Starts the launcher's thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(tools: Tools) -> std::io::Result<Containers> {
        let (jobs, queue) = mpsc::channel();
        let live: Arc<Mutex<BTreeMap<ContainerName, Live>>> = Arc::default();
        let (isolator, docker, sessions) = (tools.isolator.clone(), tools.docker.clone(), Sessions::default());
        let records = tools.records.clone();
        let worker = Worker::new(tools, live.clone(), sessions.clone(), Handle::current());
        std::thread::Builder::new().name("launcher".into()).spawn(move || {
            worker.start_template();
            for job in queue {
                worker.work(job);
            }
        })?;
        Ok(Containers { jobs, live, isolator, docker, sessions, records })
    }

    pub(super) fn launch(&self, container: ContainerName, spec: Box<ContainerSpec>) {
        let waits = !spec.uris.is_empty() || Images::are_wanted(&spec) || Networks::wanted(&spec);
        let asks = Resolver::is_wanted(&spec) || self.docker.asks_helper(&spec);
        match waits || asks || self.docker.makes(&spec) {
            false => self.send(Job::Launch(container, spec)),
            true => self.send(Job::Fetch(container, spec, self.jobs.clone())),
        }
    }

    /// Watches a process that an earlier agent started; `recorded` is when its pid was written down.
    pub(super) fn reattach(&self, container: ContainerName, pid: u32, recorded: Option<Time>, sandbox: Option<String>) {
        self.send(Job::Reattach(container, i32::try_from(pid).unwrap_or(0), recorded, sandbox));
    }

    pub(super) fn signal(&self, container: ContainerName, signal: i32) {
        self.send(Job::Signal(container, signal));
    }

    pub(super) fn destroy(&self, container: ContainerName) {
        self.send(Job::Destroy(container));
    }

    /// The first process of every living container.
    pub(super) fn pids(&self) -> Vec<(ContainerName, i32)> {
        lock(&self.live).iter().map(|(name, live)| (name.clone(), live.pid)).collect()
    }

    /// The processes in each living container's control group, without those of containers inside it; of what Docker runs those
    /// that it tells. Blocks.
    pub(super) fn processes(&self) -> BTreeMap<ContainerName, Vec<i32>> {
        let names: Vec<ContainerName> = lock(&self.live).keys().cloned().collect();
        let mut seen = BTreeSet::new();
        // A container comes before those inside it.
        let own = |name: ContainerName| {
            let mut all = self.isolator.group(&name).map(|group| group.processes()).unwrap_or_default();
            all.extend(self.docker.processes(&name));
            let own: Vec<i32> = all.into_iter().filter(|pid| seen.insert(*pid)).collect();
            (name, own)
        };
        names.into_iter().rev().map(own).collect()
    }

    /// The ports that containers by themselves hold.
    pub(super) fn ports(&self) -> Vec<(ContainerName, Held)> {
        lock(&self.live).iter().filter_map(|(name, live)| Some((name.clone(), live.ports.clone()?))).collect()
    }

    /// Sets what a running container may use from now on.
    pub(super) fn resize(&self, container: &ContainerName, held: &[mesos::Resource], limits: Limits) {
        self.isolator.resize(container, held, limits);
        if self.docker.knows(container) {
            let (docker, container, held) = (self.docker.clone(), container.clone(), held.to_vec());
            tokio::task::spawn_blocking(move || docker.resize(&container, held, limits));
        }
    }

    /// Ends what an earlier agent has left in these containers' control groups, and removes these. What comes out is ready, with an
    /// error, when that is done.
    pub(super) fn end_left_overs(&self, containers: Vec<ContainerName>) -> oneshot::Receiver<()> {
        let (ended, seen) = oneshot::channel();
        self.send(Job::LeftOvers(containers, ended));
        seen
    }

    /// What each living container uses, from one look at `/proc` and at its control group. May take milliseconds.
    pub(super) fn usage(&self) -> BTreeMap<ContainerName, Used> {
        let table = containers::ProcessTable::scan();
        let one = |(name, pid): (ContainerName, i32)| {
            let used = Used { processes: table.usage(pid)?, group: self.isolator.used(&name) };
            Some((name, used))
        };
        self.pids().into_iter().filter_map(one).collect()
    }

    /// The sandboxes of living containers, with how their output is rotated if that is said of them; those of containers by
    /// themselves are below `alone`.
    pub(super) fn sandboxes(&self, alone: &std::path::Path) -> Vec<(std::path::PathBuf, Option<Rules>)> {
        let live = lock(&self.live);
        let one = |(name, live_one): (&ContainerName, &Live)| {
            let root = name.root();
            let own = live.get(&root).and_then(|live| live.sandbox.as_deref());
            let base = own.map_or_else(|| alone.join(root.as_str()), std::path::PathBuf::from);
            let inside = name.as_str().split('.').skip(1);
            (inside.fold(base, |folder, id| folder.join("containers").join(id)), live_one.rotation)
        };
        live.iter().map(one).collect()
    }

    /// The images that containers' roots are made of.
    pub(super) fn images(&self) -> Images {
        self.isolator.images().clone()
    }

    fn send(&self, job: Job) {
        // The thread ends only with the last sender.
        let _ = self.jobs.send(job);
    }
}
