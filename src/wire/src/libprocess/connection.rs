//! Serves one outgoing connection: writes queued messages, reads and ignores the responses, and watches for the end.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::incoming::poll_read_shared;
use super::network::Inner;
use super::peer::{NextAction, Peer};
use crate::Socket;

/// Time that a closed temporary connection waits for the peer to read everything.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How the connection has ended.
enum End {
    /// The queue is empty and there are no links: the connection is closed orderly.
    Idle,
    /// The connection broke, was closed by the peer, or is not needed any more.
    Gone,
}

/// Opens the connection to a peer and serves it until it ends; links are notified then.
pub(super) async fn run(network: Arc<Inner>, peer: Arc<Peer>) {
    let Some(_slot) = network.connections.admit_outgoing(&peer.address()) else { return network.finish(&peer) };
    let connect = connect(&network, SocketAddr::V4(peer.address()));
    let stream = match tokio::time::timeout(network.limits.connect, connect).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(peer = %peer.address(), %error, "cannot connect");
            None
        }
        Err(_) => {
            tracing::debug!(peer = %peer.address(), "connecting takes too long");
            None
        }
    };
    let Some(mut stream) = stream else { return network.finish(&peer) };
    let mut writing = BytesMut::new();
    let end = poll_fn(|cx| poll(cx, &mut stream, &mut writing, &network, &peer)).await;
    match end {
        Ok(End::Idle) => Box::pin(close_orderly(stream)).await,
        Ok(End::Gone) => network.finish(&peer),
        Err(error) => {
            tracing::debug!(peer = %peer.address(), %error, "connection broken");
            network.finish(&peer);
        }
    }
}

async fn connect(network: &Inner, address: SocketAddr) -> io::Result<Socket> {
    if let Some(tls) = &network.tls {
        return tls.connect_to_peer(address).await;
    }
    let stream = TcpStream::connect(address).await?;
    let _ = stream.set_nodelay(true);
    Ok(Socket::Plain(stream))
}

fn poll(
    cx: &mut Context<'_>,
    stream: &mut Socket,
    writing: &mut BytesMut,
    network: &Inner,
    peer: &Arc<Peer>,
) -> Poll<io::Result<End>> {
    loop {
        // Bytes that TLS has buffered come before more of the queue.
        let is_flushed = Pin::new(&mut *stream).poll_flush(cx)?.is_ready();
        match peer.next_action(cx.waker(), !writing.is_empty() || !is_flushed) {
            NextAction::Write(bytes) => *writing = bytes,
            NextAction::Wait => {}
            NextAction::Idle if network.retire_if_idle(peer) => return Poll::Ready(Ok(End::Idle)),
            // A message was queued between the two checks.
            NextAction::Idle => continue,
            NextAction::Closed => return Poll::Ready(Ok(End::Gone)),
        }
        if writing.is_empty() {
            break;
        }
        match Pin::new(&mut *stream).poll_write(cx, writing)? {
            Poll::Ready(written) => writing.advance(written),
            Poll::Pending => break,
        }
        if writing.is_empty() {
            // Frees the memory: most connections are idle most of the time.
            *writing = BytesMut::new();
        }
    }
    while ready!(poll_read_shared(stream, cx, <[u8]>::len))? > 0 {}
    Poll::Ready(Ok(End::Gone))
}

/// Shuts the sending side down, and lets the peer read the rest. Closing at once would lose messages: unread responses
/// make the kernel reset the connection.
async fn close_orderly(mut stream: Socket) {
    let drain = async {
        stream.shutdown().await?;
        while poll_fn(|cx| poll_read_shared(&mut stream, cx, <[u8]>::len)).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(END_LIMIT, drain).await;
}
