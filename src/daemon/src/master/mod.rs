//! The live master: a core, its sockets, its registry, its routes.
//!
//! It decides nothing about the cluster; the core does.

mod authentication;
mod config;
mod documents;
mod election;
mod entries_registry;
mod explain;
mod fairness;
mod group_registry;
mod handler;
mod legacy;
mod masters;
mod metrics;
mod operator_api;
mod outputs;
mod peers;
mod policies;
mod realms;
mod record;
mod registry;
mod registry_file;
mod reported_roles;
mod scheduler_api;
mod standby;
mod tepui_calls;
mod validate;
mod views;
mod whitelist;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::Context;
use base::{Pid, Time};
use master::record::Head;
use master::{Config, Input, Master};
use protos::mesos;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use wire::Limits;
use wire::http::Server;
use wire::libprocess::Network;

pub use tepui_calls::tepui_calls;

use crate::address::{Identity, identity, ip_number};
use crate::audit::Audit;
use crate::clock::Clock;
use crate::common::{Common, LogLevel, MESOS_VERSION, strict_peers};
use crate::connections::connections;
use crate::credentials;
use crate::driver::Driver;
use crate::files::Files;
use crate::firewall::Firewall;
use crate::flags::master::AllocationFlags;
use crate::flags::{FlagError, Flags, LoggingFlags, MasterFlags, Part};
use crate::pending_requests::PendingRequests;
use crate::senders::Senders;
use crate::streams::Streams;
use crate::webui::Webui;
use authentication::Authentication;
use election::{Election, ResignHandle, Switch};
use handler::Handler;
use outputs::{Shell, TimedMaster};
use peers::Peers;
use registry::RegistryStore;
use standby::Standby;

/// Name of the directory of a member of a group (`--peers`), below the work directory of its master.
pub const GROUP_DIRECTORY: &str = peers::DIRECTORY;

/// A master that serves requests.
pub struct RunningMaster {
    /// Address on which it listens.
    pub address: SocketAddr,
    server: wire::http::Running,
    /// Task that leads, or waits until this master is elected.
    core: JoinHandle<anyhow::Result<()>>,
    audit: Audit,
    successor: Option<ResignHandle>,
}

/// The parts of a master, except its registry.
struct MasterParts {
    common: Arc<Common>,
    flags: Arc<MasterFlags>,
    info: mesos::MasterInfo,
    pid: Pid,
    clock: Clock,
    started: Time,
    /// Set once this master takes part in a group of peers.
    peers: Arc<OnceLock<Peers>>,
}

/// A core with its handler and its tasks.
struct RunningCore {
    handler: Arc<Handler>,
    exit: watch::Receiver<Option<String>>,
    /// Tasks that are aborted when this is dropped.
    tasks: JoinSet<anyhow::Result<()>>,
}

