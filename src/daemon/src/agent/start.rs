//! Starts an agent: reads its flags, recovers its checkpoints and containers, then serves requests.
//!
//! The parent module ends a running agent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::detector::LeaderActivity;
use agent::{Agent, ContainerName, Executor, ExecutorState, Input, Outbox, Output, Recovered, Tree};
use anyhow::Context;
use authorizer::Authorizer;
use base::Pid;
use containerizer::{
    AgentConnections, ContainerResources, Deleter, Gpus, Host, ListContainerResources, Report, volumes,
};
use containers::ProgramFile;
use protos::mesos::slave_info::Capability;
use store::{Access, Checkpoints};
use tokio::sync::{Notify, watch};
use wire::Limits;
use wire::http::Server;
use wire::libprocess::Network;

use super::checkpoint_writer::{self, CheckpointWriter};
use super::detector::{self, LeaderReceiver, Masters};
use super::executor_connections::ExecutorConnections;
use super::executor_tokens::{self, ExecutorTokens, TokenFlags};
use super::handler::Handler;
use super::outputs::{self, Shell};
use super::volume_changes::VolumeChanges;
use super::{RunningAgent, config, oversubscription, private, program, realms, sender_token};
use crate::address::{Identity, identity};
use crate::audit::Audit;
use crate::clock::Clock;
use crate::common::{Common, LogLevel, strict_peers};
use crate::connections::connections;
use crate::driver::{Driver, write_log};
use crate::fault;
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::{AgentFlags, FlagError, Flags, LoggingFlags, Part};
use crate::realms::Realms;
use crate::senders::Senders;
use crate::streams::Streams;
use crate::webui::Webui;

