//! The launcher's thread: what it does for a container from its start to its end.
//!
//! Clones of the worker wait for containers in tasks of the reactor. It decides nothing; see `containers.rs`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use agent::{ContainerName, ContainerSpec, Input};
use base::Time;
use containers::cgroups::{Group, OomWatch};
use containers::{Attached, Child, Guard, Launcher, Output, Program, ProgramFile, Spec, User, WaitStatus};
use protos::mesos;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use super::containers::{Job, Live, Report, Tools};
use super::docker::Docker;
use super::fetch::Fetcher;
use super::isolation::{Isolated, Isolator, out_of_memory};
use super::prepare::{prepare, rlimits};
use super::records::Records;
use super::sessions::Sessions;
use super::terminals::{self, Ends};
use crate::fault;
use crate::sync::lock;

/// How long the processes of one container may take to vanish after SIGKILL before we say so in the log and ask again.
const DESTROY_LIMIT: Duration = Duration::from_secs(10);

/// How often, and with which pauses, the kernel is asked how a process of an earlier agent has ended.
const STATUS_TRIES: u32 = 50;
const STATUS_PAUSE: Duration = Duration::from_millis(2);
/// Signals that end a container which is still fetching: SIGINT, SIGQUIT, SIGKILL, SIGTERM.
const FATAL: [i32; 4] = [2, 3, 9, 15];

/// The variable that holds the sandbox in an executor's environment, and in that of all that it starts.
const MARK: &str = "MESOS_DIRECTORY";
/// What a first process of ours adds to the signal that has ended its program.
const INIT_SIGNALLED: i32 = 128;

/// The launcher's thread. Clones of it wait for containers in tasks of the reactor.
#[derive(Clone)]
pub(super) struct Worker {
    live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
    report: Report,
    records: Records,
    /// The executors' program under the name that the core knows it by.
    executor: Option<(String, ProgramFile)>,
    fetcher: Fetcher,
    isolator: Isolator,
    docker: Docker,
    sessions: Sessions,
    runtime: Handle,
}

impl Worker {
    pub(super) fn new(
        tools: Tools,
        live: Arc<Mutex<BTreeMap<ContainerName, Live>>>,
        sessions: Sessions,
        runtime: Handle,
    ) -> Worker {
        let Tools { executor, report, records, fetcher, isolator, docker } = tools;
        Worker { live, report, records, executor, fetcher, isolator, docker, sessions, runtime }
    }

