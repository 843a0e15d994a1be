//! A received libprocess message, and the sink that accepts it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use base::Pid;
use bytes::Bytes;

use super::SenderToken;
use crate::http::percent_decode;

/// Number of an incoming connection, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// Returns the number of a new connection.
    pub(crate) fn next() -> ConnectionId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ConnectionId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Where a message really comes from, whatever sender it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Connection over which the message arrived.
    pub connection: ConnectionId,
    /// Address of the connection's other end.
    pub peer: SocketAddr,
    /// Whether the sender is libprocess, which sends to one address over one connection at a time. Its `User-Agent`
    /// tells.
    pub is_libprocess: bool,
    /// Token that the message carries.
    pub sender_token: Option<SenderToken>,
}

/// A libprocess message as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Id of the receiving process, decoded: `master`, `slave(1)`.
    pub to: String,
    /// Sender that the message names.
    pub from: Pid,
    /// Full protobuf name of the message.
    pub name: String,
    /// Serialized message, unchecked.
    pub body: Bytes,
    /// Where the message really comes from.
    pub origin: Origin,
}

/// How a sink has handled a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A process with that id exists and handles the message: 202. The connection is one of a peer, and is kept.
    Accepted,
    /// A process with that id exists but does not handle such a message: 202, as in libprocess.
    Ignored,
    /// There is no such process: 404.
    NoSuchProcess,
    /// The message comes from another process than it names: 400.
    Forged,
}

/// A receiver of messages, which get there in the order of their connection.
pub trait MessageSink: Send + Sync + 'static {
    /// Delivers a message. It must not block.
    fn deliver(&self, message: Message) -> Delivery;

    /// Returns whether more may be read now. A sink whose queue is full returns `Pending` to make senders wait, and
    /// wakes `cx` later. Messages that have been read already (up to 64 KiB per connection) are still delivered.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// Reports that a connection has closed; it may have carried messages.
    fn closed(&self, connection: ConnectionId) {
        let _ = connection;
    }

    /// Returns whether a sender that names another IP than its own is refused, as with
    /// `LIBPROCESS_REQUIRE_PEER_ADDRESS_IP_MATCH`.
    fn require_peer_address_match(&self) -> bool {
        false
    }
}

/// The sink of a server without processes, which accepts no messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMessages;

impl MessageSink for NoMessages {
    fn deliver(&self, _: Message) -> Delivery {
        Delivery::NoSuchProcess
    }
}

/// Reason why a message is refused; its text is the body of the response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such process: 404.
    #[error("404 Not Found.")]
    NoProcess,
    /// The sender names another IP than its own: 400.
    #[error("UPID IP address validation failed: Message from {from} was sent from IP {ip}")]
    AddressMismatch {
        /// Sender that the message names.
        from: Pid,
        /// IP address that the message comes from.
        ip: IpAddr,
    },
    /// The message comes from another process than it names: 400.
    #[error("The process {from} has registered over another connection")]
    Forged {
        /// Sender that the message names.
        from: Pid,
    },
    /// The message names no valid sender: 500.
    #[error("The sender of the message cannot be determined: neither header names a pid")]
    NoSender,
    /// The path cannot be decoded: 500.
    #[error("The path of the message cannot be decoded: expecting '/<process>/<message>'")]
    BadPath,
    /// The body is longer than the limit: 413; the connection closes.
    #[error("The request's body is longer than {limit} bytes")]
    TooLong {
        /// Limit of a body in bytes.
        limit: usize,
    },
    /// The bodies in progress are too large together: 503; the connection closes.
    #[error("The bodies of the requests in progress are too large together; try again later")]
    TooMany,
}

impl Message {
    /// Creates a message from the parts of its request: the raw path, `Libprocess-From`, `User-Agent`.
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

/// Splits a path into the decoded process id, and the message name as it is; a missing name is empty, which no process
/// handles.
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

/// Delivers a message to the sink after a check of its address.
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
        sender_token: None,
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
