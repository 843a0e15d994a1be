//! A master among others: it waits until it leads, and ends when it does not lead any more (wire facts zookeeper.md 3).
//!
//! Who leads is found by the crate `detector`; what a master does that leads is no matter of this file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::Context;
use detector::{Detector, Known, Leader, Url};
use protos::json::{Dialect, ToJson};
use wire::http::{Request, Response, StatusCode};
use wire::libprocess::{Delivery, MessageSink};

use super::handler::Handler;
use super::registry::RegistryStore;
use super::{Parts, Served};
use crate::flags::{FlagError, Flags};
use crate::random;
use crate::sync::lock;
use crate::zookeeper;

/// Reads `--zk` and what belongs to it; none if there is one master only.
///
/// # Errors
/// One of the flags is wrong, or `--quorum` is missing.
pub(super) fn group(flags: &Flags) -> Result<Option<(Url, Duration)>, FlagError> {
    const NAME: &str = "zk";
    let Some(given) = flags.get(NAME).map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let group = zookeeper::group(NAME, &zookeeper::text(NAME, given)?, flags)?;
    if flags.text("registry") == "replicated_log" {
        flags.required("quorum", " with --zk and --registry=replicated_log")?;
    }
    Ok(Some(group))
}

/// What a master that does not lead knows of who does.
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
    /// This one does, but has not read yet what it must remember.
    Here,
}

impl Standby {
    fn set(&self, place: Place) {
        *lock(&self.leader) = place;
    }

    /// The way to the leader with what was asked for, or without it.
    pub(super) fn redirect(&self, request: Option<&Request>) -> Response {
        match &*lock(&self.leader) {
            Place::Unknown => Response::text(StatusCode::SERVICE_UNAVAILABLE, "No leader elected"),
            Place::Here => Response::text(StatusCode::SERVICE_UNAVAILABLE, "Master has not finished recovery"),
            Place::Elsewhere(host, port) => {
                Response::redirect(host, *port, &request.map(full_path).unwrap_or_default())
            }
        }
    }

    /// Drops a message.
    pub(super) fn drop_message(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// How many messages were dropped.
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
    leading: OnceLock<Arc<Handler>>,
}

impl Switch {
    pub(super) fn new(first: Arc<Handler>) -> Switch {
        Switch { first, leading: OnceLock::new() }
    }

    fn now(&self) -> &Arc<Handler> {
        self.leading.get().unwrap_or(&self.first)
    }
}

impl wire::http::Handler for Switch {
    async fn handle(&self, request: Request) -> Response {
        let handler = self.now().clone();
        handler.handle(request).await
    }
}

impl MessageSink for Switch {
    fn require_peer_address_match(&self) -> bool {
        self.first.require_peer_address_match()
    }

    fn deliver(&self, message: wire::libprocess::Message) -> Delivery {
        self.now().deliver(message)
    }
}

/// Contends, waits as `idle`, and leads when it is this master's turn.
///
/// # Errors
/// Why the master must end: it has led and another one may by now, or what [`Served::run`] says.
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
    elected(&mut detector, &standby).await?;
    tracing::info!("elected as the leading master");
    standby.set(Place::Here);
    let (flags, owner) = (parts.common.clone(), parts.pid.to_string());
    let opening = tokio::task::spawn_blocking(move || RegistryStore::open(&flags.flags, Some((group, owner))));
    let registry = tokio::select! {
        opened = opening => opened.context("the registry's reader has failed")??,
        () = deposed(&mut detector) => anyhow::bail!(DEPOSED),
    };
    let served = parts.serve(registry, None)?;
    // It is set once, here.
    let _ = switch.leading.set(served.handler.clone());
    tokio::select! {
        ended = served.run() => ended,
        () = deposed(&mut detector) => anyhow::bail!(DEPOSED),
    }
}

const DEPOSED: &str = "this master has lost the lead, or cannot be sure of it any more";

/// What the candidate's node says: MasterInfo with sorted keys.
fn node(parts: &Parts) -> anyhow::Result<String> {
    let info: serde_json::Value = serde_json::from_slice(&parts.info.json(Dialect::V0))?;
    Ok(info.to_string())
}

/// Returns when this master leads.
///
/// # Errors
/// It is not let in.
async fn elected(detector: &mut Detector, standby: &Standby) -> anyhow::Result<()> {
    loop {
        match detector.known() {
            Known::Leader(leader) if leader.is_own => return Ok(()),
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
