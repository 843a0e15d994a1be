//! The process that runs one container: it creates and starts the container, copies its output to its own standard
//! output and error, and exits with the container's exit code. It reports on its standard input, a pipe.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use containers::{EndSignal, EndSignals};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde_json::Value;

use super::client::{Client, ClientError, request};
use super::error::{DockerError, failed};
use super::frames::Frames;
use super::{CREATE, IMAGE, LOGIN, NAME, PULL, SINCE, SOCKET};

/// Maximum length of a container's description; a longer one is not reported.
const DESCRIPTION_MAX: usize = 96 * 1024;
/// Maximum length of the daemon's error text about missing output; the rest is cut.
pub(super) const WORDS_MAX: usize = 1024;

/// Runs the container that the environment describes.
pub(crate) fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let container = Container {
        client: Client::new(variable(SOCKET)),
        name: variable(NAME),
        image: variable(IMAGE),
        pull: variable(PULL) == "1",
        login: variable(LOGIN),
        since: std::env::var(SINCE).ok(),
    };
    let create = std::env::var(CREATE).ok();
    if create.is_none()
        && let Err(error) = end_with_parent()
    {
        stdio::err!("Signals cannot be waited for: {error}");
    }
    match container.run(create.as_deref()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let message = base::error_chain(&error);
            stdio::err!("{message}");
            tell("failed", &message);
            ExitCode::FAILURE
        }
    }
}

/// Makes the termination signals effective only together with the end of the agent that has started this process. When
/// all processes of a unit are terminated, the agent would otherwise see this one end first, and end the container; a
/// returning agent starts another one. After its agent has ended, it stays for the next one, and ignores these signals.
///
/// # Errors
/// The signals cannot be received.
fn end_with_parent() -> io::Result<()> {
    let (signals, agent) = (EndSignals::open()?, getppid());
    let wait = move || {
        let mut agent_ended = false;
        while let Ok(signal) = signals.wait() {
            match signal {
                EndSignal::ParentEnded => agent_ended |= getppid() != agent,
                EndSignal::Asked if agent_ended => {}
                EndSignal::Asked => {
                    let asked = set_parent_process_death_signal(Some(Signal::KILL));
                    // The agent may have ended just before the death signal was set, or before the signal was read.
                    if asked.is_ok() && getppid() != agent {
                        containers::end_now(1);
                    }
                }
            }
        }
    };
    std::thread::Builder::new().spawn(wait).map(drop)
}

/// Writes a report to the process that has started this one.
fn tell(kind: &str, words: &str) {
    let line = format!("{kind} {}\n", words.replace(['\n', '\r'], " "));
    // The other end may be closed.
    let _ = rustix::io::write(io::stdin().as_fd(), line.as_bytes());
}

struct Container {
    client: Client,
    name: String,
    image: String,
    pull: bool,
    login: String,
    /// Time of the last copied output if the container was started already, empty if its output is elsewhere; `None` if
    /// it was not started yet.
    since: Option<String>,
}

impl Container {
    /// Runs the container. It is created and started first, unless that was done already.
    fn run(&self, create: Option<&str>) -> Result<u8, DockerError> {
        let name = &self.name;
        if let Some(create) = create {
            self.client.make(name, &self.image, &self.login, self.pull, create)?;
        }
        let copier = self.copy_output();
        if self.since.is_none() {
            self.client
                .call("POST", &format!("/containers/{name}/start"), None, None)
                .map_err(failed("Failed to start the Docker container"))?;
        }
        let inspected = self.inspect()?;
        let pid = inspected["State"]["Pid"].as_i64().unwrap_or(0);
        let described = inspected.to_string();
        if described.len() <= DESCRIPTION_MAX {
            tell("inspected", &described);
        }
        tell("started", &format!("{pid} {}", address(&inspected)));
        let waited = self
            .client
            .call("POST", &format!("/containers/{name}/wait"), None, None)
            .map_err(failed("Failed to wait for the Docker container"))?;
        // The last output is copied before the end is reported.
        let _ = copier.join();
        if self.inspect()?["State"]["OOMKilled"] == true {
            tell("ended", "The container has run out of memory");
        }
        let code = waited["StatusCode"].as_u64().unwrap_or(255);
        Ok(u8::try_from(code).unwrap_or(255))
    }

