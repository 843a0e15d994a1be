//! One probe of a task: a command, an HTTP request, a TCP connection.
//!
//! Plain HTTP is asked by this process itself. TLS and redirects are left to `curl`, as Mesos leaves all of it.

use std::ffi::OsString;
use std::io::PipeWriter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use containers::{Launcher, Output, Program, Spec, User, WaitStatus};
use rustix::event::PollFlags;

use super::error::{InvalidCheck, StartError};
use super::place::{Network, Place};
use super::session::Session;
use super::state;
use crate::docker::Inside;
use crate::environment::Endpoint;
use crate::exchange::Exchange;
use crate::messages::{CheckInfo, CheckType, HealthCheck, HttpCheck, Protocol, Task};
use crate::socket::Socket;

/// How long the processes of a probe that is given up may take to die.
const DESTROY_LIMIT: Duration = Duration::from_secs(10);

/// What a probe does.
#[derive(Debug)]
pub(super) enum Probe {
    Command(Box<Spec>),
    /// The same inside of a Docker container.
    Inside(Box<Inside>),
    /// The same in a session.
    Session(Box<Session>),
    Http {
        address: SocketAddr,
        path: String,
        tls: bool,
    },
    Tcp {
        address: SocketAddr,
    },
}

/// A probe that has been started.
#[derive(Debug)]
pub(super) enum Probing {
    Process {
        pid: i32,
        /// Closing it tells the process that it is not needed any more; without it the process is killed then.
        line: Option<PipeWriter>,
    },
    Socket(Waiting),
}

/// A probe that waits for the network.
#[derive(Debug)]
pub(super) enum Waiting {
    Connect(Socket),
    Answer(Exchange),
}

/// How a probe has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ended(WaitStatus),
    Status(u16),
    /// The answer leads elsewhere.
    Redirected,
    Connected(bool),
    /// No result, for this reason.
    Nothing(String),
}

impl Probe {
    pub(super) fn of_health_check(check: &HealthCheck, task: &Task, place: &Place<'_>) -> Result<Probe, InvalidCheck> {
        match check.r#type() {
            CheckType::Command => {
                place.command(check.command.as_deref().ok_or(InvalidCheck::Missing("command"))?, task)
            }
            CheckType::Http => Probe::http(check.http.as_ref().ok_or(InvalidCheck::Missing("http"))?),
            CheckType::Tcp => {
                let tcp = check.tcp.as_ref().ok_or(InvalidCheck::Missing("tcp"))?;
                Ok(Probe::Tcp { address: address(tcp.protocol, tcp.port)? })
            }
            CheckType::Unknown => Err(InvalidCheck::UnknownType),
        }
    }

    pub(super) fn of_check(check: &CheckInfo, task: &Task, place: &Place<'_>) -> Result<Probe, InvalidCheck> {
        match check.r#type() {
            CheckType::Command => {
                place.command(&check.command.as_ref().ok_or(InvalidCheck::Missing("command"))?.command, task)
            }
            CheckType::Http => Probe::http(check.http.as_ref().ok_or(InvalidCheck::Missing("http"))?),
            CheckType::Tcp => {
                Ok(Probe::Tcp { address: address(None, check.tcp.as_ref().ok_or(InvalidCheck::Missing("tcp"))?.port)? })
            }
            CheckType::Unknown => Err(InvalidCheck::UnknownType),
        }
    }

    fn http(http: &HttpCheck) -> Result<Probe, InvalidCheck> {
        let path = http.path.clone().unwrap_or_default();
        if path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(InvalidCheck::Path(path));
        }
        let path = if path.is_empty() { "/".to_owned() } else { path };
        Ok(Probe::Http {
            address: address(http.protocol, http.port)?,
            path,
            tls: http.scheme.as_deref() == Some("https"),
        })
    }

    /// Starts the probe.
    pub(super) fn start(&self, network: &Network) -> Result<Probing, StartError> {
        match self {
            Probe::Command(spec) => match spec.working_dir.as_deref().and_then(owner) {
                Some(user) => spawn(&Spec { user: Some(user), ..(**spec).clone() }),
                None => spawn(spec),
            },
            Probe::Inside(inside) => elsewhere(inside.spec()),
            Probe::Session(session) => elsewhere(session.spec()),
            Probe::Http { tls: true, .. } => self.follow(network),
            Probe::Http { address, path, tls: false } => {
                let request =
                    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
                let exchange = network.enter(|| Exchange::send(&Endpoint::Tcp(*address), request.as_bytes()));
                Ok(Probing::Socket(Waiting::Answer(exchange?)))
            }
            Probe::Tcp { address } => {
                let socket = network.enter(|| Socket::open(&Endpoint::Tcp(*address)))?;
                Ok(Probing::Socket(Waiting::Connect(socket)))
            }
        }
    }

    /// Asks by `curl`, following redirects. The exit code is 0 if the last answer is good, 1 without an answer, and
    /// otherwise the status less 300: a whole one (400 to 555) does not fit in it.
    pub(super) fn follow(&self, network: &Network) -> Result<Probing, StartError> {
        let Probe::Http { address, path, tls } = self else { return Err(StartError::NotHttp) };
        let scheme = if *tls { "https" } else { "http" };
        let script = "code=$(curl -s -S -L -k -w '%{http_code}' -o /dev/null -g \"$1\") || exit 1; \
                      if [ \"$code\" -lt 400 ]; then exit 0; else exit $((code - 300)); fi";
        let argv = ["sh", "-c", script, "sh", &format!("{scheme}://{address}{path}")].map(OsString::from).into();
        let mut spec = Spec::new(Program::Argv { file: "/bin/sh".into(), argv });
        spec.environment = std::env::vars_os().collect();
        spec.isolation.network = network.namespace();
        to_stderr(&mut spec);
        spawn(&spec)
    }

    /// Whether this outcome is good health.
    pub(super) fn is_good(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Ended(status) => status.success(),
            Outcome::Status(status) => (200..400).contains(status),
            Outcome::Connected(connected) => *connected,
            Outcome::Redirected | Outcome::Nothing(_) => false,
        }
    }

    /// The check's status for this outcome.
    pub(super) fn result(&self, outcome: &Outcome) -> state::Result {
        match (self, outcome) {
            (Probe::Command(_) | Probe::Inside(_) | Probe::Session(_), Outcome::Ended(status)) => {
                state::Result::Command(status.code())
            }
            (Probe::Command(_) | Probe::Inside(_) | Probe::Session(_), _) => state::Result::Command(None),
            (Probe::Http { .. }, Outcome::Status(status)) => state::Result::Http(Some(u32::from(*status))),
            (Probe::Http { .. }, Outcome::Ended(status)) => state::Result::Http(curl_status(*status)),
            (Probe::Http { .. }, _) => state::Result::Http(None),
            (Probe::Tcp { .. }, Outcome::Connected(connected)) => state::Result::Tcp(Some(*connected)),
            // A connection that could not even be begun was refused.
            (Probe::Tcp { .. }, _) => state::Result::Tcp(Some(false)),
        }
    }
}

