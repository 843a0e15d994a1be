//! The receiving side of a connection that carries messages only.
//!
//! While idle it holds no buffer: bytes are read into one that all connections of a thread share.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::chunked::{BodyDecoder, BodyError};
use super::head::{self, Head, Parsed};
use super::{Delivery, Message, MessageSink, Origin, Refusal, answer, deliver};
use crate::budget::{Share, UNCOUNTED};
use crate::connections::{Slot, WaitsFor};
use crate::{Limits, Socket};

/// Number of unread bytes of responses from which a sender is cut off.
const UNREAD_ANSWERS: usize = 1 << 20;

/// Time, and number of bytes, for which responses to senders that do not read them are gathered: each packet would wake
/// the sender for nothing.
const GATHER: Duration = Duration::from_millis(10);
const GATHERED: usize = 8 << 10;

thread_local!(static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 << 10]));

/// Reads once into the thread's shared buffer and passes the bytes to `take`. Zero bytes mean the end.
pub(crate) fn poll_read_shared<T>(
    stream: &mut Socket,
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(take(buffer.filled())))
    })
}

/// Sends bytes that TLS has buffered.
fn flush(cx: &mut Context<'_>, stream: &mut Socket) -> io::Result<Poll<()>> {
    match Pin::new(stream).poll_flush(cx) {
        Poll::Ready(flushed) => flushed.map(Poll::Ready),
        Poll::Pending => Ok(Poll::Pending),
    }
}

/// How the part of a connection that carries messages has ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The connection is to be closed.
    Closed,
    /// A message was refused before all of it was read. The response is sent, and more bytes may still arrive.
    Refused,
    /// A request that is not a message begins with these bytes.
    Http(Bytes),
}

/// The state of a connection that has carried messages only.
pub(crate) struct Incoming {
    origin: Origin,
    /// Share of the budget for the body that is being received.
    share: Share,
    head_limit: usize,
    body_limit: usize,
    /// Beginning of an incomplete head.
    partial: BytesMut,
    /// Message whose body is being received.
    pending: Option<(Head, BodyDecoder)>,
    answers: Vec<u8>,
    sent: usize,
    /// Whether the client waits for one of the responses.
    urgent: bool,
    /// Timer until which responses are gathered that no client waits for.
    gathering: Option<Pin<Box<Sleep>>>,
    ending: Option<Outcome>,
    /// Whether a message was delivered: the connection is a link of a peer.
    is_link: bool,
    /// Whether the sink accepts no messages at present.
    is_held_back: bool,
    /// Number of bytes read.
    read: u64,
}

impl Incoming {
    pub(crate) fn new(origin: Origin, share: Share, head_limit: usize, body_limit: usize) -> Incoming {
        Incoming {
            origin,
            share,
            head_limit,
            body_limit,
            partial: BytesMut::new(),
            pending: None,
            answers: Vec::new(),
            sent: 0,
            urgent: false,
            gathering: None,
            ending: None,
            is_link: false,
            is_held_back: false,
            read: 0,
        }
    }

    /// Returns whether nothing more is read as messages.
    pub(super) fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns the responses that were not sent.
    pub(super) fn into_answers(self) -> Vec<u8> {
        self.answers
    }

    /// Delivers messages and answers them, until another request arrives or the connection ends.
    pub(crate) async fn run<S: MessageSink>(
        &mut self,
        stream: &mut Socket,
        sink: &S,
        slot: &mut Slot,
        limits: &Limits,
    ) -> io::Result<Outcome> {
        poll_fn(|cx| {
            let polled = self.poll(cx, stream, sink);
            if polled.is_pending() {
                self.report(slot, limits);
            }
            polled
        })
        .await
    }

    /// Records in the slot what the connection waits for. A link of a peer is kept: libprocess takes its end for the
    /// end of the peer. Only a body that counts in the limit of all bodies can close it.
    fn report(&self, slot: &mut Slot, limits: &Limits) {
        if self.is_link {
            slot.never_close_idle();
        }
        if self.is_held_back || (self.is_link && self.share.is_empty()) {
            slot.stop_waiting();
        } else if self.pending.is_some() {
            slot.wait_for_body(self.read, limits);
        } else if !self.partial.is_empty() {
            slot.wait(WaitsFor::Head, self.read, Some(limits.request_head));
        } else if self.read > 0 {
            slot.wait(WaitsFor::NextRequest, self.read, Some(limits.keep_alive));
        }
    }

