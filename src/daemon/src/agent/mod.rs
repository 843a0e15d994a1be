//! The live agent: a core, its sockets, its checkpoints, its containers, its routes.
//!
//! It decides nothing about tasks; the core does.

mod ask;
mod attach;
mod config;
mod containers;
mod deleter;
mod described;
mod detector;
mod disk;
mod dns;
mod docker;
mod ends;
mod executor_api;
mod fetch;
mod fetch_cache;
mod handler;
mod helpers;
mod image_gc;
mod images;
mod isolation;
mod keeper;
mod layers;
mod lines;
mod metrics;
mod operator_api;
mod oversubscription;
mod ports;
mod prepare;
mod private;
mod program;
mod realms;
mod records;
mod rotate;
mod secrets;
mod sessions;
mod spares;
mod systemd;
mod terminals;
mod unsupported;
mod validate;
mod views;
mod volumes;
mod worker;
mod world;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Agent, ContainerName, Input, Outbox, Output, Recovered, Tree};
use anyhow::Context;
use base::{Pid, Time};
use protos::mesos::slave_info::Capability;
use store::Access;
use tokio::sync::{Notify, oneshot, watch};
use wire::Limits;
use wire::http::Server;
use wire::libprocess::Network;

use crate::address::identity;
use crate::clock::Clock;
use crate::common::{Common, LogLevel, strict_peers};
use crate::driver::{Batch, Driver};
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::{Flags, Part};
use crate::streams::Streams;
use containers::{Containers, Report, Tools};
use deleter::Deleter;
use disk::DiskUses;
use docker::Docker;
use fetch::Fetcher;
use handler::Handler;
use images::Images;
use isolation::{Classes, Gpus, Isolator, Isolators, Networks, Parts, Perf, Resctrl, Shortages};
use keeper::Keeper;
use lines::Lines;
use ports::Ports;
use records::Records;
use systemd::Systemd;
pub(crate) use unsupported::note;
use world::{Exit, Shell};

