//! A received message, and the sink that takes it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use base::Pid;
use bytes::Bytes;

use super::Session;
use crate::http::percent_decode;

/// Number of an incoming connection, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// The number of a new connection.
    pub(crate) fn next() -> ConnectionId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ConnectionId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Where a message really came from, whatever sender it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The connection.
    pub connection: ConnectionId,
    /// The address of its other end.
    pub peer: SocketAddr,
    /// The sender is a libprocess, which sends to one address over one connection at a time: its `User-Agent` says so.
    pub is_libprocess: bool,
    /// The token that the message carries.
    pub session: Option<Session>,
}

/// A libprocess message as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The id of the process it is for, decoded: `master`, `slave(1)`.
    pub to: String,
    /// The sender that the message names.
    pub from: Pid,
    /// The message's full protobuf name.
    pub name: String,
    /// The serialised message, unchecked.
    pub body: Bytes,
    /// Where it really came from.
    pub origin: Origin,
}

/// What a sink did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A process with that id exists and takes the message: 202. The connection is one of a peer, and is kept.
    Accepted,
    /// A process with that id exists and takes no such message: 202, as from libprocess.
    Ignored,
    /// There is no such process: 404.
    NoSuchProcess,
    /// The message comes from another process than it names: 400.
    Forged,
}

/// Where received messages go, in the order of their connection.
pub trait MessageSink: Send + Sync + 'static {
    /// Takes a message. It must not block.
    fn deliver(&self, message: Message) -> Delivery;

    /// Whether more may be read now: a sink whose queue is full holds senders back with it, and wakes `cx` later. What
    /// has been read already (up to 64 KiB of messages a connection) is still delivered.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// A connection has closed; it may have carried messages.
    fn closed(&self, connection: ConnectionId) {
        let _ = connection;
    }

    /// Whether a sender that names another IP than its own is refused, as with
    /// `LIBPROCESS_REQUIRE_PEER_ADDRESS_IP_MATCH`.
    fn require_peer_address_match(&self) -> bool {
        false
    }
}

/// The sink of a server that has no processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMessages;

impl MessageSink for NoMessages {
    fn deliver(&self, _: Message) -> Delivery {
        Delivery::NoSuchProcess
    }
}

/// Why a message was not taken; the text is the answer's body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 404.
    #[error("404 Not Found.")]
    NoProcess,
    /// 400.
    #[error("UPID IP address validation failed: Message from {from} was sent from IP {ip}")]
    AddressMismatch {
        /// The sender that was named.
        from: Pid,
        /// Where the message came from.
        ip: IpAddr,
    },
    /// 400.
    #[error("The process {from} has registered over another connection")]
    Forged {
        /// The sender that was named.
        from: Pid,
    },
    /// 500.
    #[error("The sender of the message cannot be determined: neither header names a pid")]
    NoSender,
    /// 500.
    #[error("The path of the message cannot be decoded: expecting '/<process>/<message>'")]
    BadPath,
    /// 413; the connection closes.
    #[error("The request's body is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// 503; the connection closes.
    #[error("The bodies of the requests in progress are too large together; try again later")]
    TooMany,
}

impl Message {
    /// A message out of the parts of its request: the raw path, `Libprocess-From`, `User-Agent`.
    ///
    /// # Errors
    /// When no sender is named, or the path cannot be decoded.
    pub fn from_request(
        path: &str,
        from: Option<&str>,
        agent: Option<&str>,
        body: Bytes,
        origin: Origin,
    ) -> Result<Message, Refusal> {
        let (to, name) = target(path)?;
        let from = sender(from, agent)?;
        Ok(Message { to, from, name, body, origin })
    }
}

/// The decoded process id, and the message name as it is; a missing name is empty, which no process knows.
fn target(path: &str) -> Result<(String, String), Refusal> {
    let path = path.strip_prefix('/').ok_or(Refusal::BadPath)?;
    let (to, name) = path.split_once('/').unwrap_or((path, ""));
    let to = percent_decode(to).map_err(|_| Refusal::BadPath)?;
    Ok((to, name.to_owned()))
}

fn sender(from: Option<&str>, agent: Option<&str>) -> Result<Pid, Refusal> {
    let text = match from {
        Some(from) => from,
        None => agent.and_then(|agent| agent.strip_prefix("libprocess/")).ok_or(Refusal::NoSender)?,
    };
    match text.trim().parse::<Pid>() {
        Ok(pid) if !pid.is_empty() => Ok(pid),
        _ => Err(Refusal::NoSender),
    }
}

/// Hands a message to the sink after the check of its address.
pub(crate) fn deliver<S: MessageSink + ?Sized>(message: Message, sink: &S) -> Result<Delivery, Refusal> {
    if sink.require_peer_address_match() {
        let ip = message.origin.peer.ip().to_canonical();
        if IpAddr::V4(*message.from.address().ip()) != ip {
            return Err(Refusal::AddressMismatch { from: message.from, ip });
        }
    }
    let from = message.from.clone();
    match sink.deliver(message) {
        Delivery::NoSuchProcess => Err(Refusal::NoProcess),
        Delivery::Forged => Err(Refusal::Forged { from }),
        delivery => Ok(delivery),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Origin = Origin {
        connection: ConnectionId(1),
        peer: SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1),
        is_libprocess: true,
        session: None,
    };

    fn read(path: &str, from: Option<&str>, agent: Option<&str>) -> Result<(String, String, String), Refusal> {
        let message = Message::from_request(path, from, agent, Bytes::new(), ORIGIN)?;
        Ok((message.to, message.name, message.from.to_string()))
    }

    #[test]
    fn parts() {
        let (to, name, from) =
            read("/slave%281%29/a.b%20c/d", Some("x@1.2.3.4:5"), Some("libprocess/y@1.1.1.1:1")).unwrap();
        assert_eq!((to.as_str(), name.as_str(), from.as_str()), ("slave(1)", "a.b%20c/d", "x@1.2.3.4:5"));
        let (_, _, from) = read("/m/n", None, Some("libprocess/y@1.1.1.1:1")).unwrap();
        assert_eq!(from, "y@1.1.1.1:1");
        let (to, name, _) = read("/master", Some("x@1.2.3.4:5"), None).unwrap();
        assert_eq!((to.as_str(), name.as_str()), ("master", ""));
    }

    #[test]
    fn refused() {
        assert_eq!(read("/m/n", Some("nobody"), Some("libprocess/y@1.1.1.1:1")), Err(Refusal::NoSender));
        assert_eq!(read("/m/n", Some("@0.0.0.0:0"), None), Err(Refusal::NoSender));
        assert_eq!(read("/m/n", None, Some("curl")), Err(Refusal::NoSender));
        assert_eq!(read("/m/n", None, None), Err(Refusal::NoSender));
        assert_eq!(read("master/n", Some("x@1.2.3.4:5"), None), Err(Refusal::BadPath));
        assert_eq!(read("/%zz/n", Some("x@1.2.3.4:5"), None), Err(Refusal::BadPath));
    }
}
