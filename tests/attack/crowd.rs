//! Many clients that attack at once: each holds a connection, sends its request over it, and begins again when it has
//! been closed. It measures nothing.

#![allow(clippy::disallowed_methods, reason = "attackers pause, so that they do not take what they attack with")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads that the clients of a crowd share.
const THREADS: usize = 8;
/// Between two turns of all clients of a thread.
const PAUSE: Duration = Duration::from_millis(2);

/// Number of clients of an attack: `ATTACK_CLIENTS`.
pub fn clients() -> usize {
    std::env::var("ATTACK_CLIENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// What each client does.
#[derive(Clone)]
pub struct Plan {
    /// The bytes that it sends.
    pub request: Arc<[u8]>,
    /// Whether it reads what comes back, and then sends the bytes again.
    pub reads: bool,
}

impl Plan {
    /// Sends these bytes and waits.
    pub fn hold(request: impl Into<Arc<[u8]>>) -> Plan {
        Plan { request: request.into(), reads: false }
    }

    /// Sends these bytes again and again, each time when an answer has come.
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
    /// So many clients.
    pub fn start(address: &str, plan: &Plan, clients: usize) -> Crowd {
        // Each has a connection.
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

/// Attackers have another machine than the master: here they take what processors it leaves.
fn yield_to_the_cluster() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    let Some(id) = thread.file_name() else { return };
    let mut renice = Command::new("renice");
    let _ = renice.args(["-n", "19", "-p"]).arg(id).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A client, and how much of its request it has sent.
#[derive(Default)]
struct Client {
    stream: Option<TcpStream>,
    sent: usize,
}

impl Client {
    /// Connects, or sends, or reads, as far as that goes without waiting.
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

    /// Whether the connection goes on. After an answer the request begins anew.
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
