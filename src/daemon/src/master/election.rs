//! The election of a master in a group: it waits until it leads, and ends when it no longer leads
//! (docs/mesos/zookeeper.md).
//!
//! The crates `detector` and `peers` find the leader. This file does not depend on what a leading master does.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use detector::etcd::{Resignation, Service};
use detector::{DetectionState, Detector, Leader, Lease, Url};
use protos::json::{Dialect, ToJson};
use protos::mesos::MasterInfo;
use wire::Limits;
use wire::http::{BodyRule, Request, Response};
use wire::libprocess::{ConnectionId, Delivery, MessageSink, Network};

use super::group_registry::{EtcdClaim, ZooKeeperClaim};
use super::handler::Handler;
use super::peers::{self, GroupFlags, Peers};
use super::registry::{self, RegistryStore};
use super::standby::{LeaderState, Standby};
use super::{MasterParts, RunningCore};
use crate::flags::FlagError;
use crate::flags::master::StateFlags;
use crate::{etcd, random, zookeeper};

/// The way in which the masters of a group elect their leader.
pub(super) enum Group {
    /// Through ZooKeeper, with the URL and the timeout of a session.
    ZooKeeper(Url, Duration),
    Peers(GroupFlags),
    /// Through etcd, with the duration of a lease.
    Etcd(Service, Duration),
}

/// Reads `--etcd`, `--zk` and `--peers` and the flags that depend on them; `None` if there is only one master.
///
/// # Errors
/// One of the flags is invalid, or `--quorum` is missing.
pub(super) fn group(flags: &StateFlags) -> Result<Option<Group>, FlagError> {
    if let Some((service, lease)) = etcd::service(flags)? {
        return Ok(Some(Group::Etcd(service, lease)));
    }
    if let Some(peers) = peers::flags(flags)? {
        return Ok(Some(Group::Peers(peers)));
    }
    const NAME: &str = "zk";
    let Some(given) = flags.zk.as_deref().map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let (url, session_timeout) = zookeeper::group(NAME, &zookeeper::text(NAME, given)?, flags.zk_session_timeout)?;
    if flags.registry == "replicated_log" && flags.quorum.is_none() {
        return Err(FlagError::Missing { name: "quorum", why: " with --zk and --registry=replicated_log" });
    }
    Ok(Some(Group::ZooKeeper(url, session_timeout)))
}

/// The election in which this master takes part.
pub(super) enum Election {
    ZooKeeper { detector: Detector, url: Url, session_timeout: Duration },
    Peers(Peers),
    Etcd { detector: Detector, service: Service, resignation: Resignation },
}

/// A handle that lets another master lead when this one ends.
pub(super) enum ResignHandle {
    Peers(Peers),
    Etcd(Resignation),
}

impl ResignHandle {
    /// Resigns the leadership, if this master has it.
    pub(super) async fn resign(&mut self) {
        match self {
            ResignHandle::Peers(peers) => peers.resign().await,
            ResignHandle::Etcd(resignation) => {
                if !resignation.resign().await {
                    tracing::warn!("the lease in etcd is not revoked: another master leads when it expires");
                }
            }
        }
    }
}

impl Election {
    /// Takes part in the election of a group, in the current runtime.
    ///
    /// # Errors
    /// The journal of a member cannot be opened, or the flags do not name this master.
    pub(super) fn enter(group: Group, parts: &MasterParts) -> anyhow::Result<Election> {
        let info = node(parts)?;
        Ok(match group {
            Group::ZooKeeper(url, session_timeout) => {
                let seed = u64::from_le_bytes(random::bytes());
                tracing::info!("contending for leadership through ZooKeeper at {}", url.servers());
                let detector = Detector::contend(url.clone(), session_timeout, seed, info);
                Election::ZooKeeper { detector, url, session_timeout }
            }
            Group::Etcd(service, lease) => {
                let seed = u64::from_le_bytes(random::bytes());
                tracing::info!("contending for leadership through etcd at {}", service.url);
                let (detector, resignation) = Detector::contend_in_etcd(service.clone(), lease, seed, info);
                Election::Etcd { detector, service, resignation }
            }
            Group::Peers(flags) => {
                let (connections, tls) = (parts.common.connections.clone(), parts.common.tls.clone());
                let network = Network::with_connections(Limits::default(), connections, tls, |_| ());
                let hostname = parts.info.hostname.as_deref().unwrap_or_default();
                let limit = parts.flags.state.registry_store_timeout;
                Election::Peers(Peers::start(&flags, (&parts.pid, hostname), info, network, limit)?)
            }
        })
    }

