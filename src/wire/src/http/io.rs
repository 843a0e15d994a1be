//! The socket as hyper uses it. Bytes that were read ahead come first, only responses of handlers are written, and the
//! client's end is noticed while hyper does not read.
//!
//! A client that does not wait for its responses gets them together: short ones are gathered here until hyper has
//! nothing more to do.
//!
//! hyper answers malformed requests with 400 and `Expect: 100-continue` with an interim response; Mesos does neither.
//! hyper writes both before or without a response of a handler, by which they are recognized and dropped.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::refusal::Refusal;
use crate::connections::{Slot, WaitsFor};
use crate::libprocess::poll_read_shared;
use crate::sync::lock;
use crate::{Limits, Socket};

/// Phase of a connection's current request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// There is no request, or its head is being read.
    Idle,
    /// A handler processes the request.
    Handling,
    /// The response is being sent.
    Answering,
    /// The response is a stream.
    Streaming,
    /// The request is refused, and its response is delayed.
    Refusing,
}

/// Maximum number of bytes that are read ahead while a request is handled: later requests of a client that does not
/// wait.
const READ_AHEAD: usize = 64 << 10;
/// Maximum number of bytes of short responses that are gathered before they are written.
const GATHERED: usize = 16 << 10;

/// State that the parts of one connection share. They run in one task.
#[derive(Debug)]
pub(super) struct Control {
    /// Notification that closes an idle connection, and cuts off a streaming one, also while its socket accepts no
    /// bytes.
    pub(super) cut: Arc<Notify>,
    phase: AtomicU8,
    /// Whether the response's body has been passed to hyper.
    pub(super) body_done: AtomicBool,
    /// Whether a request was refused before all of it was read. The client must then read the response before the
    /// socket closes.
    pub(super) linger: AtomicBool,
    /// Whether the connection is never closed for being idle.
    pub(super) never_close_idle: AtomicBool,
    /// Refusal that ends the connection instead of a response by hyper.
    refusal: Mutex<Option<Refusal>>,
    /// Whether a request's body is being read that its handler needs as a whole.
    pub(super) needs_body: AtomicBool,
    /// Whether a part of the next request has been read.
    head_begun: AtomicBool,
    /// Number of bytes that hyper has read.
    read: AtomicU64,
    /// Number of bytes written.
    written: AtomicU64,
    socket: Mutex<Buffered>,
}

/// The socket, and the bytes between it and hyper.
#[derive(Debug)]
struct Buffered {
    /// The socket; `None` once it was taken out.
    stream: Option<Socket>,
    read_ahead: BytesMut,
    /// Responses that hyper has written, but the socket has not received yet.
    gathered: BytesMut,
    /// Whether the client has shut down its sending side.
    ended: bool,
    /// Whether TLS has bytes that the socket has not accepted yet.
    unflushed: bool,
}

impl Control {
    pub(super) fn new(stream: Socket, read_ahead: Bytes, cut: Arc<Notify>) -> Control {
        let socket = Buffered {
            stream: Some(stream),
            read_ahead: BytesMut::from(read_ahead),
            gathered: BytesMut::new(),
            ended: false,
            unflushed: false,
        };
        Control {
            cut,
            phase: AtomicU8::new(Phase::Idle as u8),
            body_done: AtomicBool::new(false),
            linger: AtomicBool::new(false),
            never_close_idle: AtomicBool::new(false),
            refusal: Mutex::new(None),
            needs_body: AtomicBool::new(false),
            head_begun: AtomicBool::new(false),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            socket: Mutex::new(socket),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            1 => Phase::Handling,
            2 => Phase::Answering,
            3 => Phase::Streaming,
            4 => Phase::Refusing,
            _ => Phase::Idle,
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.head_begun.store(false, Ordering::Relaxed);
    }

    /// Returns whether a request has arrived that needs a response other than a stream.
    pub(super) fn is_under_way(&self) -> bool {
        match self.phase() {
            Phase::Handling => !self.needs_body.load(Ordering::Relaxed),
            Phase::Answering => true,
            Phase::Idle | Phase::Streaming | Phase::Refusing => false,
        }
    }

    /// Records in the slot what the connection waits for; `is_flushed` if no response is left to write.
    pub(super) fn report(&self, slot: &mut Slot, limits: &Limits, is_flushed: bool) {
        if self.never_close_idle.load(Ordering::Relaxed) {
            slot.never_close_idle();
        }
        let read = self.read.load(Ordering::Relaxed);
        match self.phase() {
            Phase::Idle if !is_flushed => slot.stop_waiting(),
            Phase::Idle if self.head_begun.load(Ordering::Relaxed) => {
                slot.wait(WaitsFor::Head, read, Some(limits.request_head));
            }
            Phase::Idle => slot.wait(WaitsFor::NextRequest, read, Some(limits.keep_alive)),
            Phase::Handling if self.needs_body.load(Ordering::Relaxed) => slot.wait_for_body(read, limits),
            Phase::Refusing => slot.wait(WaitsFor::Refusal, read, None),
            Phase::Handling | Phase::Answering | Phase::Streaming => slot.stop_waiting(),
        }
    }

    /// Sets the refusal that ends the connection.
    pub(super) fn put_refusal(&self, refusal: Refusal) {
        *lock(&self.refusal) = Some(refusal);
    }

    /// Takes the refusal that ends the connection, if its last request was refused.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        lock(&self.refusal).take()
    }

