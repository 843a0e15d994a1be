//! The open event streams of a daemon, by the number that its core knows them by.
//!
//! It does not depend on the content of events; it knows only in which encoding each client reads them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::lock;
use prost::Message;
use protos::json::{Dialect, ToJson};
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;
use wire::Limits;
use wire::http::stream::{Record, Records, StreamEnd, StreamHandle};
use wire::http::{Backlog, Response};
use wire::negotiate::Encoding;

/// Encodes a v0 message as v1. Only for messages whose v1 encoding has the same field numbers.
pub fn encode_v1(encoding: Encoding, message: &(impl Message + ToJson)) -> Vec<u8> {
    match encoding {
        Encoding::Json => {
            let mut out = Vec::with_capacity(512);
            message.to_json(Dialect::V1, &mut out);
            out
        }
        Encoding::Protobuf => message.encode_to_vec(),
    }
}

/// The record of the event that was sent last, for the other streams to which it is sent.
#[derive(Debug)]
pub struct LastEvent<E>(Mutex<Option<(Arc<E>, Encoding, Record)>>);

impl<E> Default for LastEvent<E> {
    fn default() -> LastEvent<E> {
        LastEvent(Mutex::default())
    }
}

impl<E: Message + ToJson> LastEvent<E> {
    /// Returns the event as a record. Encodes it only if it is not the last event in this encoding.
    pub fn record(&self, event: &Arc<E>, encoding: Encoding) -> Record {
        let mut last = lock(&self.0);
        if let Some((known, of, record)) = &*last
            && Arc::ptr_eq(known, event)
            && *of == encoding
        {
            return record.clone();
        }
        let record = Record::new(&encode_v1(encoding, &**event));
        *last = Some((Arc::clone(event), encoding, record.clone()));
        record
    }
}

/// Number of first records that are encoded at once. Each may be as large as the state of the cluster.
const ENCODERS: usize = 2;

/// An open stream.
#[derive(Debug)]
struct OpenStream {
    handle: StreamHandle,
    encoding: Encoding,
    /// Records that wait until the first one is encoded, and their bytes; `None` if there is no such wait.
    held: Mutex<Option<(Vec<Record>, usize)>>,
}

impl OpenStream {
    /// Sends a record after the first one. At most `limit` bytes wait for that.
    fn send(&self, record: &Record, limit: usize) -> Result<(), StreamEnd> {
        let mut held = lock(&self.held);
        let Some((records, bytes)) = &mut *held else {
            drop(held);
            return self.handle.send_record(record);
        };
        *bytes += record.as_bytes().len();
        if *bytes > limit {
            *held = None;
            drop(held);
            return Err(self.handle.cut_off());
        }
        records.push(record.clone());
        Ok(())
    }

    /// Sends the first record, and those that were held back for it.
    fn release(&self, first: &Record) -> Result<(), StreamEnd> {
        // The lock is held, so that no record overtakes.
        let mut held = lock(&self.held);
        let Some((records, _)) = held.take() else { return Ok(()) };
        self.handle.send_record(first)?;
        records.iter().try_for_each(|record| self.handle.send_record(record))
    }
}

/// The open event streams.
#[derive(Debug)]
pub struct Streams {
    open: Mutex<FxHashMap<u64, Arc<OpenStream>>>,
    encoders: Arc<Semaphore>,
    next: AtomicU64,
    /// Maximum number of bytes that wait for the reader of one stream.
    limit: usize,
    /// Bytes that wait for the readers of all streams, and their limit.
    backlog: Backlog,
}

impl Streams {
    /// Creates an empty set of streams, with these limits of bytes that wait for readers.
    pub fn new(limits: &Limits) -> Streams {
        let (limit, backlog) = (limits.stream, Backlog::new(limits.streams));
        let encoders = Arc::new(Semaphore::new(ENCODERS));
        Streams { open: Mutex::default(), encoders, next: AtomicU64::new(1), limit, backlog }
    }

    /// Checks that a stream may be opened.
    ///
    /// # Errors
    /// 503: too many bytes wait for the readers of other streams.
    pub fn check_room(&self) -> Result<(), Box<Response>> {
        match self.backlog.is_full() {
            true => Err(Box::new(Response::unavailable("Too many bytes wait for the readers of other streams"))),
            false => Ok(()),
        }
    }

    /// Opens a stream. Returns its number and the response. `closed` is called when the client has disconnected, but
    /// not when the daemon ends the stream.
    pub fn open(&self, encoding: Encoding, closed: impl FnOnce(u64) + Send + 'static) -> (u64, Response) {
        let (handle, response) = wire::http::stream::open_within(encoding.media_type(), self.limit, &self.backlog);
        let closed = |number| {
            move |end| {
                tracing::info!(stream = number, "event stream {end}");
                closed(number);
            }
        };
        (self.keep(handle, encoding, closed), response)
    }

    /// Opens a stream in protobuf that is not the response to a request. `closed` is called as with [`Streams::open`].
    pub fn open_bare(&self, closed: impl FnOnce(u64) + Send + 'static) -> (u64, Records) {
        let (handle, records) = wire::http::stream::open_bare(self.limit, &self.backlog);
        let closed = |number| {
            move |end| {
                tracing::debug!(stream = number, "event stream {end}");
                closed(number);
            }
        };
        (self.keep(handle, Encoding::Protobuf, closed), records)
    }

