//! The agent's running containers: starts them, waits for their ends, ends them.
//!
//! Starting and ending happen on threads of their own, so that the reactor never waits for a process. It decides nothing:
//! the core says what to start and what to end, and is told what became of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use agent::{ContainerName, ContainerSpec, Input};
use base::Time;
use containers::{Attached, Guard, Launcher, Output, Program, ProgramFile, Spec, StartTime, Usage, User};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use super::fetch::Fetcher;
use super::prepare::{prepare, rlimits};
use super::records::Records;
use crate::sync::lock;

/// How long the processes of one container may take to vanish after SIGKILL before we say so in the log and ask again.
const DESTROY_LIMIT: Duration = Duration::from_secs(10);

/// How often, and with which pauses, the kernel is asked how a process of an earlier agent has ended.
const STATUS_TRIES: u32 = 50;
const STATUS_PAUSE: Duration = Duration::from_millis(2);
/// Signals that end a container which is still fetching: SIGINT, SIGQUIT, SIGKILL, SIGTERM.
const FATAL: [i32; 4] = [2, 3, 9, 15];

/// What the launcher's thread is asked to do, in order.
enum Job {
    Launch(ContainerName, Box<ContainerSpec>),
    /// As `Launch`, once what it wants has been fetched; the sender takes `Fetched`.
    Fetch(ContainerName, Box<ContainerSpec>, mpsc::Sender<Job>),
    Fetched(ContainerName, Box<ContainerSpec>, Option<User>, anyhow::Result<()>),
    Reattach(ContainerName, i32, Option<Time>, Option<String>),
    Signal(ContainerName, i32),
    Destroy(ContainerName),
}

/// Tells the core what has become of something.
pub(super) type Report = Arc<dyn Fn(Input) + Send + Sync>;

/// A container with a living first process.
#[derive(Clone, Debug)]
struct Live {
    pid: i32,
    started: Option<StartTime>,
    /// The sandbox of an executor: its processes have it in their environment.
    sandbox: Option<String>,
}

/// The variable that holds the sandbox in an executor's environment, and in that of all that it starts.
const MARK: &str = "MESOS_DIRECTORY";

/// The running containers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Containers {
    jobs: mpsc::Sender<Job>,
    live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
}