    fn poll<S: MessageSink>(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Socket,
        sink: &S,
    ) -> Poll<io::Result<Outcome>> {
        loop {
            let flushed = self.poll_answers(cx, stream)?.is_ready();
            if self.ending.is_some() {
                if !flushed {
                    return Poll::Pending;
                }
                if let Some(ending) = self.ending.take() {
                    return Poll::Ready(Ok(ending));
                }
            }
            if self.answers.len() - self.sent > UNREAD_ANSWERS {
                tracing::warn!(
                    peer = %self.origin.peer,
                    "a libprocess peer does not read responses; connection closed"
                );
                return Poll::Ready(Ok(Outcome::Closed));
            }
            self.is_held_back = sink.poll_ready(cx).is_pending();
            if self.is_held_back {
                return Poll::Pending;
            }
            ready!(poll_read_shared(stream, cx, |input| self.take(input, sink)))?;
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>, stream: &mut Socket) -> Result<Poll<()>, io::Error> {
        if self.gathers(cx) {
            return flush(cx, stream);
        }
        while self.sent < self.answers.len() {
            match Pin::new(&mut *stream).poll_write(cx, &self.answers[self.sent..]) {
                Poll::Ready(written) => self.sent += written?,
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        self.sent = 0;
        self.answers = Vec::new();
        self.urgent = false;
        self.gathering = None;
        flush(cx, stream)
    }

    /// Returns whether the responses are still to be gathered; the task is woken when that is over.
    fn gathers(&mut self, cx: &mut Context<'_>) -> bool {
        if self.answers.is_empty() || self.urgent || self.ending.is_some() || self.answers.len() > GATHERED {
            return false;
        }
        let gathering = self.gathering.get_or_insert_with(|| Box::pin(tokio::time::sleep(GATHER)));
        self.urgent = gathering.as_mut().poll(cx).is_ready();
        !self.urgent
    }

    /// Handles the bytes of one read; an empty slice is the end of the connection.
    pub(super) fn take<S: MessageSink + ?Sized>(&mut self, input: &[u8], sink: &S) {
        self.read += input.len() as u64;
        if input.is_empty() {
            self.ending = Some(Outcome::Closed);
        } else if self.partial.is_empty() {
            self.feed(input, sink);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(input);
            self.feed(&joined, sink);
        }
    }

    fn feed<S: MessageSink + ?Sized>(&mut self, mut input: &[u8], sink: &S) {
        while self.ending.is_none() && !input.is_empty() {
            if let Some((head, mut body)) = self.pending.take() {
                match body.feed(input) {
                    Ok(used) => input = &input[used..],
                    Err(error) => return self.refuse(error),
                }
                if body.len() > UNCOUNTED && !self.share.grow_to(body.len()) {
                    return self.refuse(BodyError::TooMany);
                }
                if body.is_done() {
                    self.complete(head, body.finish(), sink);
                } else {
                    self.pending = Some((head, body));
                }
                continue;
            }
            match head::parse(input, self.origin) {
                Parsed::Partial if input.len() <= self.head_limit => {
                    self.partial = BytesMut::from(input);
                    return;
                }
                Parsed::Message(_, used) if used > self.head_limit => {
                    self.ending = Some(Outcome::Http(Bytes::copy_from_slice(input)));
                }
                Parsed::Partial | Parsed::Other => {
                    self.ending = Some(Outcome::Http(Bytes::copy_from_slice(input)));
                }
                Parsed::Message(head, used) => {
                    input = &input[used..];
                    match head.body(self.body_limit) {
                        Ok(body) if body.is_done() => self.complete(head, Bytes::new(), sink),
                        Ok(body) => self.pending = Some((head, body)),
                        Err(error) => return self.refuse(error),
                    }
                }
            }
        }
    }

    fn complete<S: MessageSink + ?Sized>(&mut self, head: Head, body: Bytes, sink: &S) {
        self.share.clear();
        let origin = Origin { is_libprocess: head.is_libprocess, sender_token: head.sender_token, ..self.origin };
        let delivery =
            head.message.and_then(|(to, from, name)| deliver(Message { to, from, name, body, origin }, sink));
        self.is_link |= delivery == Ok(Delivery::Accepted);
        let outcome = delivery.map(|_| ());
        answer::push(&mut self.answers, &outcome, head.close);
        self.urgent |= outcome.is_err() || !head.is_libprocess;
        if head.close {
            self.ending = Some(Outcome::Closed);
        }
    }

    /// Refuses a body that cannot be read. The connection ends, because the end of the body, and so the next message,
    /// cannot be found.
    fn refuse(&mut self, error: BodyError) {
        // The body is dropped; the client may take its time to read the response.
        self.share.clear();
        self.ending = Some(match error {
            BodyError::Malformed => Outcome::Closed,
            BodyError::TooLong(limit) => {
                answer::push(&mut self.answers, &Err(Refusal::TooLong { limit }), true);
                Outcome::Refused
            }
            BodyError::TooMany => {
                answer::push(&mut self.answers, &Err(Refusal::TooMany), true);
                Outcome::Refused
            }
        });
    }
}
