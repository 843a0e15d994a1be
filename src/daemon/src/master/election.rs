//! A master among others: it waits until it leads, and ends when it does not lead any more (docs/mesos/zookeeper.md).
//!
//! Who leads is found by the crate `detector`; what a master does that leads is no matter of this file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::Context;
use base::lock;
use detector::{Detector, Known, Leader, Lease, Url};
use protos::json::{Dialect, ToJson};
use protos::mesos::MasterInfo;
use wire::http::{BodyRule, Request, Response, StatusCode};
use wire::libprocess::{ConnectionId, Delivery, MessageSink};

use super::group_registry::Claim;
use super::handler::Handler;
use super::registry::RegistryStore;
use super::{Parts, Served};
use crate::flags::FlagError;
use crate::flags::master::StateFlags;
use crate::random;
use crate::zookeeper;

/// Reads `--zk` and what belongs to it; none if there is one master only.
///
/// # Errors
/// One of the flags is wrong, or `--quorum` is missing.
pub(super) fn group(flags: &StateFlags) -> Result<Option<(Url, Duration)>, FlagError> {
    const NAME: &str = "zk";
    let Some(given) = flags.zk.as_deref().map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let group = zookeeper::group(NAME, &zookeeper::text(NAME, given)?, flags.zk_session_timeout)?;
    if flags.registry == "replicated_log" && flags.quorum.is_none() {
        return Err(FlagError::Missing { name: "quorum", why: " with --zk and --registry=replicated_log" });
    }
    Ok(Some(group))
}

/// What a standby master knows about the leader.
#[derive(Debug, Default)]
pub(super) struct Standby {
    leader: Mutex<Place>,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
enum Place {
    /// Nobody leads, as far as is known.
    #[default]
    Unknown,
    /// Another one leads, and is found there.
    Elsewhere(String, u16),
    /// This one does, but has not read yet what it must remember. It is found there.
    Here(String, u16),
}

impl Standby {
    fn set(&self, place: Place) {
        *lock(&self.leader) = place;
    }

    /// The way to the leader with what was asked for, or without it.
    pub(super) fn redirect(&self, request: Option<&Request>) -> Response {
        match &*lock(&self.leader) {
            Place::Unknown => Response::text(StatusCode::SERVICE_UNAVAILABLE, "No leader elected"),
            Place::Here(host, port) => match request {
                Some(_) => Response::text(StatusCode::SERVICE_UNAVAILABLE, "Master has not finished recovery"),
                None => Response::redirect(host, *port, ""),
            },
            Place::Elsewhere(host, port) => {
                Response::redirect(host, *port, &request.map(full_path).unwrap_or_default())
            }
        }
    }

    /// Drops a message.
    pub(super) fn drop_message(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of messages that were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Path and query, with the process that the path may leave out.
fn full_path(request: &Request) -> String {
    let given = request.path_and_query();
    match given.starts_with("/master/") || request.path == "/master" {
        true => given,
        false => format!("/master{given}"),
    }
}

/// What answers at first, and what answers from the moment that this master leads.
pub(super) struct Switch {
    first: Arc<Handler>,
    leading: OnceLock<(Arc<Handler>, Arc<Lease>)>,
}

impl Switch {
    pub(super) fn new(first: Arc<Handler>) -> Switch {
        Switch { first, leading: OnceLock::new() }
    }

    /// `None` if this master has led and cannot be sure any more that it does: it ends, and answers nothing until then.
    /// For clients that equals a crash, which all can handle.
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
        // A master that is not sure to lead any more answers nothing; `handle` sees to that.
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
        self.now().map_or(Delivery::Ignored, |handler| handler.deliver(message))
    }
}

/// Contends, waits as `idle`, and leads when it is elected.
///
/// # Errors
/// Why the master must end: it has led and another one may lead by now, or the error of [`Served::run`].
pub(super) async fn contend(
    parts: Parts,
    group: (Url, Duration),
    idle: Served,
    switch: Arc<Switch>,
    standby: Arc<Standby>,
) -> anyhow::Result<()> {
    let seed = u64::from_le_bytes(random::bytes());
    tracing::info!("contending for the lead through ZooKeeper at {}", group.0.servers());
    let mut detector = Detector::contend(group.0.clone(), group.1, seed, node(&parts)?);
    let idle = tokio::spawn(idle.run());
    let _idle = Abort(idle.abort_handle());
    let member = elected(&mut detector, &standby, &parts.info).await?;
    tracing::info!("elected as the leading master");
    let host = parts.info.hostname.clone().unwrap_or_default();
    standby.set(Place::Here(host, u16::try_from(parts.info.port).unwrap_or_default()));
    let claim = Claim { url: group.0, session_timeout: group.1, member, owner: parts.pid.to_string() };
    let flags = parts.flags.clone();
    let opening = tokio::task::spawn_blocking(move || RegistryStore::open(&flags.state, Some(claim)));
    let registry = tokio::select! {
        opened = opening => opened.context("the registry's reader has failed")??,
        () = deposed(&mut detector) => anyhow::bail!(DEPOSED),
    };
    let served = parts.serve(registry, None)?;
    // It is set once, here.
    let _ = switch.leading.set((served.handler.clone(), detector.lease()));
    tokio::select! {
        ended = served.run() => ended,
        () = deposed(&mut detector) => anyhow::bail!(DEPOSED),
    }
}

const DEPOSED: &str = "this master has lost the lead, or cannot be sure of it any more";

/// The data of the candidate's node: MasterInfo with sorted keys.
fn node(parts: &Parts) -> anyhow::Result<String> {
    let info: serde_json::Value = serde_json::from_slice(&parts.info.json(Dialect::V0))?;
    Ok(info.to_string())
}

/// Returns when this master leads, with the name of its node.
///
/// # Errors
/// It is not let in, or the leader is in another region.
async fn elected(detector: &mut Detector, standby: &Standby, own: &MasterInfo) -> anyhow::Result<String> {
    let region = own.domain.as_ref().and_then(|domain| domain.fault_domain.as_ref()).map(|domain| &domain.region.name);
    loop {
        match detector.known() {
            Known::Leader(leader) if leader.is_own => return Ok(leader.member),
            Known::Leader(Leader { pid, region: Some(other), .. }) if region.is_some_and(|region| *region != other) => {
                anyhow::bail!(
                    "the leading master {pid} is in the region '{other}', and this one in '{}': masters of a group are in one region (--domain)",
                    region.map_or("", |region| region.as_str())
                );
            }
            Known::Leader(Leader { host, port, pid, .. }) => {
                tracing::info!("the leading master is {pid}");
                standby.set(Place::Elsewhere(host, port));
            }
            Known::Refused(why) => anyhow::bail!(why),
            Known::Nobody | Known::Nothing => standby.set(Place::Unknown),
        }
        detector.changed().await;
    }
}

/// Returns when this master does not lead any more, as far as is known.
async fn deposed(detector: &mut Detector) {
    while detector.known().leader().is_some_and(|leader| leader.is_own) {
        detector.changed().await;
    }
}

/// Ends a task with its owner.
struct Abort(tokio::task::AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