    fn count_read(&self, length: usize) {
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        if length > 0 && self.phase() == Phase::Idle {
            self.head_begun.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of bytes that the socket has accepted.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns whether the client has not received all of a response yet.
    pub(super) fn has_unsent_response(&self) -> bool {
        let socket = lock(&self.socket);
        self.phase() == Phase::Answering || !socket.gathered.is_empty() || socket.unflushed
    }

    /// Writes the gathered responses, and bytes of earlier writes that TLS has buffered.
    pub(super) fn poll_gathered(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Buffered { stream, gathered, unflushed, .. } = &mut *lock(&self.socket);
        while !gathered.is_empty() {
            let Some(stream) = stream.as_mut() else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
            match ready!(Pin::new(stream).poll_write(cx, gathered))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => {
                    gathered.advance(length);
                    self.written.fetch_add(length as u64, Ordering::Relaxed);
                }
            }
        }
        // Frees the memory: most connections are idle most of the time.
        *gathered = BytesMut::new();
        let Some(stream) = stream else { return Poll::Ready(Ok(())) };
        let flushed = Pin::new(stream).poll_flush(cx);
        *unflushed = flushed.is_pending();
        flushed
    }

    /// Adds a short response to the gathered ones. Returns `false` if it must be written at once.
    fn gather(&self, parts: &[IoSlice<'_>], length: usize) -> bool {
        let gathered = &mut lock(&self.socket).gathered;
        if self.phase() != Phase::Answering || gathered.len() + length > GATHERED {
            return false;
        }
        parts.iter().for_each(|part| gathered.extend_from_slice(part));
        true
    }

    /// Takes the socket out, once hyper has finished. Bytes that were read ahead are dropped.
    pub(super) fn take_stream(&self) -> Option<Socket> {
        let socket = &mut *lock(&self.socket);
        socket.read_ahead = BytesMut::new();
        socket.stream.take()
    }

    /// Waits for the client's end while a request is handled or a stream is open, because hyper does not read then.
    /// Once a handler's client is `known_gone`, only a stream's end is reported.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>, known_gone: bool) -> Poll<()> {
        match self.phase() {
            Phase::Streaming => {}
            Phase::Handling if !known_gone => {}
            _ => return Poll::Pending,
        }
        let socket = &mut *lock(&self.socket);
        while !socket.ended && socket.read_ahead.len() < READ_AHEAD {
            let Some(stream) = &mut socket.stream else { return Poll::Pending };
            let read_ahead = &mut socket.read_ahead;
            let take = |bytes: &[u8]| {
                read_ahead.extend_from_slice(bytes);
                bytes.len()
            };
            match ready!(poll_read_shared(stream, cx, take)) {
                Ok(0) | Err(_) => socket.ended = true,
                // hyper may be waiting for these bytes: the rest of a body.
                Ok(_) => cx.waker().wake_by_ref(),
            }
        }
        if socket.ended { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The socket of one connection, for hyper.
pub(super) struct ConnectionIo {
    control: Arc<Control>,
    /// Whether bytes of the current response have been written.
    begun: bool,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl ConnectionIo {
    pub(super) fn new(control: Arc<Control>) -> ConnectionIo {
        ConnectionIo { control, begun: false }
    }

    /// Returns how many of the bytes that hyper writes were not produced by a handler. `length` is the total, `first`
    /// their beginning.
    fn bytes_without_handler(&mut self, first: &[u8], length: usize) -> Option<usize> {
        if !matches!(self.control.phase(), Phase::Answering | Phase::Streaming) {
            return Some(length);
        }
        // hyper writes an interim response that was not written on its own together with the response.
        if !self.begun && first.starts_with(CONTINUE) {
            return Some(CONTINUE.len());
        }
        self.begun = true;
        None
    }

    fn count(&self, result: io::Result<usize>) -> io::Result<usize> {
        if let Ok(length) = result {
            self.control.written.fetch_add(length as u64, Ordering::Relaxed);
        }
        result
    }

    fn with_stream<T>(&self, action: impl FnOnce(Pin<&mut Socket>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut lock(&self.control.socket).stream {
            Some(stream) => action(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = &mut *lock(&self.control.socket);
        if socket.read_ahead.is_empty() {
            return match &mut socket.stream {
                Some(stream) => {
                    let before = buf.filled().len();
                    ready!(Pin::new(stream).poll_read(cx, buf))?;
                    self.control.count_read(buf.filled().len() - before);
                    Poll::Ready(Ok(()))
                }
                None => Poll::Ready(Ok(())),
            };
        }
        let length = socket.read_ahead.len().min(buf.remaining());
        buf.put_slice(&socket.read_ahead[..length]);
        self.control.count_read(length);
        socket.read_ahead.advance(length);
        if socket.read_ahead.is_empty() {
            // Frees the memory.
            socket.read_ahead = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(swallowed) = self.bytes_without_handler(data, data.len()) {
            return Poll::Ready(Ok(swallowed));
        }
        if self.control.gather(&[IoSlice::new(data)], data.len()) {
            return Poll::Ready(Ok(data.len()));
        }
        ready!(self.control.poll_gathered(cx))?;
        self.with_stream(|stream| stream.poll_write(cx, data)).map(|result| self.count(result))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.first().map_or(&[][..], |part| part);
        let length = parts.iter().map(|part| part.len()).sum();
        if let Some(swallowed) = self.bytes_without_handler(first, length) {
            return Poll::Ready(Ok(swallowed));
        }
        if self.control.gather(parts, length) {
            return Poll::Ready(Ok(length));
        }
        ready!(self.control.poll_gathered(cx))?;
        self.with_stream(|stream| stream.poll_write_vectored(cx, parts)).map(|result| self.count(result))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when its own buffer is empty. Bytes that are gathered, here or in TLS, are written by the
        // connection's task once hyper has nothing more to do.
        let answering = matches!(self.control.phase(), Phase::Answering | Phase::Streaming);
        if answering && self.control.body_done.load(Ordering::Relaxed) {
            self.control.enter(Phase::Idle);
            self.begun = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with_stream(|stream| stream.poll_shutdown(cx))
    }
}
