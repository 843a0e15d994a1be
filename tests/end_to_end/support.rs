//! What the tests with real processes share: the binary, clusters, daemons, directories, and waiting.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long something may take that must happen, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Ports outside of the system's range of ephemeral ports.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// Lines of a daemon's log that are shown when a test fails.
const LINES: usize = 60;

/// The binary under test.
pub fn binary() -> String {
    std::env::var("TEPUI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tepui").to_owned())
}

pub fn tepui() -> Command {
    Command::new(binary())
}

/// Looks again and again for as long as is patient: what was found, if it was.
pub fn look_for<T>(reached: impl FnMut() -> Option<T>) -> Option<T> {
    look_for_within(PATIENCE, reached)
}

/// Looks again and again for so long: what was found, if it was.
#[expect(clippy::disallowed_methods, reason = "what other processes do can only be looked for, and a test must end")]
pub fn look_for_within<T>(limit: Duration, mut reached: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        // The last look is after the limit: the machine may have stood still since the one before.
        let last = start.elapsed() > limit;
        match reached() {
            Some(found) => return Some(found),
            None if last => return None,
            None => std::thread::sleep(Duration::from_millis(15)),
        }
    }
}

/// Looks again and again until there is something.
pub fn wait_for<T>(what: &str, reached: impl FnMut() -> Option<T>) -> T {
    look_for(reached).unwrap_or_else(|| panic!("not within {} s: {what}", PATIENCE.as_secs()))
}

/// Looks again and again until it is so.
pub fn until(what: &str, mut reached: impl FnMut() -> bool) {
    wait_for(what, || reached().then_some(()));
}

/// Asks a process to end; it is a child that is not reaped yet, so that the id is still its own.
pub fn signal(process: &Child, signal: &str) {
    let _ = Command::new("kill").args([signal, &process.id().to_string()]).status();
}

/// A port of 127.0.0.1 that stays free while its daemon is down: it is not an ephemeral port.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each process begins elsewhere, in case there are two.
    let first = std::process::id() as u16;
    let mut ports = (0..PORTS.len()).map(|_| {
        let number = first.wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        PORTS.start + number % (PORTS.end - PORTS.start)
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// The answer to a request; `None` if the server cannot be reached or is silent for too long.
pub fn exchange(address: &str, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The JSON answer to a call without a body; `None` if there is no answer or it is not JSON.
pub fn call(address: &str, method: &str, path: &str) -> Option<Value> {
    let answer = request(address, method, path, "")?;
    let body = answer.split_once("\r\n\r\n")?.1;
    // The body may be in chunks, whose sizes stand around it.
    serde_json::from_str(body.get(body.find(['{', '['])?..=body.rfind(['}', ']'])?)?).ok()
}

/// What a server gives at a path; none if it cannot be reached.
pub fn get(address: &str, path: &str) -> Option<String> {
    let answer = exchange(address, &format!("GET {path} HTTP/1.0\r\n\r\n"))?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// What a server answers to JSON, with the head; none if it cannot be reached.
pub fn request(address: &str, method: &str, path: &str, json: &str) -> Option<String> {
    let (media, length) = ("application/json", json.len());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nAccept: {media}\r\n");
    exchange(address, &format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{json}"))
}

/// A directory of a test; removed when dropped.
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

    /// The name of something in it, as a word of a command.
    pub fn join(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file; its name as a word of a command.
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

/// A cluster by `tepui local`, with a directory for the test and for all its sandboxes; ended when dropped.
pub struct Cluster {
    process: Child,
    /// The master's address.
    pub master: String,
    pub directory: Directory,
    /// Kept open: what the cluster prints later must go somewhere.
    _output: BufReader<ChildStdout>,
}

impl Cluster {
    /// A cluster of this many agents with these resources each.
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
        // It comes when all agents are registered, or stay away.
        output.read_line(&mut first).unwrap();
        let master = first.trim().rsplit("http://").next().unwrap().to_owned();
        let cluster = Cluster { process, master, directory, _output: output };
        assert!(first.starts_with("master"), "{first}");
        cluster
    }
}

impl Cluster {
    /// The bytes of memory that it has.
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() << 10
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An interrupt lets it end its tasks.
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

/// A master or an agent that writes a log; killed with its owner.
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

    /// Starts a daemon with a command that becomes it.
    pub fn start_as(mut command: Command, log: &Path, words: &[String], environment: &[(&str, String)]) -> Daemon {
        let output = fs::File::create(log).unwrap();
        let (out, err) = (output.try_clone().unwrap(), output);
        // An agent without a flag of the test's own changes nothing of the host's systemd.
        command.env("MESOS_SYSTEMD_RUNTIME_DIRECTORY", "/nowhere");
        command.args(words).envs(environment.iter().map(|(name, value)| (name, value))).stdout(out).stderr(err);
        Daemon { process: command.spawn().unwrap(), log: log.to_owned() }
    }

    /// Where it listens, once it does; none if it has ended.
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
