//! RecordIO response streams: a [`StreamHandle`] accepts records, the connection sends them.
//!
//! One record is one HTTP chunk; unframed data is sent as it is. The queue is limited: a reader that does not read is
//! disconnected. Records are not interpreted.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::Notify;

use super::backlog::OWN;
use super::response::ResponseBody;
use super::{Backlog, Response};
use crate::sync::lock;

/// Reason why a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The handle has ended it, or was dropped.
    Ended,
    /// The client closed the connection, or it broke.
    ClientClosed,
    /// The client did not read: more than `limit` bytes waited for it.
    TooSlow {
        /// Limit of the stream in bytes.
        limit: usize,
    },
    /// The client did not read, and more than `limit` bytes waited for the clients of all streams together.
    Crowded {
        /// Limit of all streams together in bytes.
        limit: usize,
    },
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamEnd::Ended => write!(f, "ended by the server"),
            StreamEnd::ClientClosed => write!(f, "closed by the client"),
            StreamEnd::TooSlow { limit } => write!(f, "cut off: more than {limit} bytes waited for the client to read"),
            StreamEnd::Crowded { limit } => {
                write!(f, "cut off: more than {limit} bytes waited for the clients of all streams, this one among them")
            }
        }
    }
}

/// A record with its RecordIO header. It is encoded once, and can be sent to many streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Bytes);

impl Record {
    /// Frames a payload as a record.
    pub fn new(payload: &[u8]) -> Record {
        let mut record = Vec::with_capacity(payload.len() + 20);
        protos::recordio::encode(payload, &mut record);
        Record(record.into())
    }

    /// Creates a record of bytes that are sent as they are, for streams that are not RecordIO, such as server-sent
    /// events.
    pub fn unframed(bytes: Bytes) -> Record {
        Record(bytes)
    }

    /// Returns the bytes as they are sent.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

type OnEnd = Box<dyn FnOnce(StreamEnd) + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Whether a record was sent.
    has_begun: bool,
    /// Whether no further record follows; the queue is still to be sent.
    finished: bool,
    end: Option<StreamEnd>,
    reader: Option<Waker>,
    on_end: Option<OnEnd>,
    cut: Option<Arc<Notify>>,
}

struct Shared {
    limit: usize,
    backlog: Backlog,
    state: Mutex<State>,
    ended: Notify,
}

impl Shared {
    /// Sets the end of the stream, once, and notifies all waiters.
    fn end(&self, end: StreamEnd) {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return;
        }
        state.end = Some(end);
        state.queue = VecDeque::new();
        self.backlog.remove(std::mem::take(&mut state.queued));
        let (on_end, reader, cut) = (state.on_end.take(), state.reader.take(), state.cut.take());
        drop(state);
        self.ended.notify_waiters();
        if let (StreamEnd::TooSlow { .. } | StreamEnd::Crowded { .. }, Some(cut)) = (end, cut) {
            cut.notify_one();
        }
        if let Some(reader) = reader {
            reader.wake();
        }
        if let Some(on_end) = on_end {
            on_end(end);
        }
    }
}

/// Opens a stream. Returns a response of status 200, and the handle that feeds it. The client is cut off when more than
/// `limit` bytes wait behind the next record.
///
/// Headers such as `Mesos-Stream-Id` are set on the response.
pub fn open(content_type: &'static str, limit: usize) -> (StreamHandle, Response) {
    open_within(content_type, limit, &Backlog::new(usize::MAX))
}

/// Opens a stream as [`open`] does, whose unread bytes count together with those of others.
pub fn open_within(content_type: &'static str, limit: usize, backlog: &Backlog) -> (StreamHandle, Response) {
    let (handle, records) = open_bare(limit, backlog);
    let mut response = Response::ok_body(content_type, Bytes::new());
    response.body = ResponseBody::Stream(records.0);
    (handle, response)
}

/// Opens a stream without a response: the caller passes its records to the reader.
pub fn open_bare(limit: usize, backlog: &Backlog) -> (StreamHandle, Records) {
    let backlog = backlog.clone();
    let shared = Arc::new(Shared { limit, backlog, state: Mutex::default(), ended: Notify::new() });
    (StreamHandle(shared.clone()), Records(Source(shared)))
}

/// The reading end of a bare stream. Dropping it before the end means that the reader has disconnected.
#[derive(Debug)]
pub struct Records(Source);

impl Records {
    /// Waits for the next record, with its header. Returns `None` at the end, or if the reader is cut off.
    pub async fn next(&mut self) -> Option<Bytes> {
        let frame = std::future::poll_fn(|cx| self.0.poll_record(cx)).await?;
        frame.ok()?.into_data().ok()
    }

    /// Returns the next record if it is already there.
    pub fn try_next(&mut self) -> Option<Bytes> {
        let mut state = lock(&self.0.0.state);
        let record = state.queue.pop_front()?;
        state.queued -= record.len();
        Some(self.0.0.backlog.pass_on(record))
    }
}

/// The feeding end of a stream. Dropping it ends the stream properly.
pub struct StreamHandle(Arc<Shared>);

impl fmt::Debug for StreamHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamHandle").field("end", &self.ended()).finish_non_exhaustive()
    }
}

