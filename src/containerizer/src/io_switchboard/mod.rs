//! The I/O switchboard, which carries bytes between sessions or terminals and the clients that are attached to them.
//!
//! A session has pipes or a terminal (`terminals.rs`). The daemon implements [`Client`] by the streams of its HTTP
//! calls.

pub(crate) mod terminals;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ContainerName;
use base::lock;
use protos::mesos::agent::{ProcessIo, process_io};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use terminals::{InputKind, StreamEnds};

/// Number of bytes that are read at once.
const PIECE: usize = 16 * 1024;
/// Number of unread bytes of a client at which a session waits for it.
const UNREAD_MAX: usize = 256 * 1024;
const UNREAD_PAUSE: Duration = Duration::from_millis(10);
/// Time for the last output of a session to be sent.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// A client that receives the output of a container.
pub trait Client: std::fmt::Debug + Send + Sync {
    /// Returns whether the client has disconnected.
    fn is_gone(&self) -> bool;
    /// Returns the number of bytes that the client has not read yet.
    fn queued(&self) -> usize;
    /// Sends a piece of the output. A client that has disconnected receives nothing.
    fn send(&self, message: &ProcessIo);
    /// Ends the output.
    fn finish(&self);
}

/// The streams of all sessions and terminals. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoSwitchboard(Arc<Mutex<BTreeMap<ContainerName, Arc<ContainerIo>>>>);

/// Clients and streams of one session or terminal.
#[derive(Debug, Default)]
pub struct ContainerIo {
    clients: Mutex<Vec<Arc<dyn Client>>>,
    input: Mutex<Input>,
    /// Number of outputs that have not ended.
    open: Mutex<usize>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Input {
    stream: Option<Arc<AsyncFd<OwnedFd>>>,
    input_kind: InputKind,
    /// Whether a client has the input.
    taken: bool,
}

/// The input of a container, reserved for one client. Dropping it releases the input for another client: the request of
/// a client that has disconnected is dropped while it waits.
#[derive(Debug)]
pub struct TakenInput<'a>(&'a ContainerIo);

impl Drop for TakenInput<'_> {
    fn drop(&mut self) {
        lock(&self.0.input).taken = false;
    }
}

impl IoSwitchboard {
    /// Prepares a session that is about to be launched, with its first client. Returns `false` if there is already a
    /// session with this name.
    pub(crate) fn add(&self, container: &ContainerName, client: Arc<dyn Client>) -> bool {
        let mut sessions = lock(&self.0);
        if sessions.contains_key(container) {
            return false;
        }
        let io = ContainerIo::default();
        lock(&io.clients).push(client);
        sessions.insert(container.clone(), Arc::new(io));
        true
    }

    /// Prepares a container with a terminal, which has no clients yet.
    pub(crate) fn add_terminal(&self, container: &ContainerName) {
        lock(&self.0).entry(container.clone()).or_default();
    }

    pub(crate) fn get(&self, container: &ContainerName) -> Option<Arc<ContainerIo>> {
        lock(&self.0).get(container).cloned()
    }

    /// Removes a session that was not launched.
    pub(crate) fn forget(&self, container: &ContainerName) {
        lock(&self.0).remove(container);
    }

    /// Starts to carry the bytes of a running session.
    pub(crate) fn run(&self, container: &ContainerName, ends: StreamEnds, runtime: &Handle) {
        let Some(io) = self.get(container) else { return };
        let _context = runtime.enter();
        match watch(ends.input) {
            Ok(stream) => {
                *lock(&io.input) = Input { stream: Some(Arc::new(stream)), input_kind: ends.input_kind, taken: false }
            }
            Err(error) => tracing::warn!(%container, "a session has no input: {error}"),
        }
        let outputs =
            [(Some(ends.output), process_io::data::Type::Stdout), (ends.error, process_io::data::Type::Stderr)];
        for (output, kind) in outputs {
            let Some(Ok(output)) = output.map(watch) else { continue };
            *lock(&io.open) += 1;
            runtime.spawn(carry(io.clone(), output, kind));
        }
    }

