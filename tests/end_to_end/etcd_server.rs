//! Servers of etcd, and requests of tests to them.

use std::process::{Child, Command, Stdio};

use crate::support::{Directory, free_port, until};

/// A server of etcd, which is killed when this is dropped.
pub struct Etcd {
    process: Option<Child>,
    pub port: u16,
    peer_port: u16,
    name: String,
    /// Members of its cluster: names and URLs.
    cluster: String,
    data: String,
    /// Directory of its certificates, if it has TLS and requires certificates of clients.
    certificates: Option<String>,
}

impl Etcd {
    /// Starts a server; `None` if etcd is not installed.
    pub fn start(directory: &Directory) -> Option<Etcd> {
        Etcd::start_with(directory, None)
    }

    pub fn start_with(directory: &Directory, certificates: Option<String>) -> Option<Etcd> {
        let mut etcd = Etcd::prepared(directory, 1)?.pop()?;
        etcd.certificates = certificates;
        etcd.resume();
        Some(etcd)
    }

    /// Starts the members of one cluster, and waits until they serve.
    pub fn start_members(directory: &Directory, count: usize) -> Option<Vec<Etcd>> {
        let mut members = Etcd::prepared(directory, count)?;
        members.iter_mut().for_each(Etcd::begin);
        members.iter().for_each(Etcd::wait);
        Some(members)
    }

    fn prepared(directory: &Directory, count: usize) -> Option<Vec<Etcd>> {
        if Command::new("etcd").arg("--version").output().is_err() {
            println!("not run: it needs etcd");
            return None;
        }
        let names = (0..count).map(|index| (format!("e{index}"), free_port())).collect::<Vec<_>>();
        let cluster = names.iter().map(|(name, port)| format!("{name}=http://127.0.0.1:{port}"));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let member = |(name, peer_port): (String, u16)| {
            let data = directory.join(&format!("etcd-{name}"));
            Etcd {
                process: None,
                port: free_port(),
                peer_port,
                name,
                cluster: cluster.clone(),
                data,
                certificates: None,
            }
        };
        Some(names.into_iter().map(member).collect())
    }

    /// Starts the server with its existing data, and waits until it serves.
    pub fn resume(&mut self) {
        self.begin();
        self.wait();
    }

    /// Starts the server with its existing data.
    pub fn begin(&mut self) {
        let (url, peer_url) = (self.address(), format!("http://127.0.0.1:{}", self.peer_port));
        let mut command = Command::new("etcd");
        if let Some(directory) = &self.certificates {
            command.args(["--client-cert-auth", &format!("--trusted-ca-file={directory}/ca.pem")]);
            command.arg(format!("--cert-file={directory}/127.0.0.1.pem"));
            command.arg(format!("--key-file={directory}/127.0.0.1-key.pem"));
        }
        let process = command
            .args(["--data-dir", &self.data, "--log-level", "error", "--name", &self.name])
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &self.cluster])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    /// Waits until the server has a leader.
    fn wait(&self) {
        until("etcd serves", || self.control(&["endpoint", "health"]).0);
    }

    /// Returns whether this member leads its cluster.
    pub fn leads(&self) -> bool {
        let (_, text) = self.control(&["endpoint", "status", "--write-out=json"]);
        let status: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let status = &status[0]["Status"];
        status["leader"].is_number() && status["leader"] == status["header"]["member_id"]
    }

    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn address(&self) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Runs a command of `etcdctl`. Returns whether it succeeds, and its output.
    pub fn control(&self, words: &[&str]) -> (bool, String) {
        let mut command = Command::new("etcdctl");
        if let Some(directory) = &self.certificates {
            command.arg(format!("--cacert={directory}/ca.pem"));
            command.arg(format!("--cert={directory}/client.pem"));
            command.arg(format!("--key={directory}/client-key.pem"));
        }
        let output = command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.address(), "--dial-timeout=1s", "--command-timeout=2s"])
            .args(words)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn keys(&self) -> String {
        self.control(&["get", "--prefix", "--keys-only", "/"]).1
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.stop();
    }
}
