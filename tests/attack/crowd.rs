//! Many clients that attack at once: each has a connection, sends its request over it, and starts again when it has
//! been closed. It measures nothing.

#![allow(clippy::disallowed_methods, reason = "attackers pause, so that they do not take what they attack with")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of threads that the clients of a crowd share.
const THREADS: usize = 8;
/// Pause between two rounds over all clients of a thread.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns the number of clients of an attack: `ATTACK_CLIENTS`.
pub fn clients() -> usize {
    std::env::var("ATTACK_CLIENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// Behaviour of each client.
#[derive(Clone)]
pub struct Plan {
    /// Bytes that the client sends.
    pub request: Arc<[u8]>,
    /// Whether the client reads the answer, and then sends the bytes again.
    pub reads: bool,
}

impl Plan {
    /// Returns a plan that sends these bytes and waits.
    pub fn hold(request: impl Into<Arc<[u8]>>) -> Plan {
        Plan { request: request.into(), reads: false }
    }

    /// Returns a plan that sends these bytes repeatedly, each time after an answer.
    pub fn repeat(request: impl Into<Arc<[u8]>>) -> Plan {
        Plan { request: request.into(), reads: true }
    }
}

/// Clients that attack until this is dropped.
pub struct Crowd {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Starts this many clients.
    pub fn start(address: &str, plan: &Plan, clients: usize) -> Crowd {
        // Each client has a connection.
        let _ = wire::raise_open_files_limit();
        let stop = Arc::new(AtomicBool::new(false));
        let run = |number: usize| {
            let (stop, address, plan) = (stop.clone(), address.to_owned(), plan.clone());
            let share = (clients + number) / THREADS;
            std::thread::spawn(move || {
                yield_to_the_cluster();
                let mut clients: Vec<Client> = (0..share).map(|_| Client::default()).collect();
                while !stop.load(Ordering::Relaxed) {
                    clients.iter_mut().for_each(|client| client.act(&address, &plan));
                    std::thread::park_timeout(PAUSE);
                }
            })
        };
        let threads = (0..THREADS).map(run).collect();
        Crowd { stop, threads }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Lowers the priority of this process: attackers have another machine than the master, so here they use only the CPU
/// time that it leaves.
fn yield_to_the_cluster() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    let Some(id) = thread.file_name() else { return };
    let mut renice = Command::new("renice");
    let _ = renice.args(["-n", "19", "-p"]).arg(id).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A client, and the number of bytes of its request that it has sent.
#[derive(Default)]
struct Client {
    stream: Option<TcpStream>,
    sent: usize,
}

impl Client {
    /// Connects, sends and reads, as far as that is possible without waiting.
    fn act(&mut self, address: &str, plan: &Plan) {
        if self.stream.is_none() {
            self.sent = 0;
            self.stream = TcpStream::connect(address).ok().filter(|stream| stream.set_nonblocking(true).is_ok());
        }
        let Some(stream) = &mut self.stream else { return };
        let is_open = match plan.request.get(self.sent..) {
            Some(rest) if !rest.is_empty() => match stream.write(rest) {
                Ok(length) => {
                    self.sent += length;
                    length > 0
                }
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            },
            _ => true,
        };
        let is_open = is_open
            && match plan.reads {
                true => self.read(),
                false => !matches!(stream.peek(&mut [0]), Ok(0)) && !is_broken(stream),
            };
        // A client that is refused early may find its connection closed while it sends.
        if !is_open {
            self.stream = None;
        }
    }

    /// Reads the answer. Returns whether the connection is still open. After an answer the request is sent again.
    fn read(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        match stream.read(&mut [0; 4096]) {
            Ok(0) => false,
            Ok(_) => {
                self.sent = 0;
                true
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn is_broken(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).err().is_some_and(|error| error.kind() != ErrorKind::WouldBlock)
}