    /// Handles the end of a session's processes: sends their last output, and then the end to its clients.
    pub(crate) async fn ended(&self, container: &ContainerName) {
        let Some(io) = self.get(container) else { return };
        let drained = async {
            let mut closed = std::pin::pin!(io.closed.notified());
            while *lock(&io.open) > 0 {
                closed.as_mut().await;
                closed.set(io.closed.notified());
            }
        };
        // A client that does not read may lose half a megabyte at most.
        let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
        self.forget(container);
        for client in std::mem::take(&mut *lock(&io.clients)) {
            client.finish();
        }
        lock(&io.input).stream = None;
    }
}

#[allow(
    deprecated,
    reason = "the safe constructor is sound here: the descriptor is owned, and closed with the AsyncFd"
)]
fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

/// Reads one output to its end, and sends it to the clients.
async fn carry(io: Arc<ContainerIo>, output: AsyncFd<OwnedFd>, kind: process_io::data::Type) {
    let mut buffer = vec![0; PIECE];
    loop {
        let Ok(mut ready) = output.readable().await else { break };
        match ready.try_io(|fd| containers::read_some(fd.get_ref(), &mut buffer)) {
            // Reading fails once no process has the terminal open any more.
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(length)) => io.send_to_clients(&buffer[..length], kind).await,
            Err(_not_yet) => {}
        }
    }
    *lock(&io.open) -= 1;
    io.closed.notify_one();
}

/// Returns a piece of a stream as a message.
fn piece(bytes: &[u8], kind: process_io::data::Type) -> ProcessIo {
    ProcessIo {
        r#type: Some(process_io::Type::Data as i32),
        data: Some(process_io::Data { r#type: Some(kind as i32), data: Some(bytes.to_vec()) }),
        control: None,
    }
}

impl ContainerIo {
    /// Adds a client, which receives the output from now on.
    pub fn attach(&self, client: Arc<dyn Client>) {
        lock(&self.clients).push(client);
    }

    async fn send_to_clients(&self, bytes: &[u8], kind: process_io::data::Type) {
        let message = piece(bytes, kind);
        loop {
            let clients = {
                let mut clients = lock(&self.clients);
                clients.retain(|client| !client.is_gone());
                clients.clone()
            };
            if clients.iter().all(|client| client.queued() < UNREAD_MAX) {
                clients.iter().for_each(|client| client.send(&message));
                return;
            }
            tokio::time::sleep(UNREAD_PAUSE).await;
        }
    }

    /// Reserves the input for one client, until the returned value is dropped. Returns `None` if another one has it.
    pub fn take_input(&self) -> Option<TakenInput<'_>> {
        if std::mem::replace(&mut lock(&self.input).taken, true) {
            return None;
        }
        Some(TakenInput(self))
    }

    /// Writes bytes to the input; an empty slice ends the input.
    ///
    /// # Errors
    /// If the session's program does not read any more.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let (stream, input_kind) = self.input_stream();
        let Some(stream) = stream else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if bytes.is_empty() && input_kind == InputKind::Pipe {
            lock(&self.input).stream = None;
            return Ok(());
        }
        send(&stream, &input_kind.typed(bytes)).await
    }

    /// Changes the size of the terminal. Returns `false` if there is none, or it fails.
    pub async fn resize(&self, rows: u32, columns: u32) -> bool {
        match self.input_stream() {
            (None, _) | (_, InputKind::Pipe) => false,
            (Some(stream), InputKind::Terminal) => containers::resize_terminal(stream.get_ref(), rows, columns).is_ok(),
            (Some(stream), InputKind::Switchboard) => send(&stream, &terminals::size(rows, columns)).await.is_ok(),
        }
    }

    fn input_stream(&self) -> (Option<Arc<AsyncFd<OwnedFd>>>, InputKind) {
        let input = lock(&self.input);
        (input.stream.clone(), input.input_kind)
    }
}

async fn send(stream: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = stream.writable().await?;
        if let Ok(written) = ready.try_io(|fd| containers::write_some(fd.get_ref(), bytes)) {
            bytes = &bytes[written?..];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_free_again_when_its_client_is_dropped() {
        let io = ContainerIo::default();
        let first = io.take_input();
        assert!(first.is_some());
        // A client that is refused does not release it.
        assert!(io.take_input().is_none() && io.take_input().is_none());
        drop(first);
        assert!(io.take_input().is_some());
    }
}
