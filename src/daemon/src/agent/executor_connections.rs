//! The connections with which the agent's own executors are started: events and calls as RecordIO in protobuf over a
//! pair of sockets, without HTTP.
//!
//! The core receives the same inputs as from `executor_api.rs`. An executor that has lost its connection, because the
//! agent was restarted, subscribes over HTTP as all others do.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Answer, Done, ExecutorKey, Input, Proof, RequestId, StreamId};
use protos::mesos::executor::{Call, call, event};
use protos::mesos::{self};
use protos::recordio::Decoder;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::time::Instant;
use wire::Limits;
use wire::http::stream::Records;
use wire::negotiate::Encoding;

use crate::codec;
use crate::driver::Driver;
use crate::pending_requests::PendingRequests;
use crate::streams::Streams;

/// Size of the buffer for reads, in bytes; a call has some hundred.
const READ_BYTES: usize = 4 << 10;

/// The core and the streams that connections use. Cheap to clone.
#[derive(Clone)]
pub(super) struct ExecutorConnections {
    pub(super) driver: Driver<Agent>,
    pub(super) streams: Arc<Streams>,
    pub(super) pending_requests: Arc<PendingRequests<Answer>>,
}

/// The executor of a connection.
#[derive(Debug)]
struct Owner(ExecutorKey);

impl Owner {
    fn subscribe(&self) -> Box<Call> {
        Box::new(Call {
            framework_id: mesos::FrameworkId { value: (&self.0.framework).into() },
            executor_id: mesos::ExecutorId { value: (&self.0.executor).into() },
            r#type: Some(call::Type::Subscribe as i32),
            subscribe: Some(call::Subscribe::default()),
            ..Call::default()
        })
    }

    /// Decodes the call of a record, and checks that it comes from this executor.
    fn call(&self, record: &[u8]) -> Result<Box<Call>, String> {
        let call = codec::executor_call(Encoding::Protobuf, record).map_err(|_| "it cannot be read".to_owned())?;
        super::validate::executor_call(&call)?;
        if call.framework_id.value != self.0.framework || call.executor_id.value != self.0.executor {
            return Err("it is another executor's".to_owned());
        }
        if call.r#type() == call::Type::Subscribe {
            return Err("the executor is already subscribed".to_owned());
        }
        Ok(Box::new(call))
    }
}

/// The error that ends a connection before its executor ends.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("the socket failed")]
    Socket(#[from] io::Error),
    #[error("a call is invalid: {0}")]
    Call(String),
}

impl ExecutorConnections {
    /// Subscribes the executor, whose container has started, and serves its connection until one side closes it.
    pub(super) async fn serve(self, owner: ExecutorKey, socket: UnixStream) {
        let owner = Owner(owner);
        let (driver, streams) = (self.driver.clone(), self.streams.clone());
        let (stream, records) = self.streams.open_bare(move |stream| {
            streams.forget(stream);
            driver.submit(Input::ExecutorStreamClosed { stream: StreamId(stream) });
        });
        let (request, subscribed) = self.pending_requests.ask();
        let (request, call) = (RequestId(request), owner.subscribe());
        let proof = Proof::Connection;
        self.driver.handle_now(Input::ExecutorSubscribe { stream: StreamId(stream), request, call, proof });
        // Events are not sent before the core has answered, so that the first of them are sent together.
        if !matches!(subscribed.await, Ok(Ok(Done::Stream))) {
            return self.streams.close(stream);
        }
        if let Err(error) = self.carry(&owner, socket, records).await {
            tracing::warn!(executor = owner.0.executor, "{:#}", anyhow::Error::from(error));
        }
    }

    async fn carry(&self, owner: &Owner, socket: UnixStream, mut records: Records) -> Result<(), LineError> {
        let socket = watch(socket, Interest::READABLE)?;
        let mut decoder = Decoder::new(Limits::default().body);
        let mut pending = PendingOutput::default();
        loop {
            tokio::select! {
                biased;
                record = records.next() => {
                    let Some(record) = record else { return Ok(()) };
                    pending.add(&record);
                    while let Some(record) = records.try_next() {
                        pending.add(&record);
                    }
                    if !pending.may_wait() {
                        write(socket.get_ref(), &pending.take()).await?;
                    }
                }
                ready = socket.readable() => {
                    if !read(&mut ready?, &mut decoder)? {
                        return Ok(());
                    }
                    pending.ending |= self.take_calls(owner, &mut decoder).await?;
                }
                () = pending.is_due() => write(socket.get_ref(), &pending.take()).await?,
            }
        }
    }

    /// Passes the received calls to the core, and waits for the answer to the last one: further calls of an executor
    /// wait until its earlier ones are handled. Together they are one batch, and one write to the disk. Returns whether
    /// a task has ended by them.
    async fn take_calls(&self, owner: &Owner, decoder: &mut Decoder) -> Result<bool, LineError> {
        let (mut last, mut ended) = (None, false);
        while let Some(record) = decoder.pull().map_err(|error| LineError::Call(error.to_string()))? {
            let call = owner.call(&record).map_err(LineError::Call)?;
            ended |= call.update.as_ref().is_some_and(|update| agent::is_terminal(update.status.state));
            let (number, outcome) = self.pending_requests.ask();
            let input = Input::ExecutorCall { request: RequestId(number), call, proof: Proof::Connection };
            if let Some((input, _)) = last.replace((input, outcome)) {
                self.driver.submit(input);
            }
        }
        let Some((input, outcome)) = last else { return Ok(ended) };
        self.driver.handle_now(input);
        if let Ok(Err(error)) = outcome.await {
            tracing::warn!(executor = owner.0.executor, "an executor's call was rejected: {error}");
        }
        Ok(ended)
    }
}

