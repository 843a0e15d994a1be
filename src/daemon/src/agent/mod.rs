//! The agent's daemon: a core, its sockets, checkpoints, containerizer and routes.
//!
//! It decides nothing about tasks; the core does.

mod attach;
mod config;
mod detector;
mod executor_api;
mod executor_connections;
mod handler;
mod keeper;
mod metrics;
mod operator_api;
mod outputs;
mod oversubscription;
mod private;
mod program;
mod realms;
mod validate;
mod views;
mod volume_changes;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Agent, ContainerName, Executor, ExecutorState, Input, Outbox, Output, Recovered, Tree};
use anyhow::Context;
use base::{Pid, Time};
use containerizer::{ComposingContainerizer, Deleter, Gpus, Holding, Holdings, Host, Links, Report, volumes};
use protos::mesos::slave_info::Capability;
use store::Access;
use tokio::sync::{Notify, oneshot, watch};
use wire::Limits;
use wire::http::Server;
use wire::libprocess::Network;

use crate::address::identity;
use crate::clock::Clock;
use crate::common::{Common, LogLevel, strict_peers};
use crate::connections::connections;
use crate::driver::{Driver, write_log};
use crate::fault;
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::{AgentFlags, FlagError, Flags, LoggingFlags, Part};
use crate::streams::Streams;
use crate::webui::Webui;
use executor_connections::ExecutorConnections;
use handler::Handler;
use keeper::Keeper;
use outputs::{Exit, Shell};
use volume_changes::VolumeChanges;

/// An agent that serves.
pub struct RunningAgent {
    /// Where it listens.
    pub address: SocketAddr,
    server: wire::http::Running,
    exit: watch::Receiver<Option<Exit>>,
    core: tokio::task::JoinHandle<anyhow::Result<()>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    driver: Driver<Agent>,
    containers: ComposingContainerizer,
    keeper: Arc<Keeper>,
    deleter: Deleter,
    /// Ready when what an earlier agent has left over has ended; only one that cleans up waits for it.
    left_overs: Option<oneshot::Receiver<()>>,
    network: Network,
}

/// How an agent came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The process's exit code.
    pub code: i32,
    /// Message for the operator; may be empty.
    pub message: String,
}

/// Asks an agent to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It goes, and its checkpointing frameworks' tasks stay.
    Quietly,
    /// It leaves the cluster for good: all tasks end.
    ForGood,
}

/// How long the last messages to the master may take to leave.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(200);