/// Starts a master in the current runtime, which must be a single-threaded one for the best speed.
///
/// # Errors
/// Invalid flags, an address that cannot be bound, or a registry that cannot be read.
pub async fn start(mut given: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<RunningMaster> {
    given.check_unread()?;
    let connections = connections(&mut given)?;
    let flags = Arc::new(MasterFlags::read(&given)?);
    config::config(&flags)?;
    let firewall = Firewall::read(flags.network.firewall_rules.as_ref())?;
    let group = election::group(&flags.state)?;
    let identity = identity(&flags.network, flags.identity.port)?;
    // A master in a group reads the registry when it is elected.
    let registry = match &group {
        Some(_) => RegistryStore::empty()?,
        None => RegistryStore::open(&flags.state, None)?,
    };
    let server = Server::bind(identity.bind.into(), Limits::default())
        .with_context(|| format!("cannot listen on {}", identity.bind))?;
    let tls = crate::tls::read(&given)?;
    let server = server.with_connections(connections.clone()).with_tls(tls.clone());
    let address = server.address();
    let identity = identity.bound_to(address.port());
    let pid = Pid::new("master", identity.advertise);
    let domain = config::domain(flags.identity.domain.as_ref())?;
    let info = mesos::MasterInfo { domain, ..master_info(&identity, &pid) };
    let common = Arc::new(Common {
        part: Part::Master,
        logging: LoggingFlags::read(&given)?,
        flags: given,
        webui: Webui::of(Part::Master, flags.identity.webui_dir.as_deref()),
        connections,
        tls,
        files: Files::default(),
        firewall,
        jsonp: flags.network.jsonp,
        log_level,
        audit: Audit::start(Part::Master, &flags.audit)?,
        strict_peers: strict_peers(),
    });
    common.attach_log("/master/log");
    let audit = common.audit.clone();
    let clock = Clock::start();
    let parts = MasterParts { common, flags, info, pid, clock, started: clock.now(), peers: Arc::default() };
    let standby = Arc::new(Standby::new(parts.pid.clone()));
    let running_core = parts.start_core(registry, group.is_some().then(|| standby.clone()))?;
    let election = group.map(|group| Election::enter(group, &parts)).transpose()?;
    let successor = election.as_ref().and_then(Election::successor);
    let peers = election.as_ref().and_then(Election::peers).cloned();
    // It is set only once, here, so there is no error.
    peers.iter().for_each(|peers| drop(parts.peers.set(peers.clone())));
    let switch = Arc::new(Switch::new(running_core.handler.clone(), peers));
    let server = server.serve(switch.clone(), switch.clone());
    let core = match election {
        Some(election) => tokio::spawn(election::contend(parts, election, running_core, switch, standby)),
        None => tokio::spawn(running_core.run()),
    };
    Ok(RunningMaster { address, server, core, audit, successor })
}

impl MasterParts {
    /// Starts a core with a registry: a leading one, or an idle one while another master leads.
    fn start_core(&self, registry: RegistryStore, standby: Option<Arc<Standby>>) -> anyhow::Result<RunningCore> {
        let flags = &*self.flags;
        let core_config = config::config(flags)?;
        let known = credentials::of_list("credentials", flags.access.credentials.as_deref())?;
        let realms = realms::read(&flags.access, known.clone())?.audited(self.common.audit.clone());
        let hostname = self.info.hostname.as_deref().unwrap_or_default();
        let authenticator = authentication::authenticator(&flags.access, known, hostname)?;
        let seed = u64::from_le_bytes(crate::random::bytes());
        let start = self.clock.now();
        let recording = match standby {
            Some(_) => None,
            None => {
                let head = self.head(&registry, seed, start);
                record::Recording::begin(flags.state.record.as_deref(), &core_config.policies, head)?
            }
        };
        let authorizer = core_config.authorizer.clone();
        let core = Master::new(core_config, self.info.clone(), registry.registry(), seed, start);
        let driver = Driver::audited(TimedMaster::new(core, recording), self.clock, self.common.audit.clone());

        let exited = driver.clone();
        let (connections, tls) = (self.common.connections.clone(), self.common.tls.clone());
        let exited = move |pid| exited.submit(Input::Exited { pid });
        let network = Network::with_connections(Limits::default(), connections, tls, exited);
        let (exit, exit_seen) = watch::channel(None);
        let senders = Arc::new(Senders::new(network.clone(), None));
        let shell = Arc::new(Shell {
            network,
            pid: self.pid.clone(),
            streams: Streams::new(&Limits::default()),
            last_event: Default::default(),
            pending_requests: PendingRequests::default(),
            registry: Mutex::new(registry),
            authorizer,
            exit,
        });
        let audit = self.common.audit.clone();
        let authentication =
            Authentication::new(authenticator, senders.clone(), shell.clone(), driver.clone(), self.clock, audit);
        let authentication = Arc::new(authentication);
        let mut tasks = JoinSet::new();
        let watch = authentication.clone().watch();
        tasks.spawn(async move {
            watch.await;
            std::future::pending().await
        });
        if let Some(path) = whitelist_path(&flags.allocation) {
            let driver = driver.clone();
            // If the whitelist can no longer be read, the master continues.
            tasks.spawn(async move {
                whitelist::watch(path, driver).await;
                std::future::pending().await
            });
        }
        let handler = Handler::new(self, driver.clone(), shell.clone(), (authentication, senders), realms, standby);
        tasks.spawn(async move { driver.run(shell).await.context("the registry cannot be written") });
        Ok(RunningCore { handler: Arc::new(handler), exit: exit_seen, tasks })
    }

    fn head(&self, registry: &RegistryStore, seed: u64, start: Time) -> Head {
        Head {
            flags: self.common.flags.iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect(),
            info: self.info.clone(),
            registry: match self.flags.state.record {
                Some(_) => registry.registry().clone(),
                None => mesos::internal::Registry::default(),
            },
            seed,
            start,
        }
    }
}

impl RunningCore {
    /// Serves until the master must end.
    ///
    /// # Errors
    /// The reason why the master cannot continue.
    async fn run(mut self) -> anyhow::Result<()> {
        tokio::select! {
            ended = self.tasks.join_next() => match ended {
                Some(Ok(result)) => result,
                Some(Err(panic)) => Err(anyhow::Error::new(panic).context("the master's core has failed")),
                None => Ok(()),
            },
            reason = exit_reason(&mut self.exit) => Err(anyhow::anyhow!(reason)),
        }
    }
}

/// Returns the settings of a recorded master, from the flags in the head of its recording.
///
/// # Errors
/// A flag that this version does not accept.
pub fn recorded_config(recorded: &[(String, String)]) -> anyhow::Result<Config> {
    let mut flags = Flags::defaults(Part::Master);
    let mut policies = None;
    for (name, value) in recorded {
        match name.as_str() {
            record::POLICIES => policies = Some(serde_json::from_str(value).context("the recorded policies")?),
            // The recorded policies include the values of these flags.
            "policies" | "offer_timeout" | "offer_granularity" | "record" => {}
            name => flags.set(name, value)?,
        }
    }
    let config = config::config(&MasterFlags::read(&flags)?)?;
    Ok(Config { policies: policies.unwrap_or_default(), ..config })
}

/// Reads a file of `--policies`.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub fn policies_of_file(path: &str) -> Result<allocator::policies::Policies, FlagError> {
    let policies = policies::of_file(path)?;
    policies.check().map_err(|why| FlagError::Refused { name: "policies", why: why.to_string() })?;
    Ok(policies)
}

