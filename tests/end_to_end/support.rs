//! Helpers of the tests with real processes: the binary, clusters, daemons, directories, and waits.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time limit of events that must occur, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Ports outside of the system's range of ephemeral ports.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// Number of lines of a daemon's log that are shown when a test fails.
const LINES: usize = 60;

/// Returns the path of the binary under test.
pub fn binary() -> String {
    std::env::var("TEPUI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tepui").to_owned())
}

pub fn tepui() -> Command {
    Command::new(binary())
}

/// Calls `reached` repeatedly, for [`PATIENCE`] at most. Returns what it found.
pub fn look_for<T>(reached: impl FnMut() -> Option<T>) -> Option<T> {
    look_for_within(PATIENCE, reached)
}

/// Calls `reached` repeatedly, for `limit` at most. Returns what it found.
#[expect(clippy::disallowed_methods, reason = "what other processes do can only be looked for, and a test must end")]
pub fn look_for_within<T>(limit: Duration, mut reached: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        // The last call is after the limit: the machine may have stopped since the one before.
        let last = start.elapsed() > limit;
        match reached() {
            Some(found) => return Some(found),
            None if last => return None,
            None => std::thread::sleep(Duration::from_millis(15)),
        }
    }
}

/// Calls `reached` repeatedly until it returns something. Panics after the time limit.
pub fn wait_for<T>(what: &str, reached: impl FnMut() -> Option<T>) -> T {
    look_for(reached).unwrap_or_else(|| panic!("not within {} s: {what}", PATIENCE.as_secs()))
}

/// Calls `reached` repeatedly until it returns `true`. Panics after the time limit.
pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    wait_for(what, || reached().then_some(()));
}

/// Sends a signal to a child process that is not reaped yet, so that the id is still its own.
pub fn signal(process: &Child, signal: &str) {
    let _ = Command::new("kill").args([signal, &process.id().to_string()]).status();
}

/// Returns a port of 127.0.0.1 that stays free while its daemon is down: it is not an ephemeral port.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each test process starts at another port, in case there are two.
    let first = std::process::id() as u16;
    let mut ports = (0..PORTS.len()).map(|_| {
        let number = first.wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        PORTS.start + number % (PORTS.end - PORTS.start)
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// Sends a request and returns the answer; `None` if the server cannot be reached or is silent for too long.
pub fn exchange(address: &str, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Makes a call without a body and returns the JSON answer; `None` if there is no answer or it is not JSON.
pub fn call(address: &str, method: &str, path: &str) -> Option<Value> {
    let answer = request(address, method, path, "")?;
    let body = answer.split_once("\r\n\r\n")?.1;
    // The body may be in chunks, whose sizes are before and after it.
    serde_json::from_str(body.get(body.find(['{', '['])?..=body.rfind(['}', ']'])?)?).ok()
}

/// Returns the body of a server's answer for a path; `None` if it cannot be reached.
pub fn get(address: &str, path: &str) -> Option<String> {
    let answer = exchange(address, &format!("GET {path} HTTP/1.0\r\n\r\n"))?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// Sends JSON to a server and returns the answer with its head; `None` if it cannot be reached.
pub fn request(address: &str, method: &str, path: &str, json: &str) -> Option<String> {
    let (media, length) = ("application/json", json.len());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nAccept: {media}\r\n");
    exchange(address, &format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{json}"))
}

/// A directory of a test, which is deleted when dropped.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the directory, as a word of a command.
    pub fn join(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file and returns its path as a word of a command.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A cluster of `tepui local`, with a directory for the test and for all its sandboxes; it is stopped when this is
/// dropped.
pub struct Cluster {
    process: Child,
    /// Address of the master.
    pub master: String,
    pub directory: Directory,
    /// Output pipe, kept open so that the cluster can write to it.
    _output: BufReader<ChildStdout>,
}

impl Cluster {
    /// Starts a cluster of this many agents with these resources each.
    pub fn start(name: &str, agents: usize, resources: &str) -> Cluster {
        let directory = Directory::new(name);
        let mut process = tepui()
            .args(["local", "--port=0", &format!("--agents={agents}"), &format!("--resources={resources}")])
            .arg(format!("--work-dir={}", directory.join("cluster")))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        // The line is printed when all agents have registered, or have not within the time limit.
        output.read_line(&mut first).unwrap();
        let master = first.trim().rsplit("http://").next().unwrap().to_owned();
        let cluster = Cluster { process, master, directory, _output: output };
        assert!(first.starts_with("master"), "{first}");
        cluster
    }
}

impl Cluster {
    /// Returns the resident memory of the cluster in bytes.
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() << 10
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // With an interrupt the cluster ends its tasks.
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.process, "-INT");
        }
        if look_for(|| self.process.try_wait().unwrap()).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
            assert!(std::thread::panicking(), "the cluster does not end");
        }
    }
}

/// A master or an agent that writes a log; it is killed when this is dropped.
pub struct Daemon {
    process: Child,
    log: PathBuf,
}

impl Daemon {
    pub fn start(log: &Path, words: &[String], environment: &[(&str, String)]) -> Daemon {
        Daemon::start_as(tepui(), log, words, environment)
    }

    /// Starts a daemon that may have this many files open.
    pub fn start_with_open_files(limit: usize, log: &Path, words: &[String]) -> Daemon {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string(), &binary()]);
        Daemon::start_as(command, log, words, &[])
    }

    /// Starts a daemon with a command that executes it.
    pub fn start_as(mut command: Command, log: &Path, words: &[String], environment: &[(&str, String)]) -> Daemon {
        let output = fs::File::create(log).unwrap();
        let (out, err) = (output.try_clone().unwrap(), output);
        // An agent without flags of the test's own changes nothing of the host's systemd.
        command.env("MESOS_SYSTEMD_RUNTIME_DIRECTORY", "/nowhere");
        command.args(words).envs(environment.iter().map(|(name, value)| (name, value))).stdout(out).stderr(err);
        Daemon { process: command.spawn().unwrap(), log: log.to_owned() }
    }

    /// Waits until the daemon listens and returns its address; `None` if it has ended.
    pub fn address(&mut self) -> Option<String> {
        wait_for("a daemon listens, or has ended", || {
            let text = fs::read_to_string(&self.log).unwrap();
            let found = text.find("listens on ").and_then(|at| text[at + 11..].split_whitespace().next());
            match found {
                Some(found) => Some(Some(found.to_owned())),
                None => self.ended().then_some(None),
            }
        })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, name: &str) {
        signal(&self.process, name);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let first = text.lines().count().saturating_sub(LINES);
            let last: Vec<&str> = text.lines().skip(first).collect();
            eprintln!("{} ends with:\n{}", self.log.display(), last.join("\n"));
        }
    }
}
