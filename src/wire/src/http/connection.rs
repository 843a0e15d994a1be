//! Serves one connection, from accept to close: libprocess messages by a fast path, everything else through hyper.
//!
//! A connection of a libprocess peer carries messages only. Those are read here without hyper, which costs less memory
//! while idle and less time per message. The first request that is not a message passes the connection to hyper.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::io::{ConnectionIo, Control, Phase};
use super::refusal::Refusal;
use super::server::{Handler, Shared};
use super::{Response, service};
use crate::Socket;
use crate::connections::{Slot, WaitsFor};
use crate::libprocess::{ConnectionId, Incoming, MessageSink, Origin, Outcome};

/// Time, and number of bytes, for which a rejected client may continue to send.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 16 << 20;
/// Time for which a handler may continue after its client has disconnected. Most have done their work by then; one that
/// still waits, for example for a container's end, has no receiver.
const ABANDONED: Duration = Duration::from_secs(10);

/// Serves a connection until it closes or the server stops.
pub(super) async fn serve<H: Handler, S: MessageSink>(
    mut stream: Socket,
    peer: SocketAddr,
    mut slot: Slot,
    shared: Arc<Shared<H, S>>,
) {
    let mut stopping = shared.stopping.clone();
    let close = slot.close();
    let origin = Origin { connection: ConnectionId::next(), peer, is_libprocess: false, sender_token: None };
    let _closing = Closing { sink: shared.sink.clone(), connection: origin.connection };
    let mut incoming =
        Incoming::new(origin, shared.bodies.budget.share(peer.ip()), shared.limits.head, shared.limits.body);
    let outcome = tokio::select! {
        _ = stopping.changed() => return,
        () = close.notified() => return,
        outcome = incoming.run(&mut stream, &*shared.sink, &mut slot, &shared.limits) => outcome,
    };
    drop(incoming);
    match outcome {
        Ok(Outcome::Closed) => {}
        Ok(Outcome::Refused) => linger(&mut stream).await,
        // Boxed, so that the many connections that carry messages only do not pay for its size.
        Ok(Outcome::Http(read_ahead)) => Box::pin(serve_http(stream, origin, slot, read_ahead, shared)).await,
        Err(error) => tracing::debug!(%peer, %error, "connection broken"),
    }
}

/// Reports the end of a connection to the sink when it is dropped.
struct Closing<S: MessageSink> {
    sink: Arc<S>,
    connection: ConnectionId,
}

impl<S: MessageSink> Drop for Closing<S> {
    fn drop(&mut self) {
        self.sink.closed(self.connection);
    }
}

async fn serve_http<H: Handler, S: MessageSink>(
    stream: Socket,
    origin: Origin,
    mut slot: Slot,
    read_ahead: Bytes,
    shared: Arc<Shared<H, S>>,
) {
    let peer = origin.peer;
    let control = Arc::new(Control::new(stream, read_ahead, slot.close()));
    let io = TokioIo::new(ConnectionIo::new(control.clone()));
    let mut stopping = shared.stopping.clone();
    let limits = shared.limits.clone();
    let service = service_fn(|request| {
        let (shared, control) = (shared.clone(), control.clone());
        Box::pin(async move { service::answer(request, origin, &shared, &control).await })
    });
    let connection = http1::Builder::new()
        .title_case_headers(true)
        .max_buf_size(limits.head.max(8 << 10))
        // A request is handled even if its client closes right after it. hyper would drop the request, so the client's
        // end is watched here.
        .half_close(true)
        .serve_connection(io, service);
    let mut connection = Box::pin(connection);
    let (mut stopped, mut client_gone, mut written) = (false, false, 0);
    let mut check = tokio::time::interval(limits.stalled);
    let result = loop {
        tokio::select! {
            // The order matters: hyper's reading comes before watching.
            biased;
            result = poll_fn(|cx| {
                let polled = connection.as_mut().get_mut().poll_without_shutdown(cx);
                let flushed = control.poll_gathered(cx);
                control.report(&mut slot, &limits, flushed.is_ready());
                match flushed {
                    Poll::Ready(Err(_)) => Poll::Ready(None),
                    _ => polled.map(Some),
                }
            }) => match result {
                Some(result) => break result,
                None => return,
            },
            // A stream has no end to wait for.
            () = poll_fn(|_| match stopped && control.phase() == Phase::Streaming {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }) => return,
            () = poll_fn(|cx| control.poll_end(cx, client_gone)) => match control.phase() {
                Phase::Streaming => return,
                _ => client_gone = true,
            },
            () = tokio::time::sleep(ABANDONED), if client_gone => {
                if matches!(control.phase(), Phase::Handling | Phase::Refusing) {
                    return;
                }
            }
            _ = check.tick() => {
                if control.has_unsent_response() && control.written() == written {
                    tracing::warn!(%peer, "a client does not read its response; connection closed");
                    return;
                }
                written = control.written();
            }
            () = control.cut.notified() => match control.is_under_way() {
                // A request has arrived since the connection was chosen to be closed.
                true => connection.as_mut().graceful_shutdown(),
                false => return,
            },
            _ = stopping.changed(), if !stopped => {
                stopped = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    // Frees the buffers while a rejected client continues to send.
    drop(connection);
    let last = poll_fn(|cx| control.poll_gathered(cx));
    if !matches!(tokio::time::timeout(limits.stalled, last).await, Ok(Ok(()))) {
        return;
    }
    let Some(mut stream) = control.take_stream() else { return };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ends");
        let unparsed = || {
            let answer = error.is_parse_too_large().then(|| head_too_large(limits.head));
            Refusal { delay: shared.connections.refuse_request(peer.ip()), answer }
        };
        let refusal = control.take_refusal().or_else(|| error.is_parse().then(unparsed));
        if let Some(refusal) = refusal {
            slot.wait(WaitsFor::Refusal, 0, None);
            tokio::select! {
                answered = refusal.send(&mut stream, limits.stalled) => if answered { linger(&mut stream).await },
                () = control.cut.notified() => {}
                _ = stopping.changed(), if !stopped => {}
            }
            return;
        }
    }
    if control.linger.load(Ordering::Relaxed) {
        linger(&mut stream).await;
    }
}

/// Returns the response to a request whose head exceeds the limit. It states the limit, which hyper's own response does
/// not.
fn head_too_large(limit: usize) -> Response {
    let text = format!("The request line and headers are longer than {limit} bytes");
    Response::text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text)
}

/// Reads on for a moment, so that a client that is still sending can read its response: closing a socket with unread
/// bytes resets the connection.
pub(super) async fn linger(stream: &mut Socket) {
    let drain = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(LINGER, drain).await;
}
