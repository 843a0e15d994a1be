//! The sending side of libprocess: one connection for each peer address, persistent while there are links to it.

use std::fmt;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Pid;
use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use super::peer::{Closed, Peer};
use super::{SenderToken, connection};
use crate::sync::lock;
use crate::tls::Tls;
use crate::{Connections, Limits};

/// A receiver of exited events: the pids of linked peers whose connections have ended.
pub trait ExitedSink: Send + Sync + 'static {
    /// Reports that the connection to the address of a linked pid failed to open or has closed. The link is removed. It
    /// must not block.
    fn exited(&self, pid: Pid);
}

impl<F: Fn(Pid) + Send + Sync + 'static> ExitedSink for F {
    fn exited(&self, pid: Pid) {
        self(pid);
    }
}

/// A handle that sends messages and keeps links. Cheap to clone; all clones share the connections.
///
/// Messages to one address keep their order. If connecting or writing fails, queued messages are dropped silently, as
/// in libprocess. The connection to a peer that does not read is closed when more than [`Limits::peer`] bytes wait for
/// it.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Shared>,
}

/// State that the clones of a network share, but its connections do not: when the last clone is dropped the connections
/// close.
struct Shared {
    inner: Arc<Inner>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inner.close();
    }
}

pub(super) struct Inner {
    peers: Mutex<FxHashMap<SocketAddrV4, Arc<Peer>>>,
    /// Tokens that messages to an address carry.
    sender_tokens: Mutex<FxHashMap<SocketAddrV4, SenderToken>>,
    exited: Arc<dyn ExitedSink>,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    /// TLS configuration of connections; `None` without TLS.
    pub(super) tls: Option<Tls>,
    runtime: Handle,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("connections", &self.connections()).finish_non_exhaustive()
    }
}

impl Network {
    /// Creates a network whose connections run in the current tokio runtime; its methods may be called from any thread.
    pub fn new(limits: Limits, exited: impl ExitedSink) -> Network {
        let connections = Connections::new(limits.connections, "raise its limit of connections");
        Network::with_connections(limits, connections, None, exited)
    }

    /// Creates a network whose connections count together with others of this process. Where no more may be opened,
    /// connecting fails.
    ///
    /// With `tls` they use TLS. With [`support_downgrade`](crate::tls::Settings::support_downgrade), a peer without TLS
    /// gets a plain connection.
    pub fn with_connections(
        limits: Limits,
        connections: Connections,
        tls: Option<Tls>,
        exited: impl ExitedSink,
    ) -> Network {
        let (exited, runtime) = (Arc::new(exited), Handle::current());
        let (peers, sender_tokens) = Default::default();
        let inner = Inner { peers, sender_tokens, exited, limits, connections, tls, runtime };
        Network { shared: Arc::new(Shared { inner: Arc::new(inner) }) }
    }

    /// Sets the token that messages to an address carry from now on; `None` removes it.
    pub fn set_sender_token(&self, address: SocketAddrV4, sender_token: Option<SenderToken>) {
        match sender_token {
            Some(sender_token) => lock(&self.shared.inner.sender_tokens).insert(address, sender_token),
            None => lock(&self.shared.inner.sender_tokens).remove(&address),
        };
        // A peer that was created before the change is in the table by now.
        if let Some(peer) = lock(&self.shared.inner.peers).get(&address) {
            peer.set_sender_token(sender_token);
        }
    }

    /// Queues a message and returns at once. A message to the empty pid is dropped.
    pub fn send(&self, from: &Pid, to: &Pid, name: &str, body: &[u8]) {
        if to.is_empty() {
            return;
        }
        self.with_peer(to.address(), |peer| peer.push(from, to.id(), name, body, self.shared.inner.limits.peer));
    }

    /// Links to a pid: one persistent connection to its address, whose end is reported to the [`ExitedSink`].
    ///
    /// Linking again while the link lives does nothing.
    pub fn link(&self, pid: &Pid) {
        if !pid.is_empty() {
            self.with_peer(pid.address(), |peer| peer.link(pid));
        }
    }

