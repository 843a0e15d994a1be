//! RecordIO response streams: a [`StreamHandle`] takes records, the connection sends them.
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

use super::response::ResponseBody;
use super::{Backlog, Response};
use crate::sync::lock;

/// Why a stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The handle ended it (or was dropped).
    Ended,
    /// The client closed the connection, or it broke.
    ClientClosed,
    /// The client did not read: more than `limit` bytes waited for it.
    TooSlow {
        /// The limit in bytes.
        limit: usize,
    },
    /// The client did not read, and more than `limit` bytes waited for the clients of all streams together.
    Crowded {
        /// The limit in bytes.
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

/// A record with its RecordIO header: encoded once, it can be sent to many streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Bytes);

impl Record {
    /// Frames a payload.
    pub fn new(payload: &[u8]) -> Record {
        let mut record = Vec::with_capacity(payload.len() + 20);
        protos::recordio::encode(payload, &mut record);
        Record(record.into())
    }

    /// Bytes that go out as they are, for streams that are not RecordIO, such as server-sent events.
    pub fn unframed(bytes: Bytes) -> Record {
        Record(bytes)
    }

    /// The bytes as they go over the wire.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

type OnEnd = Box<dyn FnOnce(StreamEnd) + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// No further record comes; the queue is still to be sent.
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
    /// Records the end, once, and notifies all waiters.
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

/// A stream of status 200, and the handle that feeds it. More than `limit` bytes that wait behind the next record cut
/// the client off.
///
/// Headers such as `Mesos-Stream-Id` are set on the response.
pub fn open(content_type: &'static str, limit: usize) -> (StreamHandle, Response) {
    open_within(content_type, limit, &Backlog::new(usize::MAX))
}

/// A stream as of [`open`], whose unread bytes count with those of others.
pub fn open_within(content_type: &'static str, limit: usize, backlog: &Backlog) -> (StreamHandle, Response) {
    let (handle, records) = open_bare(limit, backlog);
    let mut response = Response::ok_body(content_type, Bytes::new());
    response.body = ResponseBody::Stream(records.0);
    (handle, response)
}

/// A stream without a response: the caller passes its records to the reader.
pub fn open_bare(limit: usize, backlog: &Backlog) -> (StreamHandle, Records) {
    let backlog = backlog.clone();
    let shared = Arc::new(Shared { limit, backlog, state: Mutex::default(), ended: Notify::new() });
    (StreamHandle(shared.clone()), Records(Source(shared)))
}

/// The reading end of a bare stream. Dropping it before the end means that the reader is gone.
#[derive(Debug)]
pub struct Records(Source);

impl Records {
    /// Waits for a record, with its header; `None` at the end, or if the reader is cut off.
    pub async fn next(&mut self) -> Option<Bytes> {
        let frame = std::future::poll_fn(|cx| self.0.poll_record(cx)).await?;
        frame.ok()?.into_data().ok()
    }

    /// A record that is there already.
    pub fn try_next(&mut self) -> Option<Bytes> {
        let mut state = lock(&self.0.0.state);
        let record = state.queue.pop_front()?;
        state.queued -= record.len();
        self.0.0.backlog.remove(record.len());
        Some(record)
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
    /// When the stream is over, or is cut off now because the client does not read.
    pub fn send(&self, payload: &[u8]) -> Result<(), StreamEnd> {
        self.send_record(&Record::new(payload))
    }

    /// Sends a record that was framed before.
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
        // The record that is sent next does not count: the first one has the state of the whole cluster and may be
        // longer than the limit, and the next event follows before it is sent.
        let waits_behind = |next: &Bytes| state.queued - next.len() + record.0.len() > self.0.limit;
        if state.queue.front().is_some_and(waits_behind) {
            drop(state);
            let end = StreamEnd::TooSlow { limit: self.0.limit };
            self.0.end(end);
            return Err(end);
        }
        if !state.queue.is_empty() && !self.0.backlog.has_room(record.0.len()) {
            drop(state);
            let end = StreamEnd::Crowded { limit: self.0.backlog.limit() };
            self.0.end(end);
            return Err(end);
        }
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

    /// Ends the stream: what was sent still goes out, then the end chunk.
    pub fn finish(&self) {
        let mut state = lock(&self.0.state);
        state.finished = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Breaks the connection off without an end chunk; unsent records are lost.
    pub fn abort(&self) {
        let cut = lock(&self.0.state).cut.take();
        self.0.end(StreamEnd::Ended);
        if let Some(cut) = cut {
            cut.notify_one();
        }
    }

    /// Why the stream is over, if it is. After [`StreamHandle::finish`] it is over once the last byte is handed on.
    pub fn ended(&self) -> Option<StreamEnd> {
        lock(&self.0.state).end
    }

    /// Number of bytes that wait for the client.
    pub fn queued(&self) -> usize {
        lock(&self.0.state).queued
    }

    /// Calls back when the stream is over (at once if it is already), from whatever task notices, which may be one that
    /// sends: do little there, and take no lock that is held while sending.
    pub fn on_end(&self, callback: impl FnOnce(StreamEnd) + Send + 'static) {
        let mut state = lock(&self.0.state);
        if let Some(end) = state.end {
            drop(state);
            callback(end);
        } else {
            state.on_end = Some(Box::new(callback));
        }
    }

    /// Waits until the stream is over.
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

/// The connection was broken off on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut off")]
pub struct StreamCut;

/// The reading end: the body of the response. Dropping it unread means that the client is gone.
pub(crate) struct Source(Arc<Shared>);

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Source {
    /// Names the switch that breaks the connection off when its socket takes no more bytes.
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
            self.0.backlog.remove(record.len());
            return Poll::Ready(Some(Ok(Frame::data(record))));
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