/// Starts an agent in the current runtime, which must be a single-threaded one for the best speed.
///
/// # Errors
/// Invalid flags, an address that cannot be bound, or checkpoints that cannot be used.
pub async fn start(given: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<RunningAgent> {
    let setup = Setup::read(given, log_level)?;
    let recovery = Recovery::run(&setup).await?;
    serve(setup, recovery).await
}

/// The agent's settings from its flags, and its listening socket.
struct Setup {
    common: Arc<Common>,
    flags: AgentFlags,
    masters: Masters,
    realms: Realms,
    tokens: TokenFlags,
    work_dir: PathBuf,
    runtime_dir: PathBuf,
    server: Server,
    identity: Identity,
    pid: Pid,
    containerizer: containerizer::Config,
}

impl Setup {
    fn read(mut given: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<Setup> {
        let connections = connections(&mut given)?;
        let flags = AgentFlags::read(&given)?;
        let masters = detector::masters(&flags.registration)?;
        given.check_unread()?;
        let firewall = Firewall::read(flags.network.firewall_rules.as_ref())?;
        let work_dir = work_dir(flags.node.work_dir.as_deref())?;
        let identity = identity(&flags.network, flags.node.port)?;
        let server = Server::bind(identity.bind.into(), Limits::default())
            .with_context(|| format!("cannot listen on {}", identity.bind))?;
        let tls = crate::tls::read(&given)?;
        let server = server.with_connections(connections.clone()).with_tls(tls.clone());
        let identity = identity.bound_to(server.address().port());
        let pid = Pid::new("slave(1)", identity.advertise);
        let (realms, tokens) = (realms::read(&flags.access)?, executor_tokens::read(&flags.access)?);
        let runtime_dir = runtime_dir(flags.node.runtime_dir.as_deref());
        let mut containerizer = config::containerizer::containerizer(&flags, &work_dir, &runtime_dir)?;
        containerizer.fetcher.tls = crate::tls::fetcher(&given, std::mem::take(&mut containerizer.fetcher.tls.hosts))?;
        let common = Arc::new(Common {
            part: Part::Agent,
            logging: LoggingFlags::read(&given)?,
            flags: given,
            connections,
            tls,
            files: Files::default(),
            webui: Webui::of(Part::Agent, None),
            firewall,
            jsonp: flags.network.jsonp,
            log_level,
            audit: Audit::start(Part::Agent, &flags.audit)?,
            strict_peers: strict_peers(),
        });
        Ok(Setup {
            common,
            flags,
            masters,
            realms,
            tokens,
            work_dir,
            runtime_dir,
            server,
            identity,
            pid,
            containerizer,
        })
    }
}

/// A core that has recovered the state of an earlier agent, and its containerizer host.
struct Recovery {
    driver: Driver<Agent>,
    /// First outputs of the core.
    out: Outbox,
    clock: Clock,
    host: Host,
    checkpoints: Checkpoints,
    meta: PathBuf,
    /// Path by which the core knows the executors' program, and the open program.
    executor: Option<(String, ProgramFile)>,
    authorizer: Authorizer,
    capabilities: Vec<Capability>,
    seed: u64,
}

impl Recovery {
    async fn run(setup: &Setup) -> anyhow::Result<Recovery> {
        let Setup { flags, work_dir, runtime_dir, .. } = setup;
        let policy = oversubscription::policy(&flags.oversubscription)?;
        let gpus = Gpus::start(&setup.containerizer)?;
        let info = config::info(&flags.node, &setup.identity, work_dir, gpus.as_ref().map(Gpus::count))?;
        let mut config = config::config(flags, setup.pid.clone(), &work_dir.to_string_lossy())?;
        if setup.masters.are_tried_in_turn() {
            config.first_registration_wait = Duration::ZERO;
        }
        if let Some(tls) = &setup.common.tls {
            // Variables of --executor_environment_variables come later and override these.
            config.executor_environment.splice(..0, crate::tls::executor_environment(tls.settings()));
        }
        let meta = PathBuf::from(config.meta_dir());
        let clock = Clock::start();
        let (now, name) = (Arc::new(move || clock.now()), config.program.clone());
        let host = Host::start(&setup.containerizer, gpus, info.resources.clone(), (name, &meta), now).await?;
        config.resizes = host.is_linux();
        config.can_limit = host.limitable();

        private::prepare(&meta, runtime_dir)?;
        let (checkpoints, found) =
            checkpoint_writer::open(&meta, runtime_dir).context("the checkpoints cannot be read")?;
        let mut recovered = read_checkpoints(&found, &meta, flags.executors.strict)?;
        recovered.nested = host.recovered();
        let own = resources::from_proto(&info.resources).unwrap_or_default();
        volumes::delete_later(volumes::leftovers(work_dir, &own));

        let capabilities = config.capabilities.iter().map(|kind| Capability { r#type: Some(*kind as i32) }).collect();
        let executor = program::open().map(|file| (config.program.clone(), file));
        if flags.images.image_providers.as_deref().is_some_and(|text| !text.is_empty()) && !program::is_static() {
            tracing::warn!(
                "this build has no static executor: images of containers must have a C library as new as this host's; \
                 the release archive has one (cargo xtask dist)"
            );
        }
        let authorizer = config.authorizer.clone();
        let seed = u64::from_le_bytes(crate::random::bytes());
        let mut out = Outbox::default();
        let started = Agent::new(config, info, recovered, seed, clock.now(), &mut out);
        write_log(&mut out.log);
        let mut core = started?;
        core.oversubscribe(policy, clock.now());
        let driver = Driver::new(core, clock);
        Ok(Recovery { driver, out, clock, host, checkpoints, meta, executor, authorizer, capabilities, seed })
    }
}

/// Launches the containerizer, connects all parts, and serves requests.
async fn serve(setup: Setup, recovery: Recovery) -> anyhow::Result<RunningAgent> {
    let Setup { common, flags, .. } = setup;
    let Recovery { driver, host, .. } = recovery;
    let exited = driver.clone();
    let exited = move |pid| exited.submit(Input::Exited { pid });
    let network = Network::with_connections(Limits::default(), common.connections.clone(), common.tls.clone(), exited);
    let reports = driver.clone();
    let report: Report = Arc::new(move |input| reports.submit(input));
    let (streams, pending_requests) = (Arc::new(Streams::new(&Limits::default())), Arc::default());
    common.attach_log("/slave/log");
    let shown = Arc::clone(&common);
    let deleter = Deleter::new(move |path| outputs::detach_below(&shown.files, path), containerizer::delete);
    let executors = ExecutorConnections {
        driver: driver.clone(),
        streams: Arc::clone(&streams),
        pending_requests: Arc::clone(&pending_requests),
    };
    let checkpoint_writer = CheckpointWriter::new(recovery.checkpoints, report.clone());
    let fetcher = host.fetcher();
    let containers = host.launch(AgentConnections {
        executor: recovery.executor,
        report: report.clone(),
        connect: Arc::new(move |owner, socket| Box::pin(executors.clone().serve(owner, socket))),
        deleter: deleter.clone(),
        on_step: fault::point,
    })?;
    let leftovers = containers.recover(&reattached_containers(&recovery.out)).await?;
    let tokens = ExecutorTokens::open(setup.tokens, [&recovery.meta, &setup.runtime_dir])?;
    let sender_token = sender_token::of(&recovery.meta);
    let (exit, exit_seen) = watch::channel(None);
    let (redetect, leader_activity) = (Arc::new(Notify::new()), Arc::<LeaderActivity>::default());
    let shell = Arc::new(Shell {
        network: network.clone(),
        pid: setup.pid,
        streams,
        pending_requests,
        containers: containers.clone(),
        report: report.clone(),
        clock: recovery.clock,
        fetcher,
        tokens,
        checkpoint_writer: checkpoint_writer.clone(),
        volume_changes: VolumeChanges::new(report, exit.clone()),
        deleter: deleter.clone(),
        meta: recovery.meta,
        redetect: redetect.clone(),
        leader_activity: leader_activity.clone(),
        exit,
        common: common.clone(),
        capabilities: recovery.capabilities,
    });
    let started = driver.now();
    let audit = common.audit.clone();
    let watching = containers.watch(&list_container_resources(&driver));
    let handler = Arc::new(Handler::new(
        common,
        driver.clone(),
        shell.clone(),
        flags.access.http_heartbeat_interval,
        (setup.realms.audited(audit.clone()), Senders::new(network.clone(), Some(sender_token))),
        recovery.authorizer,
        started,
    ));
    attach_sandboxes(&handler).await;
    driver.begin(recovery.out);

    let running = driver.clone();
    let core = tokio::spawn(async move { running.run(shell).await });
    let found = LeaderReceiver { driver: driver.clone(), network: network.clone(), sender_token, leader_activity };
    let mut tasks = vec![
        detector::watch(setup.masters, recovery.seed, found, redetect),
        checkpoint_writer.watch(),
        watch_disk(setup.work_dir, flags.gc.disk_watch_interval, driver.clone()),
    ];
    tasks.extend(watching);
    let address = setup.server.address();
    Ok(RunningAgent {
        address,
        server: setup.server.serve(handler.clone(), handler),
        exit: exit_seen,
        core,
        tasks,
        driver,
        containers,
        checkpoint_writer,
        deleter,
        leftovers: Some(leftovers).filter(|_| flags.executors.recover == "cleanup"),
        network,
        audit,
    })
}

/// Creates the work directory if it is missing, and returns its absolute path.
fn work_dir(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let given = given.ok_or(FlagError::Missing { name: "work_dir", why: "" })?;
    store::create_directories(given, Access::All)
        .with_context(|| format!("cannot create the work directory '{}'", given.display()))?;
    given.canonicalize().with_context(|| format!("cannot use the work directory '{}'", given.display()))
}

/// Returns the directory of `--runtime_dir` or its default: for files that need not survive a reboot.
fn runtime_dir(given: Option<&Path>) -> PathBuf {
    match given {
        Some(path) => path.to_owned(),
        None if nix::unistd::access("/var/run", nix::unistd::AccessFlags::W_OK).is_ok() => "/var/run/mesos".into(),
        None => std::env::temp_dir().join("mesos/runtime"),
    }
}

/// Returns the top-level containers of the previous agent that are recovered.
fn reattached_containers(out: &Outbox) -> BTreeSet<String> {
    let one = |output: &Output| match output {
        Output::Reattach { container, .. } => Some(container.root().as_str().to_owned()),
        _ => None,
    };
    out.outputs.iter().filter_map(one).collect()
}

/// Returns a function that asks the core for the containers of running executors, with their sandboxes and resources.
fn list_container_resources(driver: &Driver<Agent>) -> ListContainerResources {
    let driver = driver.clone();
    Arc::new(move || {
        let driver = driver.clone();
        Box::pin(async move {
            let snapshot = driver.read(Agent::snapshot).await;
            let executors = snapshot.frameworks.values().flat_map(|framework| framework.executors.values());
            let running = executors.filter(|executor| executor.state != ExecutorState::Terminated);
            let container_resources = |executor: &Arc<Executor>| ContainerResources {
                container: executor.container.clone(),
                sandbox: PathBuf::from(&*executor.directory),
                resources: resources::from_proto(&executor.resources()).unwrap_or_default(),
            };
            running.map(container_resources).collect()
        })
    })
}

fn read_checkpoints(tree: &Tree, meta: &Path, strict: bool) -> anyhow::Result<Recovered> {
    Recovered::read(tree, strict).with_context(|| {
        format!(
            "the agent does not start with damaged checkpoints. Restore the file from a backup; or delete '{}' to \
             start as a new agent, which abandons the tasks of the old one; or skip damaged checkpoints with \
             --no-strict",
            meta.join("slaves/latest").display()
        )
    })
}

/// Attaches the sandboxes of an earlier agent to the virtual paths of `/files`.
async fn attach_sandboxes(handler: &Handler) {
    let snapshot = handler.snapshot().await;
    for framework in snapshot.frameworks.values().chain(&*snapshot.completed_frameworks) {
        for executor in framework.executors.values().chain(framework.completed_executors.iter()) {
            outputs::attach(&handler.common.files, &ContainerName::clone(&executor.container), &executor.directory);
        }
    }
}

/// Starts a task that regularly reports the disk usage of the work directory to the core.
fn watch_disk(work_dir: PathBuf, interval: Duration, driver: Driver<Agent>) -> tokio::task::JoinHandle<()> {
    let interval = interval.max(Duration::from_millis(10));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            if let Ok((_, fraction)) = ::containers::file_system_use(&work_dir) {
                driver.submit(Input::DiskUsage { fraction });
            }
        }
    })
}