    pub(super) fn work(&self, job: Job) {
        match job {
            Job::Launch(container, spec) => {
                let started = self.prepare(&spec).and_then(|user| self.spawn(&container, &spec, user));
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
            Job::LeftOvers(containers) => self.end_left_overs(containers),
        }
    }

    fn prepare(&self, spec: &ContainerSpec) -> anyhow::Result<Option<User>> {
        self.docker.refuse(spec)?;
        // Docker has its own mounts, and finds volumes by their links.
        let docker = Docker::runs(spec);
        prepare(spec, self.isolator.mounts() && !docker, docker)
    }

    fn tell_failure(&self, container: ContainerName, started: anyhow::Result<()>) {
        if let Err(error) = started {
            self.isolator.images().remove(&container);
            self.isolator.take_back(&container);
            if self.isolator.networks().has(&container) {
                let (networks, container) = (self.isolator.networks().clone(), container.clone());
                self.runtime.spawn_blocking(move || networks.disconnect(&container));
            }
            let why = format!("{error:#}");
            (self.report)(Input::ContainerStartFailed { container, why });
        }
    }

    /// Fetches in the background; other containers are started meanwhile.
    fn fetch(&self, container: ContainerName, spec: Box<ContainerSpec>, jobs: mpsc::Sender<Job>) {
        let user = match self.prepare(&spec) {
            Ok(user) => user,
            Err(error) => return self.tell_failure(container, Err(error)),
        };
        self.fetcher.begin(&container);
        let (fetcher, isolator, report) = (self.fetcher.clone(), self.isolator.clone(), self.report.clone());
        self.runtime.spawn_blocking(move || {
            let provided = isolator.images().provide(&container, &spec, &fetcher);
            let provided = provided.and_then(|()| {
                let networks = isolator.networks().connect(&container, &spec)?;
                report(Input::ContainerNetworks { container: container.clone(), networks });
                Ok(())
            });
            let fetched = provided.and_then(|()| match spec.uris.is_empty() {
                true => Ok(()),
                false => fetcher.fetch(&container, &spec, user.as_ref()),
            });
            // The launcher's thread lives as long as this sender.
            let _ = jobs.send(Job::Fetched(container, spec, user, fetched));
        });
    }

    fn spawn(&self, container: &ContainerName, spec: &ContainerSpec, user: Option<User>) -> anyhow::Result<()> {
        let limits = if self.isolator.limits() { rlimits(spec)? } else { Vec::new() };
        let is_executor = spec.latest.is_some();
        if self.isolator.is_linux() {
            self.records.note_owner(container);
        }
        let isolated = self.isolator.isolate(container, spec, user.as_ref(), self.around(container, spec))?;
        let Isolated { isolation, group, oom, init, view, variables } = isolated;
        let mut process = Spec { rlimits: limits, isolation, ..self.to_spec(spec, user) };
        self.docker.note(container, spec);
        self.docker.add_variables(spec, &mut process);
        if let Err(error) = view.apply(spec, &mut process) {
            remove(container, group.as_ref());
            return Err(error);
        }
        process.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        if init {
            process.program = self.under_init(process.program)?;
        }
        let spawned = self.streams(container, spec, &mut process).and_then(|ends| {
            let child = Launcher::posix().spawn(&process)?;
            Ok((ends, child))
        });
        // The container alone keeps its ends of the streams open.
        drop(process);
        let (ends, child) = spawned.inspect_err(|_| {
            remove(container, group.as_ref());
            if spec.session.is_none() {
                self.sessions.forget(container);
            }
        })?;
        fault::point("after a process was started");
        let pid = child.pid();
        let started = containers::start_time(pid);
        let (pid, pidfd) = child.into_parts();
        if !is_executor {
            self.records.note(container, pid);
        }
        if let Some(ends) = ends {
            self.sessions.run(container, ends, &self.runtime);
        }
        if let Some(watch) = oom {
            self.watch_memory(container, watch);
        }
        let sandbox = is_executor.then(|| spec.sandbox.clone());
        self.alive(container, Live { pid, started, sandbox, init }, pidfd, true);
        Ok(())
    }

    /// Gives a session, or a container with a terminal, its streams; our ends of them.
    fn streams(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        process: &mut Spec,
    ) -> anyhow::Result<Option<Ends>> {
        if let Some(session) = spec.session {
            let around = container.parent().filter(|parent| self.isolator.images().is_below_root(parent));
            let inside = around.and_then(|parent| lock(&self.live).get(&parent).map(|live| live.pid));
            return Ok(Some(Ends::open(session, inside, process)?));
        }
        let Some(size) = terminals::wanted(spec) else { return Ok(None) };
        let (_, executor) = self
            .executor
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("A terminal needs the executors' program, which cannot be opened"))?;
        let folder = self.records.make_folder(container)?;
        let board = terminals::start(size, &folder, executor, process)?;
        let board_ends = Ends::of_switchboard(&folder)?;
        self.sessions.add_terminal(container);
        self.runtime.spawn(bury(container.clone(), board));
        Ok(Some(board_ends))
    }

    /// Takes up the terminal of a container of an earlier agent, if it has one.
    fn take_up_terminal(&self, container: &ContainerName) {
        if let Ok(ends) = Ends::of_switchboard(&self.records.folder(container)) {
            self.sessions.add_terminal(container);
            self.sessions.run(container, ends, &self.runtime);
        }
    }