/// An agent that serves.
pub struct RunningAgent {
    /// Where it listens.
    pub address: SocketAddr,
    server: wire::http::Running,
    exit: watch::Receiver<Option<Exit>>,
    core: tokio::task::JoinHandle<anyhow::Result<()>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    driver: Driver<Agent>,
    docker: Docker,
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
    /// What to tell the operator; may be empty.
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
pub async fn start(flags: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<RunningAgent> {
    let masters = detector::masters(&flags)?;
    unsupported::check(&flags)?;
    let firewall = Firewall::read(&flags)?;
    let work_dir = work_dir(&flags)?;
    let identity = identity(&flags)?;
    let server = Server::bind(identity.bind.into(), Limits::default())
        .with_context(|| format!("cannot listen on {}", identity.bind))?;
    let address = server.address();
    let identity = identity.bound_to(address.port());
    let pid = Pid::new("slave(1)", identity.advertise);
    let isolators = Isolators::read(&flags)?;
    let realms = realms::read(&flags)?;
    let rotation = rotate::Rotation::read(&flags)?;
    let secrets = secrets::Resolver::read(&flags)?;
    let docker = Docker::read(&flags)?;
    docker.check()?;
    let systemd = Systemd::start(&flags).await;
    let images = Images::read(&flags, &work_dir, isolators.mounts())?;
    let networks = Networks::read(&flags, &runtime_dir(&flags))?;
    let gpus = Gpus::read(&flags, &runtime_dir(&flags))?;
    let info = config::info(&flags, &identity, &work_dir, gpus.count())?;
    let ports = Ports::read(&flags, &info.resources)?;
    let resctrl = Resctrl::read(&flags, config::whole(&info, "cache_ways"))?;
    let perf = Perf::read(&flags, &isolators, &runtime_dir(&flags))?;
    let parts = Parts {
        images,
        networks,
        gpus,
        resctrl,
        classes: Classes::read(&flags)?,
        perf: perf.clone(),
        shortages: Shortages::default(),
    };
    let isolator = Isolator::start(isolators, parts).context("containers cannot be isolated")?;
    let mut config = config::config(&flags, pid.clone(), &work_dir.to_string_lossy())?;
    config.resizes = isolator.is_linux();
    config.can_limit = isolator.limitable();

    let policy = oversubscription::policy(&flags)?;

    let meta = PathBuf::from(config.meta_dir());
    private::prepare(&meta, &runtime_dir(&flags))?;
    let records = Records::new(&runtime_dir(&flags), &meta);
    let (checkpoints, found) = keeper::open(&meta).context("the checkpoints cannot be read")?;
    let mut recovered = read_checkpoints(found, &meta, flags.on("strict"))?;
    recovered.nested = records.read();
    let own = resources::from_proto(&info.resources).unwrap_or_default();
    volumes::delete_later(volumes::left_overs(&work_dir, &own));
    let clock = Clock::start();
    let seed = u64::from_le_bytes(crate::random::bytes());
    let mut out = Outbox::default();
    let capabilities = config.capabilities.iter().map(|kind| Capability { r#type: Some(*kind as i32) }).collect();
    let program = config.program.clone();
    let executor = program::open().map(|file| (config.program.clone(), file));
    let authorizer = config.authorizer.clone();
    let mut core = Agent::new(config, info, recovered, seed, clock.now(), &mut out)?;
    core.oversubscribe(policy, clock.now());
    let driver = Driver::new(core, clock);

    let exited = driver.clone();
    let network = Network::new(Limits::default(), move |pid| exited.submit(Input::Exited { pid }));
    let reports = driver.clone();
    let fetcher = Fetcher::new(&flags, &work_dir, program);
    let report: Report = Arc::new(move |input| reports.submit(input));
    let left_overs = left_overs(&records, &out);
    let taken_up = taken_up(&out);
    isolator.clean(&taken_up);
    docker.clean(&taken_up, &tokio::runtime::Handle::current()).await?;
    let (streams, answers) = (Arc::new(Streams::new(Limits::default().stream)), Arc::default());
    let lines = Lines { driver: driver.clone(), streams: Arc::clone(&streams), answers: Arc::clone(&answers) };
    let common = Arc::new(Common {
        part: Part::Agent,
        flags,
        files: Files::default(),
        firewall,
        log_level,
        strict_peers: strict_peers(),
    });
    common.attach_log("/slave/log");
    let shown = Arc::clone(&common);
    let deleter = Deleter::new(move |path| world::detach_below(&shown.files, path), world::delete);
    let stopped = docker.clone();
    let tools = Tools {
        executor,
        report: report.clone(),
        records,
        lines,
        fetcher: fetcher.clone(),
        isolator,
        docker,
        rotation: rotation.clone(),
        secrets,
        systemd,
        deleter: deleter.clone(),
    };
    let keeper = Keeper::new(checkpoints, report.clone());
    let containers = Containers::start(tools).context("the launcher's thread cannot be started")?;
    let left_overs = Some(containers.end_left_overs(left_overs)).filter(|_| common.flags.text("recover") == "cleanup");
    let (exit, exit_seen) = watch::channel(None);
    let redetect = Arc::new(Notify::new());
    let farewell = network.clone();
    let shell = Arc::new(Shell {
        network,
        pid,
        streams,
        answers,
        containers,
        report,
        clock,
        fetcher,
        keeper: keeper.clone(),
        deleter: deleter.clone(),
        meta,
        redetect: redetect.clone(),
        exit,
        common: common.clone(),
        capabilities,
    });
    let started = driver.now();
    let uses = DiskUses::default();
    let disk_watch = disk::watch(&common.flags, uses.clone(), driver.clone(), shell.containers.clone());
    let ports_watch = ports.map(|ports| ports.watch(driver.clone(), shell.containers.clone()));
    let counting = perf.watch(shell.containers.clone(), clock);
    let rotating = rotation.start(shell.containers.clone(), work_dir.join("containers"));
    let collecting = image_gc::watch(shell.containers.images());
    let handler = Arc::new(Handler::new(common, driver.clone(), shell.clone(), realms, authorizer, uses, started));
    attach_sandboxes(&handler).await;
    driver.begin(Batch { persist: out.persist, outputs: out.outputs, at_once: out.at_once });

    let running = driver.clone();
    let core = tokio::spawn(async move { running.run(shell).await });
    let mut tasks = vec![
        detector::watch(masters, seed, driver.clone(), redetect),
        keeper.watch(),
        watch_disk(work_dir, handler.common.flags.duration("disk_watch_interval"), driver.clone()),
    ];
    tasks.extend(disk_watch);
    tasks.extend(ports_watch);
    tasks.extend(rotating);
    tasks.extend(counting);
    tasks.extend(collecting);
    let server = server.serve(handler.clone(), handler);
    Ok(RunningAgent {
        address,
        server,
        exit: exit_seen,
        core,
        tasks,
        driver,
        docker: stopped,
        keeper,
        deleter,
        left_overs,
        network: farewell,
    })
}

impl RunningAgent {
    /// Serves until `stop` is ready and what it asks for is done, or until the core ends the agent.
    ///
    /// # Errors
    /// Why the agent cannot go on.
    pub async fn run_until(mut self, stop: impl Future<Output = Stop>) -> anyhow::Result<Ended> {
        let mut stop = std::pin::pin!(stop);
        let mut asked = false;
        let ended = loop {
            tokio::select! {
                how = &mut stop, if !asked => {
                    asked = true;
                    if how == Stop::Quietly {
                        self.docker.leave();
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

/// The work folder, made if need be, as an absolute path.
fn work_dir(flags: &Flags) -> anyhow::Result<PathBuf> {
    let given = Path::new(flags.required("work_dir", "")?);
    store::create_directories(given, Access::All)
        .with_context(|| format!("cannot create the work folder '{}'", given.display()))?;
    given.canonicalize().with_context(|| format!("cannot use the work folder '{}'", given.display()))
}

/// `--runtime_dir`: for what need not survive a reboot.
fn runtime_dir(flags: &Flags) -> PathBuf {
    match flags.get("runtime_dir").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
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

/// The containers of an earlier agent that nobody takes up again.
fn left_overs(records: &Records, out: &Outbox) -> Vec<ContainerName> {
    let wanted = |name: &ContainerName| {
        let mut outputs = out.outputs.iter();
        outputs.any(|output| matches!(output, Output::Reattach { container, .. } if container.root() == *name))
    };
    records.owned().into_iter().filter(|name| !wanted(name)).collect()
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
    for framework in snapshot.frameworks.values().chain(&snapshot.completed_frameworks) {
        for executor in framework.executors.values().chain(framework.completed_executors.iter()) {
            world::attach(&handler.common.files, &ContainerName::clone(&executor.container), &executor.directory);
        }
    }
}

/// Tells the core how full the disk is.
fn watch_disk(
    work_dir: PathBuf,
    interval: Option<std::time::Duration>,
    driver: Driver<Agent>,
) -> tokio::task::JoinHandle<()> {
    let interval = interval.unwrap_or(std::time::Duration::from_secs(60)).max(std::time::Duration::from_millis(10));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            if let Ok((_, fraction)) = crate::host::disk(&work_dir) {
                driver.submit(Input::DiskUsage { fraction });
            }
        }
    })
}

/// Whether `--isolation` names one of these.
fn has_isolator(flags: &Flags, names: &[&str]) -> bool {
    flags.text("isolation").split(',').any(|name| names.contains(&name.trim()))
}