impl RunningMaster {
    /// Serves until `stop` is ready, or until the master must end.
    ///
    /// # Errors
    /// The reason why the master cannot continue.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let result = tokio::select! {
            () = stop => Ok(()),
            ended = &mut self.core => match ended {
                Ok(result) => result,
                Err(panic) => Err(anyhow::Error::new(panic).context("the master's core has failed")),
            },
        };
        if let Some(successor) = self.successor.as_mut().filter(|_| result.is_ok()) {
            successor.resign().await;
        }
        // The core ends before the streams do: otherwise it would take their end for the end of its frameworks.
        self.core.abort();
        // A master that must not continue sends no further answers.
        if result.is_ok() {
            if !self.core.is_finished() {
                let _ = self.core.await;
            }
            self.server.stop().await;
        }
        self.audit.flush().await;
        result
    }
}

/// Returns the path of the file of `--whitelist`; `None` without the flag, or if all agents may be offered.
fn whitelist_path(flags: &AllocationFlags) -> Option<PathBuf> {
    let text = flags.whitelist.as_ref()?.to_str().filter(|text| *text != "*")?;
    Some(PathBuf::from(text.strip_prefix("file://").unwrap_or(text)))
}

async fn exit_reason(exit: &mut watch::Receiver<Option<String>>) -> String {
    let seen = exit.wait_for(Option::is_some).await.map(|reason| reason.clone());
    match seen {
        Ok(reason) => reason.unwrap_or_default(),
        Err(_) => std::future::pending().await,
    }
}

fn master_info(identity: &Identity, pid: &Pid) -> mesos::MasterInfo {
    use mesos::master_info::{Capability, capability::Type};
    let capability = |kind: Type| Capability { r#type: Some(kind as i32) };
    let address = identity.advertise;
    mesos::MasterInfo {
        id: crate::random::uuid_text(),
        ip: ip_number(*address.ip()),
        port: u32::from(address.port()),
        pid: Some(pid.to_string()),
        hostname: Some(identity.hostname.clone()),
        version: Some(MESOS_VERSION.to_owned()),
        address: Some(mesos::Address {
            hostname: Some(identity.hostname.clone()),
            ip: Some(address.ip().to_string()),
            port: i32::from(address.port()),
        }),
        domain: None,
        capabilities: [Type::AgentUpdate, Type::AgentDraining, Type::QuotaV2].map(capability).to_vec(),
    }
}