    fn keep<F: FnOnce(StreamEnd) + Send + 'static>(
        &self,
        handle: StreamHandle,
        encoding: Encoding,
        closed: impl FnOnce(u64) -> F,
    ) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let closed = closed(number);
        handle.on_end(move |end| {
            if end != StreamEnd::Ended {
                closed(end);
            }
        });
        lock(&self.open).insert(number, Arc::new(OpenStream { handle, encoding, held: Mutex::default() }));
        number
    }

    /// Sends a v0 event to a stream in its reader's encoding.
    pub fn send(&self, number: u64, event: &(impl Message + ToJson)) {
        self.send_record(number, |encoding| Record::new(&encode_v1(encoding, event)));
    }

    /// Sends the bytes that `encode` returns for the stream's encoding as the first record. They are encoded on another
    /// thread, because they may be large; what is sent to the stream meanwhile follows them.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn send_first(&self, number: u64, encode: impl FnOnce(Encoding) -> Vec<u8> + Send + 'static) {
        let Some(stream) = lock(&self.open).get(&number).cloned() else { return };
        *lock(&stream.held) = Some((Vec::new(), 0));
        let encoders = self.encoders.clone();
        tokio::spawn(async move {
            // The semaphore is never closed. A client that has left meanwhile, or is refused, costs nothing.
            let Ok(_permit) = encoders.acquire_owned().await else { return };
            if stream.handle.ended().is_some() || stream.handle.cut_off_if_crowded() {
                return;
            }
            let sent = tokio::task::spawn_blocking(move || {
                let first = Record::new(&encode(stream.encoding));
                stream.release(&first)
            });
            if let Ok(Err(end)) = sent.await {
                tracing::debug!(stream = number, "state not sent: {end}");
            }
        });
    }

    /// Sends the record that `make` returns for the stream's encoding. The record may be shared with other streams.
    pub fn send_record(&self, number: u64, make: impl FnOnce(Encoding) -> Record) {
        // The lock is not held while sending: a stream that fails calls `closed`, which may lock again.
        let Some(stream) = lock(&self.open).get(&number).cloned() else { return };
        if let Err(end) = stream.send(&make(stream.encoding), self.limit) {
            tracing::debug!(stream = number, "event not sent: {end}");
        }
    }

    /// Ends a stream after the events that were sent to it.
    pub fn close(&self, number: u64) {
        // The stream ends once it is no longer used: after its first record, if that is still encoded.
        let stream = lock(&self.open).remove(&number);
        drop(stream);
    }

    /// Removes a stream whose client has disconnected.
    pub fn forget(&self, number: u64) {
        self.close(number);
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos::master::{Event, event};

    use super::*;

    #[tokio::test]
    async fn events_follow_the_first_record_that_is_still_encoded() {
        let streams = Streams::new(&Limits::default());
        let (number, mut records) = streams.open_bare(|_| {});
        let (encoded, go) = std::sync::mpsc::channel::<()>();
        streams.send_first(number, move |_| {
            go.recv().unwrap();
            b"state".to_vec()
        });
        for kind in [event::Type::Heartbeat, event::Type::AgentAdded] {
            streams.send(number, &Event { r#type: Some(kind as i32), ..Event::default() });
        }
        // The end of the stream waits, too.
        streams.close(number);
        assert_eq!(records.try_next(), None);
        encoded.send(()).unwrap();
        let mut all = Vec::new();
        while let Some(record) = records.next().await {
            all.push(record);
        }
        assert_eq!(all, [&b"5\nstate"[..], b"2\n\x08\x09", b"2\n\x08\x04"]);
    }

    #[tokio::test]
    async fn no_more_than_the_limit_waits_for_the_first_record() {
        let streams = Streams::new(&Limits { stream: 100, ..Limits::default() });
        let (number, mut records) = streams.open_bare(|_| {});
        let (encoded, go) = std::sync::mpsc::channel::<()>();
        streams.send_first(number, move |_| {
            let _ = go.recv();
            Vec::new()
        });
        for _ in 0..3 {
            streams.send_record(number, |_| Record::new(&[0; 60]));
        }
        assert_eq!(records.next().await, None, "cut off");
        drop(encoded);
    }

    #[test]
    fn an_event_for_many_is_encoded_once() {
        let event = |kind: event::Type| Arc::new(Event { r#type: Some(kind as i32), ..Event::default() });
        let (heartbeat, added) = (event(event::Type::Heartbeat), event(event::Type::AgentAdded));
        let last = LastEvent::default();
        let first = last.record(&heartbeat, Encoding::Json);
        let again = last.record(&heartbeat, Encoding::Json);
        assert_eq!(first.as_bytes().as_ptr(), again.as_bytes().as_ptr(), "the same bytes");
        assert_eq!(&first.as_bytes()[..], b"20\n{\"type\":\"HEARTBEAT\"}");
        assert_eq!(&last.record(&heartbeat, Encoding::Protobuf).as_bytes()[..], b"2\n\x08\x09");
        assert_ne!(last.record(&added, Encoding::Json), first);
        assert_eq!(last.record(&heartbeat, Encoding::Json), first);
    }
}
