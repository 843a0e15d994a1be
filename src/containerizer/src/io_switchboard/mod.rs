//! The I/O switchboard: it carries bytes between sessions or terminals and the clients that are attached to them.
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

use terminals::{Ends, Line};

/// How much is read at once.
const PIECE: usize = 16 * 1024;
/// A session waits for a client that has so much unread.
const UNREAD_MAX: usize = 256 * 1024;
const UNREAD_PAUSE: Duration = Duration::from_millis(10);
/// How long what a session has written last may take on its way out.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// A client that receives the output of a container.
pub trait Client: std::fmt::Debug + Send + Sync {
    /// Whether it reads no more.
    fn is_gone(&self) -> bool;
    /// The bytes that it has not read yet.
    fn queued(&self) -> usize;
    /// Sends a piece of the output. A client that has disconnected receives nothing.
    fn send(&self, message: &ProcessIo);
    /// The output is complete.
    fn finish(&self);
}

/// All sessions. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoSwitchboard(Arc<Mutex<BTreeMap<ContainerName, Arc<Io>>>>);

/// One session's clients and streams.
#[derive(Debug, Default)]
pub struct Io {
    clients: Mutex<Vec<Arc<dyn Client>>>,
    input: Mutex<Input>,
    /// Outputs that have not ended.
    open: Mutex<usize>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Input {
    stream: Option<Arc<AsyncFd<OwnedFd>>>,
    line: Line,
    /// A client is attached.
    taken: bool,
}

impl IoSwitchboard {
    /// Prepares a session that is to be launched, with its first client; false if there is one of this name.
    pub(crate) fn add(&self, container: &ContainerName, client: Arc<dyn Client>) -> bool {
        let mut sessions = lock(&self.0);
        if sessions.contains_key(container) {
            return false;
        }
        let io = Io::default();
        lock(&io.clients).push(client);
        sessions.insert(container.clone(), Arc::new(io));
        true
    }

    /// Prepares a container with a terminal, which has no clients yet.
    pub(crate) fn add_terminal(&self, container: &ContainerName) {
        lock(&self.0).entry(container.clone()).or_default();
    }

    pub(crate) fn get(&self, container: &ContainerName) -> Option<Arc<Io>> {
        lock(&self.0).get(container).cloned()
    }

    /// Forgets a session that was not launched.
    pub(crate) fn forget(&self, container: &ContainerName) {
        lock(&self.0).remove(container);
    }

    /// Carries the bytes of a session that runs.
    pub(crate) fn run(&self, container: &ContainerName, ends: Ends, runtime: &Handle) {
        let Some(io) = self.get(container) else { return };
        let _context = runtime.enter();
        match watch(ends.input) {
            Ok(stream) => *lock(&io.input) = Input { stream: Some(Arc::new(stream)), line: ends.line, taken: false },
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

    /// A session's processes have ended: sends their last output, and then the end to its clients.
    pub(crate) async fn ended(&self, container: &ContainerName) {
        let Some(io) = self.get(container) else { return };
        let drained = async {
            let mut closed = std::pin::pin!(io.closed.notified());
            while *lock(&io.open) > 0 {
                closed.as_mut().await;
                closed.set(io.closed.notified());
            }
        };
        // Half a megabyte for a client that does not read is not worth more.
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

/// Reads one output to its end.
async fn carry(io: Arc<Io>, output: AsyncFd<OwnedFd>, kind: process_io::data::Type) {
    let mut buffer = vec![0; PIECE];
    loop {
        let Ok(mut ready) = output.readable().await else { break };
        match ready.try_io(|fd| containers::read_some(fd.get_ref(), &mut buffer)) {
            // A terminal that no process has open any more returns an error.
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(length)) => io.tell(&buffer[..length], kind).await,
            Err(_not_yet) => {}
        }
    }
    *lock(&io.open) -= 1;
    io.closed.notify_one();
}

/// A piece of a stream as a message.
fn piece(bytes: &[u8], kind: process_io::data::Type) -> ProcessIo {
    ProcessIo {
        r#type: Some(process_io::Type::Data as i32),
        data: Some(process_io::Data { r#type: Some(kind as i32), data: Some(bytes.to_vec()) }),
        control: None,
    }
}

impl Io {
    /// Adds a client, which receives what is written from now on.
    pub fn attach(&self, client: Arc<dyn Client>) {
        lock(&self.clients).push(client);
    }

    async fn tell(&self, bytes: &[u8], kind: process_io::data::Type) {
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

    /// Takes the input for one client; false if another one has it.
    pub fn take_input(&self) -> bool {
        !std::mem::replace(&mut lock(&self.input).taken, true)
    }

    /// Lets another client take the input.
    pub fn give_input_back(&self) {
        lock(&self.input).taken = false;
    }

    /// Types these bytes; none at all end the input.
    ///
    /// # Errors
    /// If the session's program does not read any more.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let (stream, line) = self.line();
        let Some(stream) = stream else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if bytes.is_empty() && line == Line::Pipe {
            lock(&self.input).stream = None;
            return Ok(());
        }
        send(&stream, &line.typed(bytes)).await
    }

    /// Changes the size of the terminal; `false` if there is none.
    pub async fn resize(&self, rows: u32, columns: u32) -> bool {
        match self.line() {
            (None, _) | (_, Line::Pipe) => false,
            (Some(stream), Line::Terminal) => containers::resize_terminal(stream.get_ref(), rows, columns).is_ok(),
            (Some(stream), Line::Switchboard) => send(&stream, &terminals::size(rows, columns)).await.is_ok(),
        }
    }

    fn line(&self) -> (Option<Arc<AsyncFd<OwnedFd>>>, Line) {
        let input = lock(&self.input);
        (input.stream.clone(), input.line)
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
