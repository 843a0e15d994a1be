//! The socket as hyper sees it: bytes that were read ahead come first, and nothing goes out that no handler answered.
//!
//! hyper answers malformed requests with 400 and `Expect: 100-continue` with an interim response; Mesos does neither.
//! Both are written before or without an answer of ours, are recognised by that, and are swallowed.

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
    /// Bytes of the present answer have been written.
    begun: bool,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl ConnectionIo {
    pub(super) fn new(stream: TcpStream, read_ahead: Bytes, control: Arc<Control>) -> ConnectionIo {
        ConnectionIo { stream, read_ahead, control, begun: false }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// How many of the bytes that hyper wants to write are none of ours. `length` is that of all, `first` begins them.
    fn unasked(&mut self, first: &[u8], length: usize) -> Option<usize> {
        if !self.control.answering.load(Ordering::Relaxed) {
            return Some(length);
        }
        // An interim response that hyper has not written on its own goes out together with the answer.
        if !self.begun && first.starts_with(CONTINUE) {
            return Some(CONTINUE.len());
        }
        self.begun = true;
        None
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
        if let Some(swallowed) = self.unasked(data, data.len()) {
            return Poll::Ready(Ok(swallowed));
        }
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.first().map_or(&[][..], |part| part);
        if let Some(swallowed) = self.unasked(first, parts.iter().map(|part| part.len()).sum()) {
            return Poll::Ready(Ok(swallowed));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when its own buffer is empty, and a TCP socket keeps none.
        if self.control.body_done.load(Ordering::Relaxed) {
            self.control.answering.store(false, Ordering::Relaxed);
            self.begun = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