/// Time for which an acknowledgement may wait for other output.
const PATIENCE: Duration = Duration::from_millis(100);

/// Output that waits to be sent to an executor. An executor only records the acknowledgement of an update, and most
/// tasks of a burst end at once: waking it for the acknowledgement of their start alone would be a good part of all its
/// work. If one is lost with the agent, the executor repeats the update, as it does with all unacknowledged ones.
#[derive(Debug, Default)]
struct PendingOutput {
    bytes: Vec<u8>,
    /// Time at which the output is sent at the latest; `None` if a part of it is urgent.
    until: Option<Instant>,
    /// Whether a task has ended: its executor waits for the acknowledgement of that.
    ending: bool,
}

impl PendingOutput {
    fn add(&mut self, record: &[u8]) {
        let can_wait = !self.ending && is_confirmation(record);
        self.until = match (self.bytes.is_empty(), can_wait) {
            (true, true) => Some(Instant::now() + PATIENCE),
            (false, true) => self.until,
            (_, false) => None,
        };
        self.bytes.extend_from_slice(record);
    }

    fn may_wait(&self) -> bool {
        self.until.is_some()
    }

    fn take(&mut self) -> Vec<u8> {
        self.until = None;
        std::mem::take(&mut self.bytes)
    }

    /// Waits until the output is due.
    async fn is_due(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

/// Returns whether a record only acknowledges an update. The type of an event is its first field; events in another
/// order count as urgent.
fn is_confirmation(record: &[u8]) -> bool {
    const KIND: [u8; 2] = [1 << 3, event::Type::Acknowledged as u8];
    let body = record.iter().position(|byte| *byte == b'\n').map_or(record, |end| &record[end + 1..]);
    body.starts_with(&KIND)
}

/// Registers a socket for only the needed readiness: a notification whenever an executor has read its events would wake
/// this thread without effect.
#[allow(
    deprecated,
    reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
)]
fn watch(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

/// Reads the available bytes. Returns false at the end.
fn read(ready: &mut AsyncFdReadyGuard<'_, UnixStream>, decoder: &mut Decoder) -> io::Result<bool> {
    let mut buffer = [0; READ_BYTES];
    let length = match ready.get_inner().read(&mut buffer) {
        Ok(0) => return Ok(false),
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        // The caller reads again.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
        // The executor has ended with unread events.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
        Err(error) => return Err(error),
    };
    decoder.push(&buffer[..length]);
    // A short read has emptied the socket; later data causes a new notification.
    if length < buffer.len() {
        ready.clear_ready();
    }
    Ok(true)
}

async fn write(mut socket: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    let mut room = None;
    while !rest.is_empty() {
        match socket.write(rest) {
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The executor has ended; the end of its container reports that.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let room = match &mut room {
                    Some(room) => room,
                    None => room.insert(watch(socket.try_clone()?, Interest::WRITABLE)?),
                };
                room.writable().await?.clear_ready();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use protos::recordio;

    use super::*;

    fn record(kind: event::Type) -> Vec<u8> {
        let event = mesos::executor::Event { r#type: Some(kind as i32), ..Default::default() };
        let mut bytes = Vec::new();
        recordio::encode(&event.encode_to_vec(), &mut bytes);
        bytes
    }

    #[tokio::test]
    async fn only_confirmations_wait_and_not_for_long() {
        let (confirmation, kill) = (record(event::Type::Acknowledged), record(event::Type::Kill));
        let mut pending = PendingOutput::default();
        pending.add(&kill);
        assert!(!pending.may_wait());
        assert_eq!(pending.take(), kill);
        pending.add(&confirmation);
        pending.add(&confirmation);
        assert!(pending.may_wait());
        let began = Instant::now();
        pending.is_due().await;
        assert!(began.elapsed() > PATIENCE / 2);
        // An urgent record is sent with the waiting ones, and later records do not wait before that.
        pending.add(&kill);
        pending.add(&confirmation);
        assert!(!pending.may_wait());
        assert_eq!(pending.take(), [&confirmation[..], &confirmation, &kill, &confirmation].concat());
        pending.ending = true;
        pending.add(&confirmation);
        assert!(!pending.may_wait());
    }

    #[test]
    fn calls_of_others_are_refused() {
        let owner = Owner(ExecutorKey { framework: "F".into(), executor: "E".into() });
        let said = |change: &dyn Fn(&mut Call)| {
            let mut call = Call { r#type: Some(call::Type::Heartbeat as i32), ..*owner.subscribe() };
            change(&mut call);
            owner.call(&call.encode_to_vec()).map(drop)
        };
        assert_eq!(said(&|_| {}), Ok(()));
        assert!(said(&|call| call.executor_id.value = "X".into()).unwrap_err().contains("another"));
        assert!(said(&|call| call.framework_id.value = "X".into()).unwrap_err().contains("another"));
        assert!(said(&|call| call.r#type = Some(call::Type::Subscribe as i32)).unwrap_err().contains("subscribed"));
        assert!(said(&|call| call.r#type = None).unwrap_err().contains("'type'"));
        assert!(owner.call(b"\xff").unwrap_err().contains("read"));
    }
}
