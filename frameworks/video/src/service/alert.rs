//! The alert hook: runs a program or sends an HTTP POST when a query has a finding, at a bounded rate.
//!
//! Hooks are flags of the framework, not settings of queries: a query that is submitted through the API cannot run a
//! program.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use crate::clock;
use crate::pipeline::Finding;

/// Maximum number of queued alerts.
const WAITING_MAX: usize = 16;
/// Longest time that a program or a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which a program is polled for its exit.
const LOOK: Duration = Duration::from_millis(20);

/// What an alert hook runs or sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Runs a program, with the alert as a line of JSON on its standard input.
    Program(String),
    /// Sends the alert as a POST to an address.
    Post {
        /// Address of the server, as `host:port`.
        host: String,
        /// Path and query of the request.
        path: String,
    },
}

/// An alert hook with its maximum rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Program or address that is called.
    pub call: Call,
    /// Least time between two calls.
    pub every: Duration,
}

/// The error of an address that is invalid for a POST.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("alerts are posted to http://host[:port]/path; for other protocols use a program")]
pub struct HookError;

impl Call {
    /// Returns a POST to this address.
    ///
    /// # Errors
    /// Returns an error if it is not an `http://` address, or has credentials.
    pub fn post(address: &str) -> Result<Call, HookError> {
        let rest = address.strip_prefix("http://").ok_or(HookError)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let bad = |c: char| c.is_whitespace() || c.is_control();
        if host.is_empty() || host.contains('@') || rest.contains(bad) {
            return Err(HookError);
        }
        let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if port { host.to_owned() } else { format!("{host}:80") };
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Ok(Call::Post { host, path })
    }
}

/// The JSON of an alert.
#[derive(Debug, Serialize)]
struct Alert {
    query: String,
    finding: Finding,
    /// Number of findings since the last alert for which none was sent.
    missed: u64,
}

/// Queue of the alert hook, with the state of its rate limit.
#[derive(Debug)]
pub(super) struct Alerts {
    sender: SyncSender<Alert>,
    every: f64,
    last: Mutex<Option<f64>>,
    missed: Arc<AtomicU64>,
}

impl Alerts {
    pub(super) fn start(hook: Hook) -> Alerts {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let every = hook.every.as_secs_f64();
        std::thread::spawn(move || work(&hook.call, &receiver));
        Alerts { sender, every, last: Mutex::new(None), missed: Arc::default() }
    }

    /// Sends an alert for a finding, or only counts it if the last alert was too recent or the queue is full.
    pub(super) fn raise(&self, query: &str, finding: &Finding) {
        let now = clock::monotonic();
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let missed = self.missed.load(Ordering::Relaxed);
        let soon = last.is_some_and(|last| now - last < self.every);
        let alert = Alert { query: query.to_owned(), finding: finding.clone(), missed };
        if soon || self.sender.try_send(alert).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.missed.store(0, Ordering::Relaxed);
        *last = Some(now);
    }
}

fn work(call: &Call, receiver: &Receiver<Alert>) {
    while let Ok(alert) = receiver.recv() {
        let Ok(mut line) = serde_json::to_vec(&alert) else { continue };
        line.push(b'\n');
        let done = match call {
            Call::Program(program) => run(program, &line),
            Call::Post { host, path } => post(host, path, &line, clock::monotonic() + PATIENCE.as_secs_f64()),
        };
        if let Err(error) = done {
            tracing::warn!(query = %alert.query, %error, "an alert could not be sent");
        }
    }
}

fn run(program: &str, line: &[u8]) -> std::io::Result<()> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input is not an error.
        let _ = input.write_all(line);
    }
    ended(&mut child)
}

/// Waits for a program, and kills it if it takes too long.
fn ended(child: &mut Child) -> std::io::Result<()> {
    let until = clock::monotonic() + PATIENCE.as_secs_f64();
    while clock::monotonic() < until {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(std::io::Error::other(format!("the program failed: {status}"))),
            None => std::thread::park_timeout(LOOK),
        }
    }
    child.kill()?;
    child.wait()?;
    Err(std::io::Error::other("the program took longer than 10 s and was ended"))
}

/// Posts the body and reads the status of the answer, all before `deadline` (of the monotonic clock).
fn post(host: &str, path: &str, body: &[u8], deadline: f64) -> std::io::Result<()> {
    let address = resolved(host, left(deadline)?)?;
    let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
    let mut stream = TimedStream { stream, deadline };
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    if answer.starts_with(b"HTTP/1.") && answer[9] == b'2' {
        return Ok(());
    }
    Err(std::io::Error::other(format!("the answer is {}", String::from_utf8_lossy(&answer))))
}

