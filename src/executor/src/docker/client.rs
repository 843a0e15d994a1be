//! A client of the Docker daemon's HTTP API over its unix socket, with the calls that tasks need. It blocks.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{EXECUTOR, PREFIX};
use crate::blocking::{self, NoAnswer};

/// Maximum length of responses that are not streams, in bytes; longer ones are cut.
const BODY_LIMIT: usize = 16 << 20;
/// Time limit of calls that need not wait.
const QUICK: Duration = Duration::from_secs(30);

/// An error of a call to the Docker daemon.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon cannot be reached.
    #[error("The request to the Docker daemon at '{}' failed", socket.display())]
    Io {
        /// Path of the daemon's socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The response is not HTTP.
    #[error("The Docker daemon's answer cannot be read: {0}")]
    Malformed(String),
    /// The daemon's response is an error.
    #[error("{message}")]
    Refused {
        /// Status of the response.
        status: u16,
        /// Message of the response.
        message: String,
    },
}

/// A container in the daemon's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the container, without the slash before it.
    pub name: String,
    /// Whether the container runs.
    pub running: bool,
    /// Time of creation, in seconds since the epoch.
    pub created: u64,
    /// Whether the container is a custom executor of a framework.
    pub executor: bool,
}

impl Listed {
    /// Returns the containers of agents in the daemon's list. Entries without the fields of a container are omitted.
    pub fn all(list: &Value) -> Vec<Listed> {
        let one = |container: &Value| {
            let name = container["Names"][0].as_str()?.trim_start_matches('/').to_owned();
            let running = container["State"] != "exited" && container["State"] != "dead";
            let executor = container["Labels"].get(EXECUTOR).is_some();
            Some(Listed { name, running, created: container["Created"].as_u64().unwrap_or(0), executor })
        };
        let all = list.as_array().into_iter().flatten().filter_map(one);
        all.filter(|container| container.name.starts_with(PREFIX)).collect()
    }
}

/// A client of a Docker daemon. Each call opens a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

/// Returns the bytes of a request.
pub(super) fn request(method: &str, path: &str, body: Option<&str>) -> Vec<u8> {
    request_with("", method, path, body)
}

/// Returns the bytes of a request with further header lines.
pub(super) fn request_with(more: &str, method: &str, path: &str, body: Option<&str>) -> Vec<u8> {
    let body = body.unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: docker\r\n{kind}{more}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

impl Client {
    /// Creates a client of the daemon that listens on this socket.
    pub fn new(socket: impl Into<PathBuf>) -> Client {
        Client { socket: socket.into() }
    }

    fn failed(&self, source: io::Error) -> ClientError {
        ClientError::Io { socket: self.socket.clone(), source }
    }

    /// Sends a request and passes the pieces of the response with its status to `sink`, until `sink` returns `true` or
    /// the response has ended.
    pub(super) fn stream(
        &self,
        request: &[u8],
        limit: Option<Duration>,
        sink: &mut dyn FnMut(u16, &[u8]) -> bool,
    ) -> Result<u16, ClientError> {
        let failed = |error| self.failed(error);
        let mut socket = UnixStream::connect(&self.socket).map_err(failed)?;
        socket.set_read_timeout(limit).map_err(failed)?;
        socket.write_all(request).map_err(failed)?;
        blocking::read(&mut socket, sink).map_err(|error| match error {
            NoAnswer::Lost(source) => self.failed(source),
            NoAnswer::Malformed(error) => ClientError::Malformed(error.to_string()),
            NoAnswer::None => ClientError::Malformed("there is none".to_owned()),
        })
    }

    /// Sends a request and returns the whole response.
    pub(super) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        limit: Option<Duration>,
    ) -> Result<Value, ClientError> {
        let mut text = Vec::new();
        let status = self.stream(&request(method, path, body), limit, &mut |_, data| {
            text.extend_from_slice(data);
            text.len() > BODY_LIMIT
        })?;
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        if (200..300).contains(&status) || status == 304 {
            return Ok(value);
        }
        let message = value["message"].as_str().map_or_else(
            || format!("The Docker daemon answers {status}: {}", String::from_utf8_lossy(&text)),
            str::to_owned,
        );
        Err(ClientError::Refused { status, message })
    }

    pub(super) fn quick(&self, method: &str, path: &str, body: Option<&str>) -> Result<Value, ClientError> {
        self.call(method, path, body, Some(QUICK))
    }

    /// Returns the version of the daemon.
    ///
    /// # Errors
    /// The daemon cannot be reached, or its response is an error.
    pub fn version(&self) -> Result<String, ClientError> {
        Ok(self.quick("GET", "/version", None)?["Version"].as_str().unwrap_or_default().to_owned())
    }

    /// Changes the limits of a container, as [`new_limits`](super::new_limits) returns them. The memory limit only
    /// grows: the kernel takes back none that is in use.
    ///
    /// # Errors
    /// The daemon cannot be reached, or cannot change the limits.
    pub fn resize(&self, name: &str, mut limits: Value) -> Result<(), ClientError> {
        let inspected = self.quick("GET", &format!("/containers/{name}/json"), None)?;
        let number = |name: &str| inspected["HostConfig"][name].as_i64().unwrap_or(0);
        match limits["Memory"].as_i64() {
            Some(memory) if memory > number("Memory") && number("Memory") > 0 => {
                let unlimited = number("MemorySwap") < 0;
                limits["MemorySwap"] = if unlimited { (-1).into() } else { memory.saturating_mul(2).into() };
            }
            _ => limits["Memory"] = number("Memory").into(),
        }
        gone_is_fine(self.quick("POST", &format!("/containers/{name}/update"), Some(&limits.to_string())))
    }

    /// Sends a signal to a container. A container that does not exist or does not run is not an error.
    ///
    /// # Errors
    /// The daemon cannot be reached, or its response is an error.
    pub fn kill(&self, name: &str, signal: &str) -> Result<(), ClientError> {
        gone_is_fine(self.quick("POST", &format!("/containers/{name}/kill?signal={signal}"), None))
    }

    /// Returns the processes of a running container, by their ids on the host.
    ///
    /// # Errors
    /// The daemon cannot be reached, or the container does not run.
    pub fn processes(&self, name: &str) -> Result<Vec<i32>, ClientError> {
        let listed = self.quick("GET", &format!("/containers/{name}/top?ps_args=-eo%20pid"), None)?;
        let rows = listed["Processes"].as_array().into_iter().flatten();
        Ok(rows.filter_map(|row| row[0].as_str()?.trim().parse().ok()).collect())
    }

    /// Ends a container if it runs, and deletes it.
    ///
    /// # Errors
    /// The daemon cannot be reached, or cannot delete the container.
    pub fn remove(&self, name: &str) -> Result<(), ClientError> {
        gone_is_fine(self.quick("DELETE", &format!("/containers/{name}?force=1&v=1"), None))
    }

    /// Returns all containers that an agent has started.
    ///
    /// # Errors
    /// The daemon cannot be reached, or its response is an error.
    pub fn containers(&self) -> Result<Vec<Listed>, ClientError> {
        // {"name":["^/mesos-"]}
        let path = "/containers/json?all=1&filters=%7B%22name%22%3A%5B%22%5E%2Fmesos-%22%5D%7D";
        let list = self.quick("GET", path, None)?;
        Ok(Listed::all(&list))
    }
}

fn gone_is_fine(answer: Result<Value, ClientError>) -> Result<(), ClientError> {
    match answer {
        Ok(_) | Err(ClientError::Refused { status: 404 | 409, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
