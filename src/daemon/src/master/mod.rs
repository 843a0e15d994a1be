//! The live master: a core, its sockets, its registry, its routes.
//!
//! It decides nothing about the cluster; the core does.

mod authentication;
mod config;
mod documents;
mod explain;
mod fairness;
mod handler;
mod legacy;
mod metrics;
mod operator_api;
mod own_calls;
mod policies;
mod realms;
mod record;
mod registry;
mod scheduler_api;
mod validate;
mod views;
mod whitelist;
mod world;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use base::Pid;
use master::record::Head;
use master::{Config, Input, Master};
use protos::mesos;
use tokio::sync::watch;
use wire::Limits;
use wire::http::Server;
use wire::libprocess::Network;

use crate::address::{Identity, identity, ip_number};
use crate::answers::Answers;
use crate::clock::Clock;
use crate::common::{Common, LogLevel, MESOS_VERSION, strict_peers};
use crate::credentials;
use crate::driver::Driver;
use crate::files::Files;
use crate::flags::{FlagError, Flags, Part};
use crate::streams::Streams;
use authentication::Authentication;
use handler::Handler;
use registry::RegistryStore;
use world::{Live, Shell};

/// A master that serves.
#[derive(Debug)]
pub struct RunningMaster {
    /// Where it listens.
    pub address: SocketAddr,
    server: wire::http::Running,
    exit: watch::Receiver<Option<String>>,
    core: tokio::task::JoinHandle<anyhow::Result<()>>,
    /// What ends conversations that take too long.
    authentication: tokio::task::JoinHandle<()>,
}

/// Starts a master in the current runtime, which must be a single-threaded one for the best speed.
///
/// # Errors
/// Flags that do not fit, an address that cannot be bound, a registry that cannot be read.
pub async fn start(flags: Flags, log_level: Arc<LogLevel>) -> anyhow::Result<RunningMaster> {
    check_unsupported(&flags)?;
    let core_config = config::config(&flags)?;
    let identity = identity(&flags)?;
    let known = credentials::of_master(&flags)?;
    let realms = realms::read(&flags, known.clone())?;
    let authenticator = authentication::authenticator(&flags, known, &identity.hostname)?;
    let registry = RegistryStore::open(&flags)?;
    let whitelist = whitelist_path(&flags);
    let server = Server::bind(identity.bind.into(), Limits::default())
        .with_context(|| format!("cannot listen on {}", identity.bind))?;
    let address = server.address();
    let identity = identity.bound_to(address.port());
    let pid = Pid::new("master", identity.advertise);
    let info = mesos::MasterInfo { domain: config::domain(&flags)?, ..master_info(&identity, &pid) };

    let clock = Clock::start();
    let seed = u64::from_le_bytes(crate::random::bytes());
    let start = clock.now();
    let head = Head {
        flags: flags.iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect(),
        info: info.clone(),
        registry: if flags.get("record").is_some() {
            registry.registry().clone()
        } else {
            mesos::internal::Registry::default()
        },
        seed,
        start,
    };
    let recording = record::Recording::begin(&flags, &core_config.policies, head)?;
    let authorizer = core_config.authorizer.clone();
    let core = Master::new(core_config, info.clone(), registry.registry(), seed, start);
    let driver = Driver::new(Live::new(core, recording), clock);

    let exited = driver.clone();
    let network = Network::new(Limits::default(), move |pid| exited.submit(Input::Exited { pid }));
    let (exit, exit_seen) = watch::channel(None);
    let shell = Arc::new(Shell {
        network,
        pid,
        streams: Streams::new(Limits::default().stream),
        answers: Answers::default(),
        registry: Mutex::new(registry),
        authorizer,
        exit,
    });
    let common = Arc::new(Common {
        part: Part::Master,
        flags,
        files: Files::default(),
        log_level,
        strict_peers: strict_peers(),
    });
    common.attach_log("/master/log");
    let started = driver.now();
    let authentication = Arc::new(Authentication::new(authenticator, shell.clone(), driver.clone(), clock));
    let watch = tokio::spawn(authentication.clone().watch());
    let handler = Handler::new(common, driver.clone(), shell.clone(), authentication, realms, Arc::new(info), started);
    let handler = Arc::new(handler);
    if let Some(path) = whitelist {
        tokio::spawn(whitelist::watch(path, driver.clone()));
    }
    let core = tokio::spawn(async move { driver.run(shell).await });
    let server = server.serve(handler.clone(), handler);
    Ok(RunningMaster { address, server, exit: exit_seen, core, authentication: watch })
}

/// The settings of a recorded master, from the flags in the head of its recording.
///
/// # Errors
/// A flag that this version does not take.
pub fn recorded_config(recorded: &[(String, String)]) -> anyhow::Result<Config> {
    let mut flags = Flags::defaults(Part::Master);
    let mut policies = None;
    for (name, value) in recorded {
        match name.as_str() {
            record::POLICIES => policies = Some(serde_json::from_str(value).context("the recorded policies")?),
            // What these have said is among the recorded policies.
            "policies" | "offer_timeout" | "offer_granularity" | "record" => {}
            name => flags.set(name, value)?,
        }
    }
    let config = config::config(&flags)?;
    Ok(Config { policies: policies.unwrap_or_default(), ..config })
}

/// Reads a file of `--policies`.
///
/// # Errors
/// It cannot be read, or says what no policy can be.
pub fn policies_of_file(path: &str) -> Result<allocator::policies::Policies, FlagError> {
    let policies = policies::of_file(path)?;
    policies.check().map_err(|why| FlagError::Refused { name: "policies", why: why.to_string() })?;
    Ok(policies)
}

impl RunningMaster {
    /// Serves until `stop` is ready, or until going on would do harm.
    ///
    /// # Errors
    /// Why the master cannot go on.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let result = tokio::select! {
            () = stop => Ok(()),
            ended = &mut self.core => match ended {
                Ok(Err(error)) => Err(error.context("the registry cannot be written")),
                Ok(Ok(())) => Ok(()),
                Err(panic) => Err(anyhow::Error::new(panic).context("the master's core has failed")),
            },
            reason = exit_reason(&mut self.exit) => Err(anyhow::anyhow!(reason)),
        };
        self.core.abort();
        self.authentication.abort();
        self.server.stop().await;
        result
    }
}

/// The file of `--whitelist`; none if there is no such flag, or all agents may be offered.
fn whitelist_path(flags: &Flags) -> Option<PathBuf> {
    let text = flags.get("whitelist").filter(|text| !text.is_empty() && *text != "*")?;
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

/// Flags that would change what the cluster does, if only this master could do it: refused rather than ignored.
fn check_unsupported(flags: &Flags) -> Result<(), FlagError> {
    const WHY: &str = "is not supported by this version of tepui";
    for name in [
        "zk",
        "master_contender",
        "master_detector",
        "modules",
        "modules_dir",
        "hooks",
        "rate_limits",
        "firewall_rules",
    ] {
        if flags.get(name).is_some_and(|text| !text.is_empty()) {
            return Err(FlagError::Refused { name, why: WHY.to_owned() });
        }
    }
    Ok(())
}
