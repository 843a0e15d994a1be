//! One probe of a task: a command, an HTTP request, or a TCP connection.
//!
//! This process performs plain HTTP itself. TLS and redirects are left to `curl`, as Mesos leaves all of HTTP.

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
use super::location::{CheckLocation, Network};
use super::session::Session;
use super::state;
use crate::docker::DockerExec;
use crate::environment::Endpoint;
use crate::exchange::Exchange;
use crate::messages::{CheckInfo, CheckType, HealthCheck, HttpCheck, Protocol, Task};
use crate::socket::Socket;

/// Maximum time until the processes of an abandoned probe have ended.
const DESTROY_LIMIT: Duration = Duration::from_secs(10);

/// Method of a probe.
#[derive(Debug)]
pub(super) enum Probe {
    Command(Box<Spec>),
    /// A command inside a Docker container.
    DockerExec(Box<DockerExec>),
    /// A command in a session.
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

/// A running probe.
#[derive(Debug)]
pub(super) enum Probing {
    Process {
        pid: i32,
        /// Writing end of the process's standard input. Closing it tells the process that its result is not needed any
        /// more. `None` for a process that is killed then.
        line: Option<PipeWriter>,
    },
    Socket(Waiting),
}

/// A running probe that waits for the network.
#[derive(Debug)]
pub(super) enum Waiting {
    Connect(Socket),
    Answer(Exchange),
}

/// Outcome of a probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ended(WaitStatus),
    Status(u16),
    /// The response is a redirect.
    Redirected,
    Connected(bool),
    /// The probe has no result, for this reason.
    Nothing(String),
}

impl Probe {
    pub(super) fn of_health_check(
        check: &HealthCheck,
        task: &Task,
        location: &CheckLocation<'_>,
    ) -> Result<Probe, InvalidCheck> {
        match check.r#type() {
            CheckType::Command => {
                location.command(check.command.as_deref().ok_or(InvalidCheck::Missing("command"))?, task)
            }
            CheckType::Http => Probe::http(check.http.as_ref().ok_or(InvalidCheck::Missing("http"))?),
            CheckType::Tcp => {
                let tcp = check.tcp.as_ref().ok_or(InvalidCheck::Missing("tcp"))?;
                Ok(Probe::Tcp { address: address(tcp.protocol, tcp.port)? })
            }
            CheckType::Unknown => Err(InvalidCheck::UnknownType),
        }
    }

    pub(super) fn of_check(
        check: &CheckInfo,
        task: &Task,
        location: &CheckLocation<'_>,
    ) -> Result<Probe, InvalidCheck> {
        match check.r#type() {
            CheckType::Command => {
                location.command(&check.command.as_ref().ok_or(InvalidCheck::Missing("command"))?.command, task)
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
            Probe::DockerExec(exec) => elsewhere(exec.spec()),
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

    /// Starts `curl` for the request, which follows redirects. The exit code is 0 if the last response is successful, 1
    /// without a response, and otherwise the status minus 300: a whole one (400 to 555) does not fit in it.
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

    /// Returns whether this outcome means that the task is healthy.
    pub(super) fn is_good(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Ended(status) => status.success(),
            Outcome::Status(status) => (200..400).contains(status),
            Outcome::Connected(connected) => *connected,
            Outcome::Redirected | Outcome::Nothing(_) => false,
        }
    }

    /// Converts an outcome to the result of a check.
    pub(super) fn result(&self, outcome: &Outcome) -> state::Result {
        match (self, outcome) {
            (Probe::Command(_) | Probe::DockerExec(_) | Probe::Session(_), Outcome::Ended(status)) => {
                state::Result::Command(status.code())
            }
            (Probe::Command(_) | Probe::DockerExec(_) | Probe::Session(_), _) => state::Result::Command(None),
            (Probe::Http { .. }, Outcome::Status(status)) => state::Result::Http(Some(u32::from(*status))),
            (Probe::Http { .. }, Outcome::Ended(status)) => state::Result::Http(curl_status(*status)),
            (Probe::Http { .. }, _) => state::Result::Http(None),
            (Probe::Tcp { .. }, Outcome::Connected(connected)) => state::Result::Tcp(Some(*connected)),
            // A connection that could not be started was refused.
            (Probe::Tcp { .. }, _) => state::Result::Tcp(Some(false)),
        }
    }
}

/// Returns the HTTP status from the exit code of [`Probe::follow`]; successful statuses are not distinguished.
fn curl_status(status: WaitStatus) -> Option<u32> {
    match status.code()? {
        0 => Some(200),
        code @ 100.. => u32::try_from(code + 300).ok(),
        _ => None,
    }
}

impl Probing {
    /// Ends a probe whose outcome is not needed any more.
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

    /// Handles the result of a wait. Returns the outcome once the probe has ended.
    pub(super) fn on_ready(&mut self, found: PollFlags) -> Option<Outcome> {
        match self {
            Waiting::Connect(socket) => match socket.ready(found & !PollFlags::IN, &mut |_| {}) {
                Ok(_) => Some(Outcome::Connected(true)),
                Err(_) => Some(Outcome::Connected(false)),
            },
            Waiting::Answer(exchange) => {
                let result = exchange.on_ready(found);
                // Only the head is needed; the body may be long, or incomplete.
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

/// Returns the owner of a task's sandbox if that is not the executor's own user: the task runs as the owner. (The user
/// database is not read: that would add most of the C library's name services to a program that is started for every
/// task.)
fn owner(sandbox: &Path) -> Option<User> {
    let metadata = std::fs::metadata(sandbox).ok()?;
    let (uid, gid) = (metadata.uid(), metadata.gid());
    let user = User { name: uid.to_string(), uid, gid, groups: vec![gid] };
    Some(user).filter(|user| !user.is_current())
}

/// Starts a process that runs the command elsewhere.
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

/// Sends a probe's output to standard error, so that standard output contains only the task's.
pub(super) fn to_stderr(spec: &mut Spec) {
    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        spec.stdout = Output::Fd(Arc::new(stderr));
    }
    spec.stderr = Output::Inherit;
}

/// Returns the loopback address of the task, at which the executor reaches it.
fn address(protocol: Option<i32>, port: u32) -> Result<SocketAddr, InvalidCheck> {
    let port = u16::try_from(port).map_err(|_| InvalidCheck::Port(port))?;
    let ip = if protocol == Some(Protocol::IPv6 as i32) {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    };
    Ok(SocketAddr::new(ip, port))
}
