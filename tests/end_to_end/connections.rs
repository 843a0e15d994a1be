//! Tests idle connections of a client without a password: master and agent keep descriptors for their own work, and
//! continue.
//!
//! The crate `wire` tests which connection is closed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;

use crate::process::{Process, ToItsEnd};
use crate::support::{Daemon, Directory, PATIENCE, call, tepui, until};

/// Limit of open files of a daemon.
const OPEN_FILES: usize = 400;
/// Number of idle connections to a daemon.
const IDLE: usize = 600;

struct Cluster {
    directory: Directory,
    master: Daemon,
    agent: Daemon,
    address: String,
    agent_address: String,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Cluster {
    fn start() -> Cluster {
        let directory = Directory::new("connections");
        let mut of_master = words(&["master", "--ip=127.0.0.1", "--port=0", "--allocation_interval=50ms"]);
        of_master.push(format!("--work_dir={}", directory.join("m")));
        let mut master = Daemon::start_with_open_files(OPEN_FILES, &directory.path().join("m.log"), &of_master);
        let address = master.address().expect("the master runs");
        let mut of_agent = words(&["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix"]);
        of_agent.extend([
            "--resources=cpus:2;mem:256;disk:256".to_owned(),
            "--registration_backoff_factor=10ms".to_owned(),
            format!("--master={address}"),
            format!("--work_dir={}", directory.join("a")),
            format!("--runtime_dir={}", directory.join("r")),
        ]);
        let mut agent = Daemon::start_with_open_files(OPEN_FILES, &directory.path().join("a.log"), &of_agent);
        let agent_address = agent.address().expect("the agent runs");
        let cluster = Cluster { directory, master, agent, address, agent_address };
        until("the agent is registered", || cluster.is_registered());
        cluster
    }

    fn metric(address: &str, name: &str) -> f64 {
        let metrics = call(address, "GET", "/metrics/snapshot");
        metrics.and_then(|metrics| metrics[name].as_f64()).unwrap_or_default()
    }

    fn is_registered(&self) -> bool {
        Cluster::metric(&self.agent_address, "slave/registered") == 1.0
    }

    /// Runs a task of a framework that checkpoints.
    fn runs_a_task(&mut self, name: &str) {
        let file = self.directory.join(name);
        let command = format!("--command=echo ran > {file}");
        let mut execute: Command = tepui();
        execute.args(["execute", "--checkpoint=true", "--resources=cpus:1;mem:32", "--master", &self.address]);
        let output = Process::start(execute.arg(command)).output();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "ran\n");
        assert!(!self.agent.ended() && !self.master.ended(), "a daemon has ended");
        for address in [&self.address, &self.agent_address] {
            let state = call(address, "GET", "/state").expect("a daemon answers");
            assert!(state["id"].is_string(), "{address}");
        }
    }
}

/// Returns whether the server has closed a connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    !matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Opens connections of all kinds that wait for their client: without a byte, within a head, within a body, after a
/// request.
fn idle_connections(address: &str) -> Vec<TcpStream> {
    let begun = ["", "GET /sta", "POST /api/v1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", "GET /health HTTP/1.1\r\n\r\n"];
    let connect = |number: usize| {
        let mut stream = TcpStream::connect_timeout(&address.parse().unwrap(), PATIENCE).unwrap();
        // A connection that is closed already accepts nothing.
        let _ = stream.write_all(begun[number % begun.len()].as_bytes());
        stream
    };
    (0..IDLE).map(connect).collect()
}

#[test]
fn idle_connections_leave_daemons_their_descriptors() {
    let mut cluster = Cluster::start();
    let flags = call(&cluster.agent_address, "GET", "/flags").unwrap();
    assert_eq!(flags["flags"]["max_connections"], Value::from("200"));
    for (part, address) in [("agent", cluster.agent_address.clone()), ("master", cluster.address.clone())] {
        let idle = idle_connections(&address);
        let limit = Cluster::metric(&address, "connections/limit") as usize;
        assert_eq!(limit, OPEN_FILES / 2, "{part}");
        until("idle connections are closed to admit others", || {
            let closed = idle.iter().filter(|stream| is_closed(stream)).count();
            closed >= IDLE - limit
        });
        assert!(Cluster::metric(&address, "connections/displaced") >= (IDLE - limit) as f64);
        cluster.runs_a_task(part);
        assert_eq!(Cluster::metric(&address, "connections/refused"), 0.0);
        assert!(cluster.is_registered());
        drop(idle);
    }
    for log in ["a.log", "m.log"] {
        let text = std::fs::read_to_string(cluster.directory.join(log)).unwrap();
        assert!(text.contains("raise --max_connections"), "{log} does not name the flag");
        assert!(!text.contains("Too many open files"), "{log}");
    }
}

#[test]
fn more_connections_than_open_files_are_refused_at_the_start() {
    let directory = Directory::new("connections-flag");
    for part in ["master", "agent"] {
        let mut command = tepui();
        command.args([part, "--ip=127.0.0.1", "--port=0", "--max_connections=18446744073709551615"]);
        if part == "agent" {
            command.arg("--master=127.0.0.1:1");
        }
        let output = command.arg(format!("--work_dir={}", directory.join(part))).run();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("--max_connections") && text.contains("ulimit -n"), "{text}");
    }
}