impl Containers {
    /// Starts the launcher's thread. `report` hears what becomes of containers; `executor` is run in place of the program
    /// that it is named after; `limits` says whether resource limits are set.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        executor: Option<(String, ProgramFile)>,
        report: Report,
        records: Records,
        fetcher: Fetcher,
        limits: bool,
    ) -> std::io::Result<Containers> {
        let (jobs, queue) = mpsc::channel();
        let live: Arc<Mutex<BTreeMap<ContainerName, Live>>> = Arc::default();
        let runtime = Handle::current();
        let worker = Worker { live: live.clone(), report, records, executor, fetcher, limits, runtime };
        std::thread::Builder::new().name("launcher".into()).spawn(move || {
            for job in queue {
                worker.work(job);
            }
        })?;
        Ok(Containers { jobs, live })
    }

    pub(super) fn launch(&self, container: ContainerName, spec: Box<ContainerSpec>) {
        match spec.uris.is_empty() {
            true => self.send(Job::Launch(container, spec)),
            false => self.send(Job::Fetch(container, spec, self.jobs.clone())),
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

    /// What each living container uses, from one look at `/proc`. May take milliseconds.
    pub(super) fn usage(&self) -> BTreeMap<ContainerName, Usage> {
        let table = containers::ProcessTable::scan();
        self.pids().into_iter().filter_map(|(name, pid)| Some((name, table.usage(pid)?))).collect()
    }

    fn send(&self, job: Job) {
        // The thread ends only with the last sender.
        let _ = self.jobs.send(job);
    }
}

/// The launcher's thread. Clones of it wait for containers in tasks of the reactor.
#[derive(Clone)]
struct Worker {
    live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
    report: Report,
    records: Records,
    /// The executors' program under the name that the core knows it by.
    executor: Option<(String, ProgramFile)>,
    fetcher: Fetcher,
    /// Whether containers get the resource limits that they ask for.
    limits: bool,
    runtime: Handle,
}

impl Worker {
    fn work(&self, job: Job) {
        match job {
            Job::Launch(container, spec) => {
                let started = prepare(&spec).and_then(|user| self.spawn(&container, &spec, user));
                self.tell_failure(container, started);
            }
            Job::Fetch(container, spec, jobs) => self.fetch(container, spec, jobs),
            Job::Fetched(container, spec, user, fetched) => {
                let started = match self.fetcher.end(&container) {
                    true => Err(anyhow::anyhow!("The container was destroyed while it was fetching")),
                    false => fetched.and_then(|()| self.spawn(&container, &spec, user)),
                };
                self.tell_failure(container, started);
            }
            Job::Reattach(container, pid, recorded, sandbox) => self.reattach(container, pid, recorded, sandbox),
            Job::Signal(container, signal) => {
                if let Some(live) = lock(&self.live).get(&container) {
                    // A process that is gone needs no signal; its end is reported by the one who waits for it.
                    let _ = containers::signal_group(live.pid, signal);
                } else if FATAL.contains(&signal) {
                    self.fetcher.cancel(&container);
                }
            }
            Job::Destroy(container) => self.destroy(&container),
        }
    }

    fn tell_failure(&self, container: ContainerName, started: anyhow::Result<()>) {
        if let Err(error) = started {
            let why = format!("{error:#}");
            (self.report)(Input::ContainerStartFailed { container, why });
        }
    }

    /// Fetches in the background; other containers are started meanwhile.
    fn fetch(&self, container: ContainerName, spec: Box<ContainerSpec>, jobs: mpsc::Sender<Job>) {
        let user = match prepare(&spec) {
            Ok(user) => user,
            Err(error) => return self.tell_failure(container, Err(error)),
        };
        self.fetcher.begin(&container);
        let fetcher = self.fetcher.clone();
        self.runtime.spawn_blocking(move || {
            let fetched = fetcher.fetch(&container, &spec, user.as_ref());
            // The launcher's thread lives as long as this sender.
            let _ = jobs.send(Job::Fetched(container, spec, user, fetched));
        });
    }

    fn spawn(&self, container: &ContainerName, spec: &ContainerSpec, user: Option<User>) -> anyhow::Result<()> {
        let limits = if self.limits { rlimits(spec)? } else { Vec::new() };
        let child = Launcher::posix().spawn(&Spec { rlimits: limits, ..self.to_spec(spec, user) })?;
        let pid = child.pid();
        let started = containers::start_time(pid);
        let (pid, pidfd) = child.into_parts();
        self.records.note(container, pid);
        let sandbox = container.parent().is_none().then(|| spec.sandbox.clone());
        self.alive(container, Live { pid, started, sandbox }, pidfd, true);
        Ok(())
    }

    fn reattach(&self, container: ContainerName, pid: i32, recorded: Option<Time>, sandbox: Option<String>) {
        let guard = Guard::StartedBefore(recorded.unwrap_or(Time::NEVER));
        match Attached::open(pid, guard) {
            Ok(Some(attached)) => {
                let started = Some(attached.started());
                let (pid, pidfd) = attached.into_parts();
                self.alive(&container, Live { pid, started, sandbox }, pidfd, false);
            }
            Ok(None) => self.gone(container, sandbox),
            Err(error) => {
                tracing::warn!(%container, "cannot watch a container of an earlier agent: {error}");
                self.gone(container, sandbox);
            }
        }
    }

    /// A container of an earlier agent is not there any more; something that it has started may be.
    fn gone(&self, container: ContainerName, sandbox: Option<String>) {
        self.records.forget(&container);
        let worker = self.clone();
        self.runtime.spawn_blocking(move || {
            end_marked(&container, sandbox.as_deref());
            (worker.report)(Input::ContainerExited { container, status: None });
        });
    }

    /// Reports that a container runs, and waits for its end.
    fn alive(&self, container: &ContainerName, live: Live, pidfd: OwnedFd, ours: bool) {
        lock(&self.live).insert(container.clone(), live.clone());
        let pid = u32::try_from(live.pid).unwrap_or(0);
        (self.report)(Input::ContainerStarted { container: container.clone(), pid });
        let (worker, container) = (self.clone(), container.clone());
        self.runtime.spawn(async move { worker.wait(container, live, pidfd, ours).await });
    }

    #[allow(
        deprecated,
        reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
    )]
    async fn wait(self, container: ContainerName, live: Live, pidfd: OwnedFd, ours: bool) {
        let mut told = None;
        match AsyncFd::with_interest(pidfd, Interest::READABLE) {
            Ok(fd) => {
                if let Err(error) = fd.readable().await {
                    tracing::warn!(%container, "cannot wait for a container: {error}");
                }
                if !ours {
                    told = status_of(live.pid, fd.get_ref()).await;
                }
            }
            Err(error) => tracing::warn!(%container, "cannot wait for a container: {error}"),
        }
        let status = if ours { containers::wait(live.pid).ok().map(|status| status.raw()) } else { told };
        let nested = lock(&self.live).keys().any(|other| other.is_inside(&container));
        // A program that was killed has not ended what it started.
        let killed = live.sandbox.is_some() && status.is_none_or(|status| status & 0x7f != 0);
        if nested || killed || !containers::group_is_empty(live.pid) {
            let worker = self.clone();
            let name = container.clone();
            let sandbox = live.sandbox.filter(|_| killed);
            let ended = self.runtime.spawn_blocking(move || {
                worker.end_all(&name);
                end_marked(&name, sandbox.as_deref());
            });
            let ended = ended.await;
            if let Err(error) = ended {
                tracing::warn!(%container, "the thread that ends a container has failed: {error}");
            }
        }
        lock(&self.live).remove(&container);
        self.records.forget(&container);
        (self.report)(Input::ContainerExited { container, status });
    }

    fn destroy(&self, container: &ContainerName) {
        // It may be fetching itself, or a container inside of it may be.
        self.fetcher.cancel(container);
        if !lock(&self.live).contains_key(container) {
            return;
        }
        // Ending may take seconds; other containers are started meanwhile.
        let (worker, container) = (self.clone(), container.clone());
        self.runtime.spawn_blocking(move || worker.end_all(&container));
    }

    /// Ends the processes of a container and of those inside it. Their ends are reported by the ones who wait for them.
    fn end_all(&self, container: &ContainerName) {
        let all: Vec<(ContainerName, Live)> = lock(&self.live)
            .iter()
            .filter(|(name, _)| *name == container || name.is_inside(container))
            .map(|(name, live)| (name.clone(), live.clone()))
            .collect();
        for (name, live) in all.into_iter().rev() {
            while let Err(error) = containers::destroy(live.pid, live.started, DESTROY_LIMIT) {
                tracing::warn!(container = %name, "{error}; trying again");
            }
        }
    }

    fn to_spec(&self, spec: &ContainerSpec, user: Option<User>) -> Spec {
        let sandbox = Path::new(&spec.sandbox);
        let argv = spec.argv.iter().map(OsString::from).collect();
        let program = match &self.executor {
            Some((name, file)) if *name == spec.program && spec.argv.get(1).is_some_and(|word| word == "executor") => {
                Program::Open { file: file.clone(), argv }
            }
            _ => Program::Argv { file: OsString::from(&spec.program), argv },
        };
        let environment = spec.environment.iter();
        Spec {
            environment: environment.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
            working_dir: Some(sandbox.to_owned()),
            stdout: Output::File(sandbox.join("stdout")),
            stderr: Output::File(sandbox.join("stderr")),
            user,
            ..Spec::new(program)
        }
    }
}

/// Ends what an executor has left behind that is no longer its descendant.
fn end_marked(container: &ContainerName, sandbox: Option<&str>) {
    if let Some(sandbox) = sandbox
        && let Err(error) = containers::destroy_marked(MARK, sandbox.as_ref(), DESTROY_LIMIT)
    {
        tracing::warn!(%container, "{error}");
    }
}

/// How a process of an earlier agent has ended, if the kernel tells.
async fn status_of(pid: i32, pidfd: &OwnedFd) -> Option<i32> {
    for _ in 0..STATUS_TRIES {
        if let Some(status) = containers::exit_status(pid, pidfd.as_fd()) {
            return Some(status.raw());
        }
        tokio::time::sleep(STATUS_PAUSE).await;
    }
    None
}