/// Starts an agent in the current runtime, which must be a single-threaded one for the best speed.
///
/// # Errors
/// Flags that do not fit, an address that cannot be bound, checkpoints that cannot be used.
pub async fn start(mut given: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<RunningAgent> {
    let connections = connections(&mut given)?;
    let flags = AgentFlags::read(&given)?;
    let masters = detector::masters(&flags.registration)?;
    given.check_unread()?;
    let firewall = Firewall::read(flags.network.firewall_rules.as_ref())?;
    let work_dir = work_dir(flags.node.work_dir.as_deref())?;
    let identity = identity(&flags.network, flags.node.port)?;
    let server = Server::bind(identity.bind.into(), Limits::default())
        .with_context(|| format!("cannot listen on {}", identity.bind))?;
    let server = server.with_connections(connections.clone());
    let address = server.address();
    let identity = identity.bound_to(address.port());
    let pid = Pid::new("slave(1)", identity.advertise);
    let realms = realms::read(&flags.access)?;
    let runtime_dir = runtime_dir(flags.node.runtime_dir.as_deref());
    let settings = config::containerizer::containerizer(&flags, &work_dir, &runtime_dir)?;
    let gpus = Gpus::start(&settings)?;
    let info = config::info(&flags.node, &identity, &work_dir, gpus.as_ref().map(Gpus::count))?;
    let mut config = config::config(&flags, pid.clone(), &work_dir.to_string_lossy())?;
    let meta = PathBuf::from(config.meta_dir());
    let clock = Clock::start();
    let (now, program) = (Arc::new(move || clock.now()), config.program.clone());
    let host = Host::start(&settings, gpus, info.resources.clone(), (program, &meta), now).await?;
    config.resizes = host.is_linux();
    config.can_limit = host.limitable();

    let policy = oversubscription::policy(&flags.oversubscription)?;

    private::prepare(&meta, &runtime_dir)?;
    let (checkpoints, found) = keeper::open(&meta, &runtime_dir).context("the checkpoints cannot be read")?;
    let mut recovered = read_checkpoints(found, &meta, flags.executors.strict)?;
    recovered.nested = host.recovered();
    let own = resources::from_proto(&info.resources).unwrap_or_default();
    volumes::delete_later(volumes::left_overs(&work_dir, &own));
    let seed = u64::from_le_bytes(crate::random::bytes());
    let mut out = Outbox::default();
    let capabilities = config.capabilities.iter().map(|kind| Capability { r#type: Some(*kind as i32) }).collect();
    let executor = program::open().map(|file| (config.program.clone(), file));
    if flags.images.image_providers.as_deref().is_some_and(|text| !text.is_empty()) && !program::is_static() {
        tracing::warn!(
            "this build has no static executor: images of containers must have a C library as new as this host's; \
             the release archive has one (cargo xtask dist)"
        );
    }
    let authorizer = config.authorizer.clone();
    let started = Agent::new(config, info, recovered, seed, clock.now(), &mut out);
    write_log(&mut out.log);
    let mut core = started?;
    core.oversubscribe(policy, clock.now());
    let driver = Driver::new(core, clock);

    let exited = driver.clone();
    let exited = move |pid| exited.submit(Input::Exited { pid });
    let network = Network::with_connections(Limits::default(), connections.clone(), exited);
    let reports = driver.clone();
    let report: Report = Arc::new(move |input| reports.submit(input));
    let taken_up = taken_up(&out);
    let (streams, answers) = (Arc::new(Streams::new(Limits::default().stream)), Arc::default());
    let common = Arc::new(Common {
        part: Part::Agent,
        logging: LoggingFlags::read(&given)?,
        flags: given,
        connections,
        files: Files::default(),
        webui: Webui::of(Part::Agent, None),
        firewall,
        log_level,
        strict_peers: strict_peers(),
    });
    common.attach_log("/slave/log");
    let shown = Arc::clone(&common);
    let deleter = Deleter::new(move |path| outputs::detach_below(&shown.files, path), containerizer::delete);
    let executors =
        ExecutorConnections { driver: driver.clone(), streams: Arc::clone(&streams), answers: Arc::clone(&answers) };
    let keeper = Keeper::new(checkpoints, report.clone());
    let fetcher = host.fetcher();
    let containers = host.launch(Links {
        executor,
        report: report.clone(),
        connect: Arc::new(move |owner, socket| Box::pin(executors.clone().serve(owner, socket))),
        deleter: deleter.clone(),
        on_step: fault::point,
    })?;
    let left_overs = containers.recover(&taken_up).await?;
    let left_overs = Some(left_overs).filter(|_| flags.executors.recover == "cleanup");
    let (exit, exit_seen) = watch::channel(None);
    let redetect = Arc::new(Notify::new());
    let farewell = network.clone();
    let volume_changes = VolumeChanges::new(report.clone(), exit.clone());
    let shell = Arc::new(Shell {
        network,
        pid,
        streams,
        answers,
        containers: containers.clone(),
        report,
        clock,
        fetcher,
        keeper: keeper.clone(),
        volume_changes,
        deleter: deleter.clone(),
        meta,
        redetect: redetect.clone(),
        exit,
        common: common.clone(),
        capabilities,
    });
    let started = driver.now();
    let watching = containers.watch(&holdings(&driver));
    let handler = Arc::new(Handler::new(
        common,
        driver.clone(),
        shell.clone(),
        flags.access.http_heartbeat_interval,
        realms,
        authorizer,
        started,
    ));
    attach_sandboxes(&handler).await;
    driver.begin(out);

    let running = driver.clone();
    let core = tokio::spawn(async move { running.run(shell).await });
    let mut tasks = vec![
        detector::watch(masters, seed, driver.clone(), redetect),
        keeper.watch(),
        watch_disk(work_dir, flags.gc.disk_watch_interval, driver.clone()),
    ];
    tasks.extend(watching);
    let server = server.serve(handler.clone(), handler);
    Ok(RunningAgent {
        address,
        server,
        exit: exit_seen,
        core,
        tasks,
        driver,
        containers,
        keeper,
        deleter,
        left_overs,
        network: farewell,
    })
}

impl RunningAgent {
    /// Serves until `stop` is ready and its request is done, or until the core ends the agent.
    ///
    /// # Errors
    /// Why the agent cannot continue.
    pub async fn run_until(mut self, stop: impl Future<Output = Stop>) -> anyhow::Result<Ended> {
        let mut stop = std::pin::pin!(stop);
        let mut asked = false;
        let ended = loop {
            tokio::select! {
                how = &mut stop, if !asked => {
                    asked = true;
                    if how == Stop::Quietly {
                        self.containers.leave();
                    }
                    self.driver.submit(Input::Shutdown { unregister: how == Stop::ForGood });
                }
                ended = &mut self.core => break match ended {
                    Ok(Err(error)) => Err(error.context("checkpoints cannot be written")),
                    Ok(Ok(())) => Ok(Ended { code: 0, message: String::new() }),
                    Err(panic) => Err(anyhow::Error::new(panic).context("the agent's core has failed")),
                },
                exit = exited(&mut self.exit) => {
                    if let Some(left_overs) = self.left_overs.take() {
                        let _ = left_overs.await;
                    }
                    break Ok(Ended { code: exit.code, message: exit.message });
                }
            }
        };
        self.keeper.end();
        self.deleter.end();
        // The core ends before the streams do: it must not take that for the end of its executors.
        self.core.abort();
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        if !self.core.is_finished() {
            let _ = (&mut self.core).await;
        }
        tokio::join!(self.server.stop(), self.network.flush(FAREWELL));
        ended
    }
}

async fn exited(exit: &mut watch::Receiver<Option<Exit>>) -> Exit {
    let seen = exit.wait_for(Option::is_some).await.map(|exit| exit.clone());
    match seen {
        Ok(Some(exit)) => exit,
        _ => std::future::pending().await,
    }
}

/// The work directory, created if needed, as an absolute path.
fn work_dir(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let given = given.ok_or(FlagError::Missing { name: "work_dir", why: "" })?;
    store::create_directories(given, Access::All)
        .with_context(|| format!("cannot create the work directory '{}'", given.display()))?;
    given.canonicalize().with_context(|| format!("cannot use the work directory '{}'", given.display()))
}

/// `--runtime_dir`: for what need not survive a reboot.
fn runtime_dir(given: Option<&Path>) -> PathBuf {
    match given {
        Some(path) => path.to_owned(),
        None if nix::unistd::access("/var/run", nix::unistd::AccessFlags::W_OK).is_ok() => "/var/run/mesos".into(),
        None => std::env::temp_dir().join("mesos/runtime"),
    }
}

/// The outermost containers of an earlier agent that are taken up again.
fn taken_up(out: &Outbox) -> std::collections::BTreeSet<String> {
    let one = |output: &Output| match output {
        Output::Reattach { container, .. } => Some(container.root().as_str().to_owned()),
        _ => None,
    };
    out.outputs.iter().filter_map(one).collect()
}

/// Asks the core what the containers of running executors hold.
fn holdings(driver: &Driver<Agent>) -> Holdings {
    let driver = driver.clone();
    Arc::new(move || {
        let driver = driver.clone();
        Box::pin(async move {
            let snapshot = driver.read(Agent::snapshot).await;
            let executors = snapshot.frameworks.values().flat_map(|framework| framework.executors.values());
            let running = executors.filter(|executor| executor.state != ExecutorState::Terminated);
            let holding = |executor: &Arc<Executor>| Holding {
                container: executor.container.clone(),
                sandbox: PathBuf::from(&*executor.directory),
                resources: resources::from_proto(&executor.resources()).unwrap_or_default(),
            };
            running.map(holding).collect()
        })
    })
}

fn read_checkpoints(found: store::MetaTree, meta: &Path, strict: bool) -> anyhow::Result<Recovered> {
    let times = found.times.into_iter().map(|(path, since)| (path, Time::from_epoch(since))).collect();
    let tree = Tree { files: found.files, links: found.links, folders: found.folders, times };
    Recovered::read(&tree, strict).with_context(|| {
        format!(
            "this agent does not start with what it cannot read. Either bring the file back from a copy; or delete '{}' to start as \
             a new agent, which leaves the tasks of the old one; or skip what is damaged with --no-strict",
            meta.join("slaves/latest").display()
        )
    })
}

/// Shows the sandboxes that an earlier agent has left.
async fn attach_sandboxes(handler: &Handler) {
    let snapshot = handler.snapshot().await;
    for framework in snapshot.frameworks.values().chain(&*snapshot.completed_frameworks) {
        for executor in framework.executors.values().chain(framework.completed_executors.iter()) {
            outputs::attach(&handler.common.files, &ContainerName::clone(&executor.container), &executor.directory);
        }
    }
}

/// Tells the core how full the disk is.
fn watch_disk(work_dir: PathBuf, interval: std::time::Duration, driver: Driver<Agent>) -> tokio::task::JoinHandle<()> {
    let interval = interval.max(std::time::Duration::from_millis(10));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            if let Ok((_, fraction)) = ::containers::file_system_use(&work_dir) {
                driver.submit(Input::DiskUsage { fraction });
            }
        }
    })
}
