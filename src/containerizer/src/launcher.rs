//! The launcher: a thread that prepares each container and starts its first process.
//!
//! `reaper.rs` handles the end of containers; what is special to a kind of containers is in its containerizer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use agent::{ContainerName, ContainerSpec, ExecutorKey, Input};
use base::lock;
use containers::isolation::Isolation;
use containers::{Child, Output, Program, ProgramFile, Spec, Template, TemplateError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::composing::{Connect, LauncherParts, LauncherRequest, Report, RunningContainer};
use crate::config::SecretResolver;
use crate::container_config::{ContainerDescription, Started};
use crate::container_logger::{ContainerLogger, Rules};
use crate::containerizer::{Container, Containerizers, Launched};
use crate::deleter::Deleter;
use crate::docker::RUNNER;
use crate::fetcher::Fetcher;
use crate::io_switchboard::IoSwitchboard;
use crate::io_switchboard::terminals::{self, StreamEnds};
use crate::mesos::isolators::Isolators;
use crate::mesos::isolators::network::ports;
use crate::reaper::remove;
use crate::runtime_dir::{RecordKind, Records};
use crate::sandbox::{PreparedSandbox, prepare};
use crate::systemd::Systemd;

/// Signals that cancel a container which is still fetching: SIGINT, SIGQUIT, SIGKILL, SIGTERM.
const FATAL: [i32; 4] = [2, 3, KILL, 15];
const KILL: i32 = 9;

/// Maximum number of containers that fetch at once. Others wait for their turn, because the agent's blocking threads
/// serve other work too, and containers must be destroyed while others fetch from a slow server.
const FETCHES_MAX: usize = 32;

/// State of the launcher's thread. Clones wait for containers in tasks of the reactor.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) live: Arc<Mutex<BTreeMap<ContainerName, RunningContainer>>>,
    pub(crate) report: Report,
    pub(crate) records: Records,
    /// Program of the executors, with the name by which the core knows it.
    executor: Option<(String, ProgramFile)>,
    /// Process from which executors are forked.
    template: Arc<Mutex<Option<Template>>>,
    connect: Connect,
    pub(crate) fetcher: Fetcher,
    fetches: Arc<Semaphore>,
    pub(crate) isolators: Isolators,
    pub(crate) containerizers: Containerizers,
    pub(crate) rotation: ContainerLogger,
    secrets: SecretResolver,
    pub(crate) systemd: Systemd,
    deleter: Deleter,
    pub(crate) sessions: IoSwitchboard,
    pub(crate) runtime: Handle,
    /// Function that is called at points where a test may end the agent.
    pub(crate) on_step: fn(&'static str),
}

impl Launcher {
    pub(crate) fn new(parts: LauncherParts, sessions: IoSwitchboard, runtime: Handle) -> Launcher {
        let LauncherParts {
            executor,
            report,
            records,
            connect,
            fetcher,
            isolators,
            containerizers,
            live,
            rotation,
            secrets,
            systemd,
            deleter,
            on_step,
            ..
        } = parts;
        let (template, fetches) = (Arc::default(), Arc::new(Semaphore::new(FETCHES_MAX)));
        Launcher {
            live,
            report,
            records,
            executor,
            template,
            connect,
            fetcher,
            fetches,
            isolators,
            containerizers,
            rotation,
            secrets,
            systemd,
            deleter,
            sessions,
            runtime,
            on_step,
        }
    }

    /// Starts the template process as a child of the calling thread, which is the launcher's.
    pub(crate) fn start_template(&self) {
        let Some((_, file)) = &self.executor else { return };
        let words = ["tepui-executor", "executor", "template"].map(OsString::from);
        match Template::start(file, words.into()) {
            Ok(template) => *lock(&self.template) = Some(template),
            Err(error) => tracing::warn!("executors are started one by one: {:#}", anyhow::Error::from(error)),
        }
    }

    pub(crate) fn handle(&self, request: LauncherRequest) {
        match request {
            LauncherRequest::Launch(container, spec) => {
                let started = self.prepare(&spec).and_then(|ready| {
                    self.fetcher.count_without_uris();
                    self.spawn(&container, spec, ready)
                });
                self.report_failure(container, started);
            }
            LauncherRequest::Fetch(container, spec, requests) => self.fetch(container, spec, requests),
            LauncherRequest::Fetched(container, spec, user, fetched) => {
                let started = match self.fetcher.end(&container) {
                    true => Err(anyhow::anyhow!("The container was destroyed while it was fetching")),
                    false => {
                        fetched.and_then(|()| self.spawn(&container, spec, PreparedSandbox { user, sandbox: None }))
                    }
                };
                self.report_failure(container, started);
            }
            LauncherRequest::Reattach(container, pid, recorded, sandbox) => {
                self.reattach(container, pid, recorded, sandbox)
            }
            LauncherRequest::Signal(container, signal) => self.signal(&container, signal),
            LauncherRequest::Destroy(container) => self.destroy(&container),
            LauncherRequest::DestroyLeftovers(containers, ended) => self.destroy_leftovers(containers, ended),
        }
    }

    fn signal(&self, container: &ContainerName, signal: i32) {
        let live = lock(&self.live).get(container).cloned();
        // A process that has ended needs no signal; its reaper reports its end.
        match live {
            // The first process is the agent's init, which ignores signals. The program may be in another process
            // group.
            Some(live) if live.init && signal == KILL => self.destroy(container),
            Some(live) if live.init => drop(containers::signal_tree(live.pid, signal)),
            Some(live) => drop(containers::signal_group(live.pid, signal)),
            None if FATAL.contains(&signal) => self.fetcher.cancel(container),
            None => {}
        }
    }

    fn prepare(&self, spec: &ContainerSpec) -> anyhow::Result<PreparedSandbox> {
        let containerizer = self.containerizers.of(spec);
        containerizer.check(spec)?;
        self.deleter.wait(Path::new(&spec.sandbox));
        prepare(spec, containerizer.mounts())
    }

    fn report_failure(&self, container: ContainerName, started: anyhow::Result<()>) {
        let Err(error) = started else { return };
        self.records.forget(&container);
        let root = container.root();
        if !lock(&self.live).contains_key(&root) {
            // The executor has ended meanwhile, so its records are deleted here.
            self.records.forget(&root);
        }
        let launcher = self.clone();
        // Removing networks may take long. The agent is notified afterwards, because their addresses can be used again
        // then.
        self.runtime.spawn_blocking(move || {
            launcher.clean_up(&container);
            let why = format!("{error:#}");
            (launcher.report)(Input::ContainerStartFailed { container, why });
        });
    }

    /// Fetches in the background; other containers are started meanwhile.
    fn fetch(&self, container: ContainerName, mut spec: Box<ContainerSpec>, requests: mpsc::Sender<LauncherRequest>) {
        let user = match self.prepare(&spec) {
            Ok(ready) => ready.user,
            Err(error) => return self.report_failure(container, Err(error)),
        };
        self.fetcher.begin(&container);
        let launcher = self.clone();
        let fetch = move || {
            let provided = launcher.secrets.resolve(&mut spec).and_then(|()| {
                let fetch = || match spec.uris.is_empty() {
                    true => {
                        launcher.fetcher.count_without_uris();
                        Ok(())
                    }
                    false => launcher.fetcher.fetch(&container, &spec, user.as_ref()),
                };
                launcher.containerizers.of(&spec).provision(&container, &spec, &fetch)
            });
            let fetched = provided.map(|input| input.into_iter().for_each(|input| (launcher.report)(input)));
            // The launcher's thread lives as long as this sender.
            let _ = requests.send(LauncherRequest::Fetched(container, spec, user, fetched));
        };
        let fetches = Arc::clone(&self.fetches);
        self.runtime.spawn(async move {
            // The semaphore is never closed.
            let _turn = fetches.acquire_owned().await;
            if let Err(error) = tokio::task::spawn_blocking(fetch).await {
                tracing::warn!("the thread that fetches for a container has failed: {error}");
            }
        });
    }

    fn spawn(
        &self,
        container: &ContainerName,
        whole: Box<ContainerSpec>,
        ready: PreparedSandbox,
    ) -> anyhow::Result<()> {
        if let Some(parent) = container.parent() {
            // The core may not have received the report of the parent's end yet.
            anyhow::ensure!(lock(&self.live).contains_key(&parent), "Parent container {parent} does not run");
        }
        let spec = &*whole;
        let rotation = self.rotation_of(container, spec)?;
        let is_executor = spec.latest.is_some();
        if self.isolators.is_linux() {
            self.records.note_owner(container);
        }
        let containerizer = self.containerizers.of(spec);
        let (user, terminal) = (ready.user.clone(), containerizer.attach(spec));
        let mut process = self.to_spec(spec, ready);
        let launched = containerizer.launch(Container { name: container, spec, user: user.as_ref() }, &mut process)?;
        let Launched { init, subcommand, outer_process, group, oom, reports } = launched;
        reports.into_iter().for_each(|input| (self.report)(input));
        process.isolation = self.systemd.outlive(process.isolation);
        let status = self.status_file(container, spec, &process, init);
        let init = init || status.is_some();
        if init {
            process.program = self.under_init(process.program, status.is_some())?;
            process.stdin = status.map(|file| Arc::new(file.into())).or(process.stdin);
        }
        if let Some(word) = subcommand {
            process.program = self.executor_program(["tepui-executor", "executor", word].map(OsString::from))?;
        }
        let spawned = self.streams(container, spec, (terminal, outer_process), &mut process).and_then(|ends| {
            let owner = spec.executor.clone().filter(|_| spec.is_builtin_executor && subcommand.is_none());
            let (child, line) = self.start(owner, &process)?;
            Ok((ends, child, line))
        });
        // The container alone keeps its ends of the streams open.
        let started_with = Started::from(process);
        let (ends, child, line) = spawned.inspect_err(|_| {
            remove(container, group.as_ref());
            if spec.session.is_none() {
                self.sessions.forget(container);
            }
        })?;
        (self.on_step)("after a process was started");
        let started = child.started();
        let (pid, pidfd) = child.into_parts();
        if let Some(ends) = ends {
            self.sessions.run(container, ends, &self.runtime);
        }
        if let Some(watch) = oom {
            self.watch_memory(container, watch);
        }
        let sandbox = is_executor.then(|| spec.sandbox.clone());
        let ports = ports::own(container, spec);
        if let Some(Err(error)) =
            ports.as_ref().map(|ports| self.records.write_record(container, RecordKind::Ports, ports))
        {
            tracing::warn!(%container, "a container's ports cannot be recorded: {error}");
        }
        let live = RunningContainer { pid, started, sandbox, init, rotation, ports };
        let line = line.map(|(owner, ours)| (self.connect)(owner, ours));
        let records_executors = containerizer.records_executors();
        let described = ContainerDescription { spec: whole, launched: started_with };
        // An executor is in the checkpoints, and most end soon, so it is recorded later.
        let later = match is_executor {
            true => Some(described).filter(|_| records_executors),
            false => {
                self.records.note(container, pid, &described);
                None
            }
        };
        self.watch_container(container, live, pidfd, true, line, later);
        Ok(())
    }

    /// Starts a new runner beside an executor's container that Docker has kept running, after the runner of the
    /// previous agent process has ended with that process, which may have been in a container itself. Returns `None` if
    /// there is no such container.
    pub(crate) fn restart_runner(&self, container: &ContainerName, sandbox: &str) -> Option<Child> {
        let environment = self.containerizers.iter().find_map(|one| one.reattach(container, sandbox))?;
        let start = || {
            let program = self.executor_program(["tepui-executor", "executor", RUNNER].map(OsString::from))?;
            let directory = Path::new(sandbox);
            let process = Spec {
                environment,
                working_dir: Some(directory.to_owned()),
                stdout: Output::File(directory.join("stdout")),
                stderr: Output::File(directory.join("stderr")),
                isolation: self.systemd.outlive(Isolation::default()),
                ..Spec::new(program)
            };
            anyhow::Ok(containers::Launcher::posix().spawn(&process)?)
        };
        start().inspect_err(|error| tracing::warn!(%container, "an executor cannot be watched: {error:#}")).ok()
    }

    /// Returns the rules of log rotation that a container's variables set, and records the variables for the next agent
    /// process.
    fn rotation_of(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Option<Rules>> {
        let variables = self.rotation.variables(&spec.environment);
        if variables.is_empty() || spec.session.is_some() {
            return Ok(None);
        }
        let rules = self.rotation.rules(&variables).map_err(|why| anyhow::anyhow!("The container's logger: {why}"))?;
        self.records.write_record(container, RecordKind::Logger, &variables)?;
        Ok(rules)
    }

    /// Starts a process. An executor of the agent's own is forked from the template, with a connection to the agent,
    /// where that is possible.
    fn start(
        &self,
        owner: Option<ExecutorKey>,
        process: &Spec,
    ) -> anyhow::Result<(Child, Option<(ExecutorKey, UnixStream)>)> {
        let mut kept = lock(&self.template);
        if let Some(template) = kept.as_mut().filter(|template| template.suits(process))
            && let Some(owner) = owner
        {
            let (ours, theirs) = containers::line()?;
            match template.spawn(process, Some(theirs)) {
                Ok(child) => return Ok((child, Some((owner, ours.into())))),
                Err(TemplateError::Spawn(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!("{:#}; a new one is started", anyhow::Error::from(error));
                    *kept = None;
                    drop(kept);
                    self.start_template();
                }
            }
        }
        Ok((containers::Launcher::posix().spawn(process)?, None))
    }

    /// Opens the streams of a session, or of a container with a terminal. Returns the agent's ends.
    fn streams(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        (terminal, outer_process): (Option<(u32, u32)>, Option<i32>),
        process: &mut Spec,
    ) -> anyhow::Result<Option<StreamEnds>> {
        if let Some(session) = spec.session {
            return Ok(Some(StreamEnds::open(session, outer_process, process)?));
        }
        let Some(size) = terminal else { return Ok(None) };
        let (_, executor) = self
            .executor
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("A terminal needs the executors' program, which cannot be opened"))?;
        let directory = self.records.make_directory(container)?;
        let board = terminals::start(size, &directory, executor, process, self.systemd.outlive(Isolation::default()))?;
        self.records.note_switchboard(container, board.pid());
        let board_ends = StreamEnds::of_switchboard(&directory)?;
        self.sessions.add_terminal(container);
        self.runtime.spawn(reap_switchboard(container.clone(), board));
        Ok(Some(board_ends))
    }

    /// Recovers the terminal of a container of the previous agent process, if it has one.
    pub(crate) fn reconnect_terminal(&self, container: &ContainerName) {
        if let Ok(ends) = StreamEnds::of_switchboard(&self.records.directory(container)) {
            self.sessions.add_terminal(container);
            self.sessions.run(container, ends, &self.runtime);
        }
    }

    /// Opens the file in which the init process of a container records the exit status of the program. After a restart
    /// of the agent the status is not available elsewhere.
    ///
    /// There is none where the init process could not run, because of limits and filters that are meant for the
    /// program, and for a container whose input is a client or a terminal.
    fn status_file(&self, container: &ContainerName, spec: &ContainerSpec, process: &Spec, init: bool) -> Option<File> {
        let has_input = spec.session.is_some() || terminals::wanted(spec).is_some();
        let fits = init || process.rlimits.is_empty() && process.isolation.seccomp.is_empty();
        let ours = self.executor.is_some() && matches!(process.program, Program::Argv { .. });
        let wanted = spec.latest.is_none() && !has_input && fits && ours;
        if wanted { self.records.open_status(container) } else { None }
    }

    /// Returns a program that starts `program` under an init process, which reaps orphans and passes on the exit
    /// status. With `keeps`, the init process writes the status to its standard input.
    fn under_init(&self, program: Program, keeps: bool) -> anyhow::Result<Program> {
        let Program::Argv { file, argv } = program else { return Ok(program) };
        let words = ["tepui-executor", "executor", if keeps { "keep" } else { "init" }].map(OsString::from);
        self.executor_program(words.into_iter().chain([file]).chain(argv))
    }

    /// Returns the executors' program with these arguments.
    fn executor_program(&self, words: impl IntoIterator<Item = OsString>) -> anyhow::Result<Program> {
        let (_, executor) = self
            .executor
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("The container needs the executors' program, which cannot be opened"))?;
        Ok(Program::Open { file: executor.clone(), argv: words.into_iter().collect() })
    }

    fn to_spec(&self, spec: &ContainerSpec, mut ready: PreparedSandbox) -> Spec {
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
            user: ready.user.take(),
            directory: ready.directory(sandbox),
            ..Spec::new(program)
        }
    }
}

/// Waits for the end of a switchboard, which ends with its container.
#[allow(
    deprecated,
    reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
)]
async fn reap_switchboard(container: ContainerName, board: Child) {
    let (pid, pidfd) = board.into_parts();
    if let Ok(fd) = AsyncFd::with_interest(pidfd, Interest::READABLE) {
        // If the wait fails, the wait for the status below blocks instead.
        let _ = fd.readable().await;
    }
    if let Err(error) = containers::wait(pid) {
        tracing::warn!(%container, "{error}");
    }
}