/// Resolves `host:port`. The resolver of the system may take longer than `wait`, so another thread waits for it.
fn resolved(host: &str, wait: Duration) -> std::io::Result<SocketAddr> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Ok(address);
    }
    let (sender, receiver) = sync_channel(1);
    let host = host.to_owned();
    std::thread::spawn(move || {
        let first = host.to_socket_addrs().map(|mut addresses| addresses.next());
        // The call may have ended.
        let _ = sender.send(first);
    });
    let first = receiver.recv_timeout(wait).map_err(|_| late())??;
    first.ok_or_else(|| std::io::Error::other("the name has no address"))
}

/// A connection whose reads and writes fail after the deadline. A timeout of the socket alone would begin again with
/// each byte that arrives.
struct TimedStream {
    stream: TcpStream,
    deadline: f64,
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(buffer).map_err(timed)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write(bytes).map_err(timed)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// Returns the time until `deadline`; an error if it has passed.
fn left(deadline: f64) -> std::io::Result<Duration> {
    let left = deadline - clock::monotonic();
    // Sockets reject a timeout of zero.
    if left > 0.0 { Ok(Duration::from_secs_f64(left).max(Duration::from_millis(1))) } else { Err(late()) }
}

/// Names the timeout of a socket, which the system reports as a lack of data.
fn timed(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => late(),
        _ => error,
    }
}

fn late() -> std::io::Error {
    std::io::Error::new(ErrorKind::TimedOut, "the call took longer than 10 s and was ended")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::mpsc::RecvTimeoutError;

    use super::*;

    fn finding(at: f64) -> Finding {
        let place = crate::frame::Rect::default();
        let (line, direction) = ("door".to_owned(), "in".to_owned());
        Finding { at, label: "person".to_owned(), track: 1, line, direction, place }
    }

    #[test]
    fn alerts_are_posted_at_a_bounded_rate_and_the_rest_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let call = Call::post(&format!("http://{address}/hook?a=b")).unwrap();
        let alerts = Alerts::start(Hook { call, every: Duration::from_secs(3600) });
        for at in 0..5 {
            alerts.raise("gate", &finding(f64::from(at)));
        }
        assert_eq!(alerts.missed.load(Ordering::Relaxed), 4);
        *alerts.last.lock().unwrap() = None;
        alerts.raise("gate", &finding(9.0));
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            assert!(line.starts_with("POST /hook?a=b HTTP/1.1"), "{line}");
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
            }
            line.clear();
            stream.read_line(&mut line).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            bodies.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
        }
        assert_eq!((&bodies[0]["missed"], &bodies[1]["missed"]), (&0.into(), &4.into()));
        assert_eq!((&bodies[1]["query"], &bodies[1]["finding"]["line"]), (&"gate".into(), &"door".into()));
    }

    #[test]
    fn a_program_gets_the_alert_and_one_that_fails_is_told() {
        assert!(run("true", b"{}\n").is_ok());
        assert!(run("false", b"{}\n").unwrap_err().to_string().contains("failed"));
        assert!(run("/nonexistent/program", b"").is_err());
    }

    #[test]
    fn a_server_that_answers_byte_by_byte_does_not_extend_a_call() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (done, wait) = sync_channel::<()>(0);
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for byte in b"HTTP/1.1 204" {
                // The answer would take 6 s, with pauses that are shorter than the limit of the call.
                let pause = wait.recv_timeout(Duration::from_millis(500));
                if pause != Err(RecvTimeoutError::Timeout) || stream.write_all(std::slice::from_ref(byte)).is_err() {
                    return;
                }
            }
        });
        let error = post(&host, "/", b"{}\n", clock::monotonic() + 1.2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        drop(done);
        server.join().unwrap();
    }

    #[test]
    fn the_look_up_of_a_name_has_a_limit() {
        assert!(resolved("localhost:80", PATIENCE).unwrap().ip().is_loopback());
        assert!(resolved("[::1]:80", Duration::ZERO).unwrap().ip().is_loopback());
        let error = post("localhost:80", "/", b"", clock::monotonic() - 1.0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }

    #[test]
    fn addresses_that_cannot_be_posted_to() {
        for bad in ["https://host/", "http://", "http://u:p@host/", "ftp://x", "http://a b/"] {
            assert_eq!(Call::post(bad), Err(HookError), "{bad}");
        }
        let call = Call::post("http://host").unwrap();
        assert_eq!(call, Call::Post { host: "host:80".to_owned(), path: "/".to_owned() });
    }
}