/// The HTTP status in the exit code of [`Probe::follow`]; successful ones are not distinguished.
fn curl_status(status: WaitStatus) -> Option<u32> {
    match status.code()? {
        0 => Some(200),
        code @ 100.. => u32::try_from(code + 300).ok(),
        _ => None,
    }
}

impl Probing {
    /// Ends a probe that is not needed any more.
    pub(super) fn abandon(self) {
        if let Probing::Process { pid, line: None } = self
            && let Err(error) = containers::destroy(pid, None, DESTROY_LIMIT)
        {
            stdio::err!("{error}");
        }
    }
}

impl Waiting {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Waiting::Connect(socket) => socket.fd(),
            Waiting::Answer(exchange) => exchange.fd(),
        }
    }

    pub(super) fn interest(&self) -> PollFlags {
        match self {
            Waiting::Connect(_) => PollFlags::OUT,
            Waiting::Answer(exchange) => exchange.interest(),
        }
    }

    /// The outcome, if this was it.
    pub(super) fn on_ready(&mut self, found: PollFlags) -> Option<Outcome> {
        match self {
            Waiting::Connect(socket) => match socket.ready(found & !PollFlags::IN, &mut |_| {}) {
                Ok(_) => Some(Outcome::Connected(true)),
                Err(_) => Some(Outcome::Connected(false)),
            },
            Waiting::Answer(exchange) => {
                let result = exchange.on_ready(found);
                // The head is all that is asked for; what comes after it may be long, or break off.
                match (exchange.status(), result) {
                    (Some(301 | 302 | 303 | 307 | 308), _) => Some(Outcome::Redirected),
                    (Some(status), _) => Some(Outcome::Status(status)),
                    (None, Err(error)) => Some(Outcome::Nothing(base::error_chain(&error))),
                    (None, Ok(_)) => None,
                }
            }
        }
    }
}

/// The owner of a task's sandbox, if he is not the executor's own user: the task runs as him. (The user database is not
/// asked: that would bring most of the C library's name services into a program that is started for every task.)
fn owner(sandbox: &Path) -> Option<User> {
    let metadata = std::fs::metadata(sandbox).ok()?;
    let (uid, gid) = (metadata.uid(), metadata.gid());
    let user = User { name: uid.to_string(), uid, gid, groups: vec![gid] };
    Some(user).filter(|user| !user.is_current())
}

/// Starts a process that carries the command out elsewhere.
fn elsewhere(made: std::io::Result<(Spec, PipeWriter)>) -> Result<Probing, StartError> {
    let (mut spec, line) = made?;
    to_stderr(&mut spec);
    match spawn(&spec)? {
        Probing::Process { pid, .. } => Ok(Probing::Process { pid, line: Some(line) }),
        other => Ok(other),
    }
}

fn spawn(spec: &Spec) -> Result<Probing, StartError> {
    let child = Launcher::posix().spawn(spec)?;
    Ok(Probing::Process { pid: child.pid(), line: None })
}

/// A probe's output goes to standard error, so that standard output has the task's only.
pub(super) fn to_stderr(spec: &mut Spec) {
    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        spec.stdout = Output::Fd(Arc::new(stderr));
    }
    spec.stderr = Output::Inherit;
}

/// The task's own address, as the executor reaches it.
fn address(protocol: Option<i32>, port: u32) -> Result<SocketAddr, InvalidCheck> {
    let port = u16::try_from(port).map_err(|_| InvalidCheck::Port(port))?;
    let ip = if protocol == Some(Protocol::IPv6 as i32) {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    };
    Ok(SocketAddr::new(ip, port))
}