    /// Returns the handle of the member, in a group of peers.
    pub(super) fn peers(&self) -> Option<&Peers> {
        match self {
            Election::Peers(peers) => Some(peers),
            Election::ZooKeeper { .. } | Election::Etcd { .. } => None,
        }
    }

    /// Returns the handle that lets another master lead when this one ends. ZooKeeper needs none: the end of the
    /// session is enough.
    pub(super) fn successor(&self) -> Option<ResignHandle> {
        match self {
            Election::Peers(peers) => Some(ResignHandle::Peers(peers.clone())),
            Election::Etcd { resignation, .. } => Some(ResignHandle::Etcd(resignation.clone())),
            Election::ZooKeeper { .. } => None,
        }
    }

    fn known(&self) -> DetectionState {
        match self {
            Election::ZooKeeper { detector, .. } | Election::Etcd { detector, .. } => detector.known(),
            Election::Peers(peers) => peers.known(),
        }
    }

    async fn changed(&mut self) {
        match self {
            Election::ZooKeeper { detector, .. } | Election::Etcd { detector, .. } => detector.changed().await,
            Election::Peers(peers) => peers.changed().await,
        }
    }

    fn lease(&self) -> Arc<Lease> {
        match self {
            Election::ZooKeeper { detector, .. } | Election::Etcd { detector, .. } => detector.lease(),
            Election::Peers(peers) => peers.lease(),
        }
    }

    /// Returns the place of the registry, for the leader with this member.
    fn registry(&self, member: String, owner: String) -> registry::RegistryLocation {
        match self {
            Election::ZooKeeper { url, session_timeout, .. } => {
                let (url, session_timeout) = (url.clone(), *session_timeout);
                registry::RegistryLocation::ZooKeeper(ZooKeeperClaim { url, session_timeout, member, owner })
            }
            Election::Etcd { service, .. } => {
                registry::RegistryLocation::Etcd(EtcdClaim { service: service.clone(), member, owner })
            }
            Election::Peers(peers) => registry::RegistryLocation::Peers(peers.clone()),
        }
    }
}

/// Switches from the handler of a standby master to that of a leading one, from the moment that this master leads.
pub(super) struct Switch {
    first: Arc<Handler>,
    leading: OnceLock<(Arc<Handler>, Arc<Lease>)>,
    /// Receives messages of the other masters; `None` without a group of peers.
    peers: Option<Peers>,
}

impl Switch {
    pub(super) fn new(first: Arc<Handler>, peers: Option<Peers>) -> Switch {
        Switch { first, leading: OnceLock::new(), peers }
    }

    /// Returns the current handler. It is `None` if this master has led and its lease is over: it ends, and answers
    /// nothing until then. For clients that equals a crash, which all can handle.
    fn now(&self) -> Option<&Arc<Handler>> {
        match self.leading.get() {
            Some((_, lease)) if lease.is_over() => None,
            Some((handler, _)) => Some(handler),
            None => Some(&self.first),
        }
    }
}

impl wire::http::Handler for Switch {
    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        // A master whose lease is over answers nothing; `handle` does not return then.
        self.now().unwrap_or(&self.first).admit(request)
    }

    async fn handle(&self, request: Request) -> Response {
        match self.now().cloned() {
            Some(handler) => handler.handle(request).await,
            None => std::future::pending().await,
        }
    }
}

impl MessageSink for Switch {
    fn require_peer_address_match(&self) -> bool {
        self.first.require_peer_address_match()
    }

    fn closed(&self, connection: ConnectionId) {
        if let Some(handler) = self.now() {
            handler.closed(connection);
        }
    }

