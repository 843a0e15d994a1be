//! The beginning of a connection to a server with TLS: TLS or plain, by its first byte, and the handshake.
//!
//! While a handshake waits for its client the connection counts as waiting, as within the head of a request: it has a
//! time limit, and is closed to admit others. The bytes of a handshake are limited by the library.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connection::{self, linger};
use super::server::{Handler, Shared};
use crate::connections::{Slot, WaitsFor};
use crate::libprocess::MessageSink;
use crate::tls::{Offered, Tls, offered};
use crate::{Limits, Socket};

/// Text of the response to a plain client of a server that accepts TLS only.
const TEXT: &str = "This server takes TLS connections only: use https://";

/// Serves a connection, after its handshake if it uses TLS.
pub(super) async fn serve<H: Handler, S: MessageSink>(
    stream: TcpStream,
    peer: SocketAddr,
    mut slot: Slot,
    shared: Arc<Shared<H, S>>,
) {
    let Some(tls) = &shared.tls else {
        return connection::serve(Socket::Plain(stream), peer, slot, shared).await;
    };
    let (mut stopping, close) = (shared.stopping.clone(), slot.close());
    // Boxed, and dropped before the connection is served: most connections live long, and handshakes do not.
    let begun = Box::pin(begin(tls, stream, &mut slot, &shared.limits));
    let begun = tokio::select! {
        _ = stopping.changed() => return,
        () = close.notified() => return,
        begun = begun => begun,
    };
    match begun {
        Ok(Some(socket)) => {
            slot.wait(WaitsFor::FirstRequest, 0, None);
            connection::serve(socket, peer, slot, shared).await;
        }
        Ok(None) => tracing::debug!(%peer, "a connection without TLS was refused"),
        Err(error) => tracing::debug!(%peer, %error, "no TLS handshake"),
    }
}

/// Returns the connection once it can carry requests; `None` if it is plain and must not be, or has ended.
async fn begin(tls: &Tls, stream: TcpStream, slot: &mut Slot, limits: &Limits) -> io::Result<Option<Socket>> {
    match offered(&stream).await? {
        Offered::Tls => {
            slot.wait(WaitsFor::Head, 0, Some(limits.request_head));
            tls.accept(stream).await.map(Some)
        }
        Offered::Plain if tls.settings().support_downgrade => Ok(Some(Socket::Plain(stream))),
        Offered::Plain => {
            slot.wait(WaitsFor::Head, 0, Some(limits.request_head));
            let mut socket = Socket::Plain(stream);
            let date = crate::libprocess::date_now();
            let length = TEXT.len();
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nDate: {date}\r\nConnection: close\r\n\
                 Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{TEXT}"
            );
            socket.write_all(answer.as_bytes()).await?;
            linger(&mut socket).await;
            Ok(None)
        }
        Offered::Nothing => Ok(None),
    }
}