    fn inspect(&self) -> Result<Value, DockerError> {
        let inspected = self.client.quick("GET", &format!("/containers/{}/json", self.name), None);
        inspected.map_err(failed("Failed to inspect the Docker container"))
    }

    /// Copies the container's output, from its first byte on, until it has ended. The output of a container that was
    /// started already is copied from `since` on, as far as the daemon has kept it.
    fn copy_output(&self) -> std::thread::JoinHandle<()> {
        let client = self.client.clone();
        let name = &self.name;
        let asked = match self.since.as_deref() {
            None => Some(("POST", format!("/containers/{name}/attach?stream=1&stdout=1&stderr=1"))),
            Some("") => None,
            Some(since) => Some(("GET", format!("/containers/{name}/logs?follow=1&stdout=1&stderr=1&since={since}"))),
        };
        let (attached, wait) = std::sync::mpsc::channel();
        let copier = std::thread::spawn(move || {
            let Some((method, path)) = asked else { return };
            let copied = copy(&client, &request(method, &path, None), &|| {
                // The receiver may be gone.
                let _ = attached.send(());
            });
            if let Err(error) = copied {
                stdio::err!("The container's output is lost: {}", base::error_chain(&error));
            }
        });
        // If the copier has failed, the sender is gone and the wait ends.
        let _ = wait.recv();
        copier
    }
}

/// An error of copying output.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the Docker daemon answers {status}: {message}")]
    Refused { status: u16, message: String },
}

/// Copies the response to a request to the outputs until it ends; `attached` is called when it starts.
fn copy(client: &Client, request: &[u8], attached: &dyn Fn()) -> Result<(), CopyError> {
    let (mut frames, mut refusal) = (Frames::default(), Vec::new());
    let status = client.stream(request, None, &mut |status, data| {
        // After the head all output is received, so the container may start. (The daemon's log is not requested as
        // well: output that arrives meanwhile would arrive twice.)
        attached();
        match status {
            200 => frames.feed(data),
            _ => refusal.extend_from_slice(data),
        }
        refusal.len() > WORDS_MAX
    });
    match status? {
        200 => Ok(()),
        status => {
            refusal.truncate(WORDS_MAX);
            Err(CopyError::Refused { status, message: String::from_utf8_lossy(&refusal).trim_end().to_owned() })
        }
    }
}

/// Returns the container's address on its network; empty for the host's network.
pub fn address(inspected: &Value) -> String {
    let settings = &inspected["NetworkSettings"];
    let networks = settings["Networks"].as_object().into_iter().flat_map(|networks| networks.values());
    let mut addresses =
        networks.filter_map(|network| network["IPAddress"].as_str()).chain(settings["IPAddress"].as_str());
    addresses.find(|address| !address.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_daemon_that_gives_no_output_is_reported() {
        let socket = std::env::temp_dir().join(format!("tepui-docker-run-{}", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let daemon = UnixListener::bind(&socket).unwrap();
        let served = std::thread::spawn(move || {
            for (status, body) in [("200 OK", ""), ("500 Internal Server Error", "{\"message\":\"no log\"}\n")] {
                let (mut stream, _) = daemon.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            }
        });
        let heard = std::cell::Cell::new(0);
        let client = Client::new(&socket);
        let ask = || copy(&client, &request("GET", "/containers/x/logs", None), &|| heard.set(heard.get() + 1));
        assert!(ask().is_ok() && heard.get() > 0);
        assert_eq!(ask().unwrap_err().to_string(), "the Docker daemon answers 500: {\"message\":\"no log\"}");
        served.join().unwrap();
        std::fs::remove_file(&socket).unwrap();
    }
}