    fn deliver(&self, message: wire::libprocess::Message) -> Delivery {
        if let Some(peers) = self.peers.as_ref().filter(|_| message.to == peers::PROCESS) {
            return if peers.receive(&message.name, message.body) { Delivery::Accepted } else { Delivery::Ignored };
        }
        self.now().map_or(Delivery::Ignored, |handler| handler.deliver(message))
    }
}

/// Contends, serves as `idle` until this master is elected, and leads then.
///
/// # Errors
/// The reason why the master must end: it has led and another one may lead by now, or the error of
/// [`RunningCore::run`].
pub(super) async fn contend(
    parts: MasterParts,
    mut election: Election,
    idle: RunningCore,
    switch: Arc<Switch>,
    standby: Arc<Standby>,
) -> anyhow::Result<()> {
    let idle = tokio::spawn(idle.run());
    let _idle = Abort(idle.abort_handle());
    let member = elected(&mut election, &standby, &parts.info).await?;
    tracing::info!("elected as the leading master");
    let host = parts.info.hostname.clone().unwrap_or_default();
    let port = u16::try_from(parts.info.port).unwrap_or_default();
    standby.set(LeaderState::OwnRecovering(host.clone(), port));
    let location = election.registry(member, parts.pid.to_string());
    let flags = parts.flags.clone();
    let opening = tokio::task::spawn_blocking(move || RegistryStore::open(&flags.state, Some(location)));
    let registry = tokio::select! {
        opened = opening => opened.context("the registry's reader has failed")??,
        () = leadership_lost(&mut election) => anyhow::bail!(LEADERSHIP_LOST),
    };
    let running_core = parts.start_core(registry, None)?;
    // It is set only once, here, so there is no error.
    let _ = switch.leading.set((running_core.handler.clone(), election.lease()));
    standby.set(LeaderState::OwnReady(host, port));
    tokio::select! {
        ended = running_core.run() => ended,
        () = leadership_lost(&mut election) => {
            if let Election::Peers(peers) = &mut election {
                peers.await_successor().await;
            }
            match election.known() {
                DetectionState::Refused(why) => anyhow::bail!(why),
                _ => anyhow::bail!(LEADERSHIP_LOST),
            }
        }
    }
}

const LEADERSHIP_LOST: &str = "this master has lost leadership, or cannot confirm it";

/// Returns the data of the candidate's node: MasterInfo as JSON with sorted keys.
fn node(parts: &MasterParts) -> anyhow::Result<String> {
    let info: serde_json::Value = serde_json::from_slice(&parts.info.json(Dialect::V0))?;
    Ok(info.to_string())
}

/// Waits until this master leads. Returns the name of its member, such as its node in ZooKeeper.
///
/// # Errors
/// The group refuses this master, or the leader is in another region.
async fn elected(election: &mut Election, standby: &Standby, own: &MasterInfo) -> anyhow::Result<String> {
    let region = own.domain.as_ref().and_then(|domain| domain.fault_domain.as_ref()).map(|domain| &domain.region.name);
    loop {
        match election.known() {
            DetectionState::Leader(leader) if leader.is_own => return Ok(leader.member),
            DetectionState::Leader(Leader { pid, region: Some(other), .. })
                if region.is_some_and(|region| *region != other) =>
            {
                anyhow::bail!(
                    "the leading master {pid} is in the region '{other}', and this one in '{}': masters of a group are in one region (--domain)",
                    region.map_or("", |region| region.as_str())
                );
            }
            DetectionState::Leader(Leader { host, port, pid, .. }) => {
                tracing::info!("the leading master is {pid}");
                standby.set(LeaderState::Other(pid, host, port));
            }
            DetectionState::Refused(why) => anyhow::bail!(why),
            DetectionState::NoLeader | DetectionState::Unknown => standby.set(LeaderState::Unknown),
        }
        election.changed().await;
    }
}

/// Waits until this master no longer leads, as far as it knows.
async fn leadership_lost(election: &mut Election) {
    while election.known().leader().is_some_and(|leader| leader.is_own) {
        election.changed().await;
    }
}

/// A guard that aborts a task when it is dropped.
struct Abort(tokio::task::AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
