//! The socket as hyper sees it. Bytes that were read ahead come first, nothing goes out that no handler answered, and
//! the client's end is noticed while hyper does not read.
//!
//! A client that does not wait for its answers gets them together: short ones gather here until hyper has nothing more
//! to do.
//!
//! hyper answers malformed requests with 400 and `Expect: 100-continue` with an interim response; Mesos does neither.
//! Both are written before or without an answer of ours, are recognised by that, and are swallowed.

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

/// How far a connection is with its present request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No request, or its head is being read.
    Idle,
    /// A handler has it.
    Handling,
    /// Its answer is being sent.
    Answering,
    /// Its answer is a stream.
    Streaming,
    /// It is refused, and its answer waits.
    Refusing,
}

/// At most this much is read ahead while a request is handled: later requests of a client that does not wait.
const READ_AHEAD: usize = 64 << 10;
/// At most this much of short answers gathers before it is written.
const GATHERED: usize = 16 << 10;

/// What the parts of one connection share. They run in one task.
#[derive(Debug)]
pub(super) struct Control {
    /// Closes a connection that is idle, and cuts one off that streams, also while its socket takes no bytes.
    pub(super) cut: Arc<Notify>,
    phase: AtomicU8,
    /// The answer's body has been handed over.
    pub(super) body_done: AtomicBool,
    /// A request was refused before all of it was read: let the client read the answer before the socket closes.
    pub(super) linger: AtomicBool,
    /// The connection is not closed for being idle.
    pub(super) keep: AtomicBool,
    /// What ends the connection instead of an answer by hyper.
    refusal: Mutex<Option<Refusal>>,
    /// A request's body is being read, which its handler needs as a whole.
    pub(super) needs_body: AtomicBool,
    /// A part of the next request has been read.
    head_begun: AtomicBool,
    /// Bytes that hyper has read so far.
    read: AtomicU64,
    /// Bytes written so far.
    written: AtomicU64,
    socket: Mutex<Buffered>,
}

/// The socket and what is on its way between it and hyper.
#[derive(Debug)]
struct Buffered {
    /// None once the connection has been taken apart.
    stream: Option<Socket>,
    read_ahead: BytesMut,
    /// Answers that hyper has written and the socket has not been given yet.
    gathered: BytesMut,
    /// The client sends no more.
    ended: bool,
    /// TLS has bytes that the client's side has not taken yet.
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
            keep: AtomicBool::new(false),
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

    /// Whether a request has arrived that is to be answered, other than by a stream.
    pub(super) fn is_under_way(&self) -> bool {
        match self.phase() {
            Phase::Handling => !self.needs_body.load(Ordering::Relaxed),
            Phase::Answering => true,
            Phase::Idle | Phase::Streaming | Phase::Refusing => false,
        }
    }

    /// Says what the connection waits for; `is_flushed` if no answer is left to write.
    pub(super) fn report(&self, slot: &mut Slot, limits: &Limits, is_flushed: bool) {
        if self.keep.load(Ordering::Relaxed) {
            return slot.keep();
        }
        let read = self.read.load(Ordering::Relaxed);
        match self.phase() {
            Phase::Idle if !is_flushed => slot.work(),
            Phase::Idle if self.head_begun.load(Ordering::Relaxed) => {
                slot.wait(WaitsFor::Head, read, Some(limits.request_head));
            }
            Phase::Idle => slot.wait(WaitsFor::NextRequest, read, Some(limits.keep_alive)),
            Phase::Handling if self.needs_body.load(Ordering::Relaxed) => {
                slot.wait(WaitsFor::Body, read, Some(limits.stalled));
            }
            Phase::Refusing => slot.wait(WaitsFor::Refusal, read, None),
            Phase::Handling | Phase::Answering | Phase::Streaming => slot.work(),
        }
    }

    /// Sets what ends the connection.
    pub(super) fn put_refusal(&self, refusal: Refusal) {
        *lock(&self.refusal) = Some(refusal);
    }

    /// What ends the connection, if its last request was refused.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        lock(&self.refusal).take()
    }

    fn count_read(&self, length: usize) {
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        if length > 0 && self.phase() == Phase::Idle {
            self.head_begun.store(true, Ordering::Relaxed);
        }
    }

    /// How many bytes the client's side of the socket has taken.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether the client has not taken all of an answer.
    pub(super) fn owes(&self) -> bool {
        let socket = lock(&self.socket);
        self.phase() == Phase::Answering || !socket.gathered.is_empty() || socket.unflushed
    }

    /// Writes what has gathered, and what TLS holds back of earlier writes.
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
        // Gives the memory back: most connections are idle most of the time.
        *gathered = BytesMut::new();
        let Some(stream) = stream else { return Poll::Ready(Ok(())) };
        let flushed = Pin::new(stream).poll_flush(cx);
        *unflushed = flushed.is_pending();
        flushed
    }

    /// Takes the parts of a short answer; false if they are to be written at once.
    fn gather(&self, parts: &[IoSlice<'_>], length: usize) -> bool {
        let gathered = &mut lock(&self.socket).gathered;
        if self.phase() != Phase::Answering || gathered.len() + length > GATHERED {
            return false;
        }
        parts.iter().for_each(|part| gathered.extend_from_slice(part));
        true
    }

    /// Takes the socket out, once hyper is done with it. What was read ahead is dropped.
    pub(super) fn take_stream(&self) -> Option<Socket> {
        let socket = &mut *lock(&self.socket);
        socket.read_ahead = BytesMut::new();
        socket.stream.take()
    }

    /// Waits for the client's end while a request is handled or a stream is open: hyper does not read then. Once a
    /// handler's client is `known_gone`, only a stream's end is reported.
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
                // hyper may be waiting for them: the rest of a body.
                Ok(_) => cx.waker().wake_by_ref(),
            }
        }
        if socket.ended { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The socket of one connection, for hyper.
pub(super) struct ConnectionIo {
    control: Arc<Control>,
    /// Bytes of the present answer have been written.
    begun: bool,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl ConnectionIo {
    pub(super) fn new(control: Arc<Control>) -> ConnectionIo {
        ConnectionIo { control, begun: false }
    }

    /// How many of the bytes that hyper writes were not produced by a handler. `length` is the total, `first` their
    /// beginning.
    fn unasked(&mut self, first: &[u8], length: usize) -> Option<usize> {
        if !matches!(self.control.phase(), Phase::Answering | Phase::Streaming) {
            return Some(length);
        }
        // An interim response that hyper has not written on its own goes out together with the answer.
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
            // Gives the memory back.
            socket.read_ahead = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(swallowed) = self.unasked(data, data.len()) {
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
        if let Some(swallowed) = self.unasked(first, length) {
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
        // hyper flushes when its own buffer is empty. What has gathered, here or in TLS, is written by the connection's
        // task once hyper has nothing more to do.
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