impl StreamHandle {
    /// Sends one payload as a record. It never waits.
    ///
    /// # Errors
    /// When the stream has ended, or is cut off now because the client does not read.
    pub fn send(&self, payload: &[u8]) -> Result<(), StreamEnd> {
        self.send_record(&Record::new(payload))
    }

    /// Sends a record that was framed before. It never waits.
    ///
    /// # Errors
    /// As [`StreamHandle::send`].
    pub fn send_record(&self, record: &Record) -> Result<(), StreamEnd> {
        let mut state = lock(&self.0.state);
        if let Some(end) = state.end {
            return Err(end);
        }
        if state.finished {
            return Err(StreamEnd::Ended);
        }
        // The record that is sent next does not count. The first one has the state of the whole cluster and may be
        // longer than the limit, and the next event follows before it is sent.
        let waits_behind = |next: &Bytes| state.queued - next.len() + record.0.len() > self.0.limit;
        if state.queue.front().is_some_and(waits_behind) {
            drop(state);
            return Err(self.cut_off());
        }
        // A reader that is behind makes room for others, not one that happens to have two events.
        let (backlog, length) = (&self.0.backlog, record.0.len());
        let is_crowded = match state.queue.front() {
            None => !state.has_begun && backlog.is_too_much(length),
            Some(next) => state.queued - next.len() + length > OWN && !backlog.has_room(length),
        };
        if is_crowded {
            drop(state);
            let end = StreamEnd::Crowded { limit: self.0.backlog.limit() };
            self.0.end(end);
            return Err(end);
        }
        state.has_begun = true;
        state.queued += record.0.len();
        self.0.backlog.add(record.0.len());
        state.queue.push_back(record.0.clone());
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Ok(())
    }

    /// Cuts the client off, because more bytes wait for it than its limit.
    pub fn cut_off(&self) -> StreamEnd {
        let end = StreamEnd::TooSlow { limit: self.0.limit };
        self.0.end(end);
        end
    }

    /// Cuts the client off if more bytes wait for the clients of all streams than their limit. Returns whether it does.
    pub fn cut_off_if_crowded(&self) -> bool {
        let is_full = self.0.backlog.is_full();
        if is_full {
            self.0.end(StreamEnd::Crowded { limit: self.0.backlog.limit() });
        }
        is_full
    }

    /// Ends the stream: queued records are still sent, then the end chunk.
    pub fn finish(&self) {
        let mut state = lock(&self.0.state);
        state.finished = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Cuts the connection off without an end chunk; unsent records are lost.
    pub fn abort(&self) {
        let cut = lock(&self.0.state).cut.take();
        self.0.end(StreamEnd::Ended);
        if let Some(cut) = cut {
            cut.notify_one();
        }
    }

    /// Returns why the stream has ended, if it has. After [`StreamHandle::finish`] it has ended once the last byte is
    /// passed on.
    pub fn ended(&self) -> Option<StreamEnd> {
        lock(&self.0.state).end
    }

    /// Returns the number of bytes that wait for the client.
    pub fn queued(&self) -> usize {
        lock(&self.0.state).queued
    }

    /// Sets a callback for the end of the stream, which is called at once if it has already ended.
    ///
    /// Any task may call it, also one that sends: do little in it, and take no lock that is held while sending.
    pub fn on_end(&self, callback: impl FnOnce(StreamEnd) + Send + 'static) {
        let mut state = lock(&self.0.state);
        if let Some(end) = state.end {
            drop(state);
            callback(end);
        } else {
            state.on_end = Some(Box::new(callback));
        }
    }

    /// Waits until the stream has ended.
    pub async fn wait_end(&self) -> StreamEnd {
        let mut notified = std::pin::pin!(self.0.ended.notified());
        loop {
            notified.as_mut().enable();
            if let Some(end) = self.ended() {
                return end;
            }
            notified.as_mut().await;
            notified.set(self.0.ended.notified());
        }
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Error of a connection that was cut off on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut off")]
pub struct StreamCut;

/// The reading end of a stream: the body of the response. Dropping it unread means that the client has disconnected.
pub(crate) struct Source(Arc<Shared>);

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Source {
    /// Sets the notification that cuts the connection off when its socket accepts no more bytes.
    pub(super) fn attach(&self, cut: Arc<Notify>) {
        let mut state = lock(&self.0.state);
        if let Some(StreamEnd::TooSlow { .. } | StreamEnd::Crowded { .. }) = state.end {
            cut.notify_one();
        }
        state.cut = Some(cut);
    }

    pub(super) fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamCut>>> {
        let mut state = lock(&self.0.state);
        if let Some(record) = state.queue.pop_front() {
            state.queued -= record.len();
            return Poll::Ready(Some(Ok(Frame::data(self.0.backlog.pass_on(record)))));
        }
        if state.end.is_some() {
            return Poll::Ready(Some(Err(StreamCut)));
        }
        if state.finished {
            drop(state);
            self.0.end(StreamEnd::Ended);
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.0.end(StreamEnd::ClientClosed);
    }
}

impl http_body::Body for Source {
    type Data = Bytes;
    type Error = StreamCut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamCut>>> {
        self.poll_record(cx)
    }
}