    /// The first process of the container whose namespaces this one shares: a session those of the very one that it is in, others
    /// those of the outermost, or of the nearest that has a root of its own.
    fn around(&self, container: &ContainerName, spec: &ContainerSpec) -> Option<i32> {
        let mut around = container.parent()?;
        while spec.session.is_none()
            && !self.isolator.images().has_root(&around)
            && let Some(parent) = around.parent()
        {
            around = parent;
        }
        lock(&self.live).get(&around).map(|live| live.pid)
    }

    /// The program, started by a first process of ours that waits for orphans and hands on how it has ended.
    fn under_init(&self, program: Program) -> anyhow::Result<Program> {
        let Program::Argv { file, argv } = program else { return Ok(program) };
        let (_, executor) = self
            .executor
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("A pid namespace needs the executors' program, which cannot be opened"))?;
        let words = ["tepui-executor", "executor", "init"].map(OsString::from).into_iter().chain([file]).chain(argv);
        Ok(Program::Open { file: executor.clone(), argv: words.collect() })
    }

    /// Ends the container when it has run out of memory.
    #[allow(
        deprecated,
        reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
    )]
    fn watch_memory(&self, container: &ContainerName, watch: OomWatch) {
        let Some(group) = self.isolator.group(container) else { return };
        let (worker, container) = (self.clone(), container.clone());
        self.runtime.spawn(async move {
            let watch = match AsyncFd::with_interest(OwnedFd::from(watch), Interest::READABLE) {
                Ok(watch) => watch,
                Err(error) => return tracing::warn!(%container, "cannot watch a container's memory: {error}"),
            };
            // It is readable when the group is removed, too.
            if watch.readable().await.is_ok() && group.is_out_of_memory() {
                (worker.report)(limited(&container, &group));
                worker.destroy(&container);
            }
        });
    }

    fn end_left_overs(&self, containers: Vec<ContainerName>) {
        let worker = self.clone();
        self.runtime.spawn_blocking(move || {
            for container in containers {
                tracing::info!(%container, "ending what an earlier agent has left");
                worker.end_group(&container);
                worker.records.forget(&container);
            }
        });
    }

    /// Deletes what was made for a container that has ended.
    fn clean_up(&self, container: &ContainerName) {
        self.isolator.clean_up(container);
        self.docker.ended(container, &self.runtime);
    }

    /// Ends all in a container's control group, if it has one, and removes it.
    fn end_group(&self, container: &ContainerName) {
        let Some(group) = self.isolator.group(container).filter(Group::exists) else { return };
        while let Err(error) = group.end(DESTROY_LIMIT) {
            tracing::warn!(%container, "{error}; trying again");
        }
        remove(container, Some(&group));
    }

    fn reattach(&self, container: ContainerName, pid: i32, recorded: Option<Time>, sandbox: Option<String>) {
        let guard = Guard::StartedBefore(recorded.unwrap_or(Time::NEVER));
        match Attached::open(pid, guard) {
            Ok(Some(attached)) => {
                let started = Some(attached.started());
                let (pid, pidfd) = attached.into_parts();
                self.watch_again(&container);
                self.take_up_terminal(&container);
                let networks = self.isolator.networks().of(&container);
                if !networks.is_empty() {
                    (self.report)(Input::ContainerNetworks { container: container.clone(), networks });
                }
                self.alive(&container, Live { pid, started, sandbox, init: false }, pidfd, false);
            }
            Ok(None) => self.gone(container, sandbox),
            Err(error) => {
                tracing::warn!(%container, "cannot watch a container of an earlier agent: {error}");
                self.gone(container, sandbox);
            }
        }
    }

    /// Watches the memory of a container of an earlier agent, which may have run out of it meanwhile.
    fn watch_again(&self, container: &ContainerName) {
        let Some(group) = self.isolator.group(container).filter(Group::exists) else { return };
        if !self.isolator.limits_memory(container) {
            return;
        }
        if group.is_out_of_memory() {
            (self.report)(limited(container, &group));
            self.destroy(container);
        } else if let Ok(Some(watch)) = group.watch_memory() {
            self.watch_memory(container, watch);
        }
    }

    /// A container of an earlier agent is not there any more; something that it has started may be.
    fn gone(&self, container: ContainerName, sandbox: Option<String>) {
        self.records.forget(&container);
        let worker = self.clone();
        self.runtime.spawn_blocking(move || {
            worker.end_group(&container);
            worker.clean_up(&container);
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
        let status = if live.init { status.map(of_init) } else { status };
        let group = self.isolator.group(&container);
        if let Some(group) = group.as_ref().filter(|_| status.is_none_or(|status| status & 0x7f != 0))
            && self.isolator.limits_memory(&container)
            && group.is_out_of_memory()
        {
            (self.report)(limited(&container, group));
        }
        let nested = lock(&self.live).keys().any(|other| other.is_inside(&container));
        // A program that was killed has not ended what it started.
        let killed = live.sandbox.is_some() && status.is_none_or(|status| status & 0x7f != 0);
        if group.is_some() || self.docker.knows(&container) || nested || killed || !containers::group_is_empty(live.pid)
        {
            let worker = self.clone();
            let name = container.clone();
            // A control group leaves nobody to be looked for.
            let sandbox = live.sandbox.filter(|_| killed && group.is_none());
            let ended = self.runtime.spawn_blocking(move || {
                worker.end_all(&name);
                worker.end_group(&name);
                worker.clean_up(&name);
                end_marked(&name, sandbox.as_deref());
            });
            let ended = ended.await;
            if let Err(error) = ended {
                tracing::warn!(%container, "the thread that ends a container has failed: {error}");
            }
        }
        fault::point("after a container has ended");
        lock(&self.live).remove(&container);
        self.sessions.ended(&container).await;
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
            if let Some(group) = self.isolator.group(&name).filter(Group::exists) {
                while let Err(error) = group.end(DESTROY_LIMIT) {
                    tracing::warn!(container = %name, "{error}; trying again");
                }
                continue;
            }
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

/// Waits for the end of a switchboard, which comes with that of its container.
#[allow(
    deprecated,
    reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
)]
async fn bury(container: ContainerName, board: Child) {
    let (pid, pidfd) = board.into_parts();
    if let Ok(fd) = AsyncFd::with_interest(pidfd, Interest::READABLE) {
        // Whatever is wrong with waiting: asking for the end waits, too.
        let _ = fd.readable().await;
    }
    if let Err(error) = containers::wait(pid) {
        tracing::warn!(%container, "{error}");
    }
}

/// How a program has ended whose end a first process of ours has handed on.
fn of_init(status: i32) -> i32 {
    let code = WaitStatus::from_raw(status).code();
    match code.filter(|code| *code > INIT_SIGNALLED).map(|code| code - INIT_SIGNALLED) {
        Some(signal) if signal <= 64 => signal,
        _ => status,
    }
}

fn remove(container: &ContainerName, group: Option<&Group>) {
    if let Some(Err(error)) = group.map(Group::remove) {
        tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
    }
}

/// The report that a container has run out of memory.
fn limited(container: &ContainerName, group: &Group) -> Input {
    let (message, megabytes) = out_of_memory(group);
    let exceeded = mesos::Resource {
        name: "mem".to_owned(),
        r#type: mesos::value::Type::Scalar as i32,
        scalar: Some(mesos::value::Scalar { value: megabytes as f64 }),
        ..mesos::Resource::default()
    };
    Input::ContainerLimited {
        container: container.clone(),
        reason: mesos::task_status::Reason::ContainerLimitationMemory,
        message,
        resources: vec![exceeded],
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
