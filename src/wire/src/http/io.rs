//! The socket as hyper sees it: bytes that were read ahead come first, and nothing goes out that no handler answered.
//!
//! hyper answers malformed requests with 400 and `Expect: 100-continue` with an interim response; Mesos does neither.
//! Both are recognised by being written while no answer of ours is under way, and are swallowed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What the parts of one connection tell each other.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// Breaks the connection off, also while its socket takes no bytes.
    pub(super) cut: Arc<Notify>,
    /// An answer was given and is not wholly sent.
    pub(super) answering: AtomicBool,
    /// The answer's body has been handed over.
    pub(super) body_done: AtomicBool,
    /// A request was refused before all of it was read: let the client read the answer before the socket closes.
    pub(super) linger: AtomicBool,
}

/// The socket of one connection.
pub(super) struct ConnectionIo {
    stream: TcpStream,
    read_ahead: Bytes,
    control: Arc<Control>,
}

impl ConnectionIo {
    pub(super) fn new(stream: TcpStream, read_ahead: Bytes, control: Arc<Control>) -> ConnectionIo {
        ConnectionIo { stream, read_ahead, control }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn answering(&self) -> bool {
        self.control.answering.load(Ordering::Relaxed)
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read_ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let length = self.read_ahead.len().min(buf.remaining());
        buf.put_slice(&self.read_ahead[..length]);
        self.read_ahead.advance(length);
        if self.read_ahead.is_empty() {
            // Gives the memory back.
            self.read_ahead = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if !self.answering() {
            return Poll::Ready(Ok(data.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.answering() {
            return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when its own buffer is empty, and a TCP socket keeps none.
        if self.control.body_done.load(Ordering::Relaxed) {
            self.control.answering.store(false, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
