//! The process that runs one container: it has it created and started, copies what it writes to its own standard output and
//! error, and ends with the container's exit code. What becomes of it, it tells on its standard input, a pipe.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use serde_json::Value;

use super::client::{Client, request};
use super::frames::Frames;
use super::image::words;
use super::{CREATE, IMAGE, LOGIN, NAME, PULL, SINCE, SOCKET};

/// A longer description of a container is not handed on.
const DESCRIPTION_MAX: usize = 96 * 1024;

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
    match container.run(std::env::var(CREATE).ok().as_deref()) {
        Ok(code) => ExitCode::from(code),
        Err(words) => {
            eprintln!("{words}");
            tell("failed", &words);
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to whoever has started us.
fn tell(kind: &str, words: &str) {
    let line = format!("{kind} {}\n", words.replace(['\n', '\r'], " "));
    // Nobody may be listening any more.
    let _ = rustix::io::write(io::stdin().as_fd(), line.as_bytes());
}

struct Container {
    client: Client,
    name: String,
    image: String,
    pull: bool,
    login: String,
    /// Set if it has been started already.
    since: Option<String>,
}

impl Container {
    /// Runs the container; it is created and started first, unless that has been done already.
    fn run(&self, create: Option<&str>) -> Result<u8, String> {
        let name = &self.name;
        if let Some(create) = create {
            self.client.make(name, &self.image, &self.login, self.pull, create)?;
        }
        let copier = self.copy_output();
        if self.since.is_none() {
            self.client
                .call("POST", &format!("/containers/{name}/start"), None, None)
                .map_err(words("Failed to start the Docker container"))?;
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
            .map_err(words("Failed to wait for the Docker container"))?;
        // What it has written last comes before its end.
        let _ = copier.join();
        if self.inspect()?["State"]["OOMKilled"] == true {
            tell("ended", "The container has run out of memory");
        }
        let code = waited["StatusCode"].as_u64().unwrap_or(255);
        Ok(u8::try_from(code).unwrap_or(255))
    }

    fn inspect(&self) -> Result<Value, String> {
        let inspected = self.client.quick("GET", &format!("/containers/{}/json", self.name), None);
        inspected.map_err(words("Failed to inspect the Docker container"))
    }

    /// Copies what the container writes, from its first byte on, until it has ended; of one that runs already what it has written
    /// since then, as far as the daemon has kept it.
    fn copy_output(&self) -> std::thread::JoinHandle<()> {
        let client = self.client.clone();
        let name = &self.name;
        let (method, path) = match &self.since {
            None => ("POST", format!("/containers/{name}/attach?stream=1&stdout=1&stderr=1")),
            Some(since) => ("GET", format!("/containers/{name}/logs?follow=1&stdout=1&stderr=1&since={since}")),
        };
        let (attached, wait) = std::sync::mpsc::channel();
        let copier = std::thread::spawn(move || {
            let mut frames = Frames::default();
            let copied = client.stream(&request(method, &path, None), None, &mut |status, data| {
                // The head says that its output has somewhere to go: it may start. (The daemon's log is not asked for as well: what
                // comes while that is read would come twice.)
                let _ = attached.send(());
                if status == 200 {
                    frames.feed(data);
                }
                status != 200
            });
            if let Err(error) = copied {
                eprintln!("What the container writes is lost: {}", crate::with_causes(&error));
            }
        });
        // Or the copier has failed: then it is over with the sender.
        let _ = wait.recv();
        copier
    }
}

/// The container's address on its network; empty on the host's.
fn address(inspected: &Value) -> String {
    let settings = &inspected["NetworkSettings"];
    let networks = settings["Networks"].as_object().into_iter().flat_map(|networks| networks.values());
    let mut addresses =
        networks.filter_map(|network| network["IPAddress"].as_str()).chain(settings["IPAddress"].as_str());
    addresses.find(|address| !address.is_empty()).unwrap_or_default().to_owned()
}