    /// Links to a pid over a new connection, which replaces the current one. Links of that address move over, without
    /// an exited event.
    pub fn relink(&self, pid: &Pid) {
        if pid.is_empty() {
            return;
        }
        let replacement = self.shared.inner.new_peer(pid.address());
        let old = lock(&self.shared.inner.peers).insert(pid.address(), replacement.clone());
        if let Some(old) = old {
            replacement.take_over(&old);
        }
        // The link precedes the start of the task, so that the connection is never without a link.
        let _ = replacement.link(pid);
        self.start(replacement);
    }

    /// Removes a link. The connection closes once its queue is empty and it has no other link; no event follows.
    pub fn unlink(&self, pid: &Pid) {
        let peer = lock(&self.shared.inner.peers).get(&pid.address()).cloned();
        if let Some(peer) = peer {
            peer.unlink(pid);
        }
    }

    /// Returns the number of connections that are open or being opened.
    pub fn connections(&self) -> usize {
        lock(&self.shared.inner.peers).len()
    }

    /// Waits until all queued messages are passed to the system, or dropped with their connection. Returns `false` if
    /// that takes longer than `within`. For the last message before a process ends.
    pub async fn flush(&self, within: Duration) -> bool {
        let flushed = async {
            while lock(&self.shared.inner.peers).values().any(|peer| peer.is_busy()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(within, flushed).await.is_ok()
    }

    /// Closes every connection, as dropping the last clone does. Queued messages are lost; there are no exited events.
    pub fn close(&self) {
        self.shared.inner.close();
    }

    /// Applies an action to the peer at an address. A peer that is closing at this moment is replaced by a new one.
    fn with_peer(&self, address: SocketAddrV4, mut action: impl FnMut(&Peer) -> Result<(), Closed>) {
        loop {
            let mut peers = lock(&self.shared.inner.peers);
            let (peer, new) = match peers.get(&address) {
                Some(peer) if !peer.is_closed() => (peer.clone(), false),
                _ => {
                    let peer = self.shared.inner.new_peer(address);
                    peers.insert(address, peer.clone());
                    (peer, true)
                }
            };
            drop(peers);
            let done = action(&peer);
            if new {
                self.start(peer);
            }
            if done.is_ok() {
                return;
            }
        }
    }

    fn start(&self, peer: Arc<Peer>) {
        self.shared.inner.runtime.spawn(connection::run(self.shared.inner.clone(), peer));
    }
}

impl Inner {
    fn new_peer(&self, address: SocketAddrV4) -> Arc<Peer> {
        let sender_token = lock(&self.sender_tokens).get(&address).copied();
        Arc::new(Peer::new(address, sender_token))
    }

    fn close(&self) {
        let peers: Vec<_> = lock(&self.peers).drain().collect();
        for (_, peer) in peers {
            peer.abandon();
        }
    }

    /// Removes an unlinked peer with an empty queue, so that nothing can be queued to it any more. Returns whether it
    /// did.
    pub(super) fn retire_if_idle(&self, peer: &Arc<Peer>) -> bool {
        let mut peers = lock(&self.peers);
        let retired = peer.close_if_idle();
        if retired && peers.get(&peer.address()).is_some_and(|current| Arc::ptr_eq(current, peer)) {
            peers.remove(&peer.address());
        }
        retired
    }

    /// Removes a peer whose connection has ended, and reports its links as exited.
    pub(super) fn finish(&self, peer: &Arc<Peer>) {
        let mut peers = lock(&self.peers);
        if peers.get(&peer.address()).is_some_and(|current| Arc::ptr_eq(current, peer)) {
            peers.remove(&peer.address());
        }
        drop(peers);
        for pid in peer.close() {
            self.exited.exited(pid);
        }
    }
}
