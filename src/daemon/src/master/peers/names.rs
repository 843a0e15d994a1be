//! Sends messages to members, whose addresses may have host names.
//!
//! A thread of its own resolves names: that may take seconds, and a member that waits loses its lease.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use base::{Pid, Time, lock};
use wire::libprocess::Network;

use super::{MESSAGE, PROCESS};
use crate::clock::Clock;
use crate::host;

/// How long a resolved name is valid, and how long an unresolved one is not requested again.
const AGES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(2));

type Known = Arc<Mutex<BTreeMap<String, (Option<SocketAddrV4>, Time)>>>;

/// The sender of messages to other members.
pub(super) struct Outgoing {
    network: Network,
    own: Pid,
    known: Known,
    clock: Clock,
    wanted: mpsc::Sender<String>,
}

impl Outgoing {
    /// Creates a sender over `network`; `own` is the sender's pid in messages.
    pub(super) fn new(network: Network, own: Pid) -> Outgoing {
        let known = Known::default();
        let (wanted, names) = mpsc::channel();
        let resolved = known.clone();
        let clock = Clock::start();
        std::thread::spawn(move || resolve(&names, &resolved, clock));
        Outgoing { network, own, known, clock, wanted }
    }

    /// Sends a message. It is dropped while the receiver's name is not resolved.
    pub(super) fn send(&self, to: &str, bytes: &[u8]) {
        let address = to.parse().ok().or_else(|| self.resolved(to));
        if let Some(address) = address {
            self.network.send(&self.own, &Pid::new(PROCESS, address), MESSAGE, bytes);
        }
    }

    fn resolved(&self, to: &str) -> Option<SocketAddrV4> {
        let now = self.clock.now();
        let mut known = lock(&self.known);
        match known.get(to) {
            Some((address, until)) if now < *until => *address,
            old => {
                let address = old.and_then(|(address, _)| *address);
                // The former address is used until the name is resolved again.
                known.insert(to.to_owned(), (address, now + AGES.1));
                drop(known);
                let _ = self.wanted.send(to.to_owned());
                address
            }
        }
    }
}

/// Resolves names until there are no more callers.
fn resolve(names: &mpsc::Receiver<String>, known: &Known, clock: Clock) {
    while let Ok(name) = names.recv() {
        let Some((host, port)) = name.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) else {
            continue;
        };
        match host::resolve(host) {
            Some(ip) => {
                lock(known).insert(name.clone(), (Some(SocketAddrV4::new(ip, port)), clock.now() + AGES.0));
            }
            None => tracing::warn!("the host name of the peer {name} cannot be resolved"),
        }
    }
}
