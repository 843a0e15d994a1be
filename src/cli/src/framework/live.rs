//! The common part of commands of frameworks with workers: flags, the display until all work has ended, and the final
//! messages.
//!
//! A framework implements [`WorkerFramework`].

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use super::common::FrameworkArgs;
use super::view::{Displayed, UPDATE_INTERVAL, View};
use crate::interrupt::Interrupt;

/// Flags of every command that runs a framework with workers.
#[derive(Debug, clap::Args)]
pub(super) struct LiveArgs {
    /// Path of this program on the agents, for workers [default: the same path as here]
    #[arg(long, value_name = "PATH")]
    pub(super) worker_program: Option<PathBuf>,
    /// Address of this machine as workers reach it; detected if not given
    #[arg(long, value_name = "IP")]
    worker_address: Option<IpAddr>,
    /// Keep running after all work has ended, until interrupted
    #[arg(long)]
    pub(super) keep_running: bool,
    /// At the end, print everything as JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl LiveArgs {
    /// Returns the address of this machine at which workers reach it.
    pub(super) fn address(&self, framework: &FrameworkArgs) -> IpAddr {
        self.worker_address.unwrap_or_else(|| own_address(&framework.master))
    }
}

/// Returns this machine's address on the route to the first master whose name resolves; finding it sends nothing.
fn own_address(master: &str) -> IpAddr {
    let route = |host: &str| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        match host.contains(':') {
            true => socket.connect(host).ok()?,
            false => socket.connect((host, 0)).ok()?,
        }
        socket.local_addr().ok()
    };
    hosts(master).find_map(route).map_or(Ipv4Addr::LOCALHOST.into(), |address: SocketAddr| address.ip())
}

/// Returns the masters of `--master`, as `host[:port]`; for a ZooKeeper URL, the servers of ZooKeeper.
fn hosts(master: &str) -> impl Iterator<Item = &str> {
    let servers = match master.strip_prefix("zk://") {
        Some(rest) => rest.rsplit_once('@').map_or(rest, |(_, servers)| servers).split('/').next().unwrap_or_default(),
        None => master,
    };
    servers.split(',').map(|server| {
        let server = server.trim();
        let rest = server.strip_prefix("https://").or(server.strip_prefix("http://")).unwrap_or(server);
        rest.trim_end_matches('/')
    })
}

/// A framework with workers that runs in this process.
pub(super) trait WorkerFramework: Sized {
    /// Status of the framework.
    type Status: Displayed + Serialize;

    /// Returns the URL of its API.
    fn api(&self) -> String;

    /// Returns the current status.
    async fn current_status(&self) -> Result<Self::Status>;

    /// Waits for `after`, and returns the status and whether all work has ended.
    async fn next(&mut self, after: Duration) -> Result<(Self::Status, bool)>;

    /// Stops the framework; with `teardown` its tasks as well.
    async fn end(self, teardown: bool) -> Result<()>;

    /// Returns the names of the work that has failed.
    fn failed(status: &Self::Status) -> Vec<String>;
}

/// Shows a framework until all of its work has ended, or until an interrupt; only an interrupt ends it with `for_ever`.
/// `at_end` receives the final status.
///
/// # Errors
/// The framework cannot continue, or a part of its work has failed.
pub(super) async fn show<L: WorkerFramework>(
    mut service: L,
    interrupt: &Interrupt,
    (framework, args): (&FrameworkArgs, &LiveArgs),
    for_ever: bool,
    at_end: impl FnOnce(&L::Status) -> Result<()>,
) -> Result<ExitCode> {
    stdio::err!("the API is at {}", service.api());
    let mut view = View::new(std::io::stdout().is_terminal() && !args.json, args.json);
    let interrupted = watch(&mut service, interrupt, &mut view, for_ever || args.keep_running).await;
    // The final status must be read before the scheduler ends.
    let status = service.current_status().await;
    let over = !matches!(interrupted, Ok(true));
    service.end(over || framework.state_dir.is_none()).await?;
    interrupted?;
    let status = status?;
    at_end(&status)?;
    match args.json {
        true => drop(crate::read::print(&serde_json::to_string_pretty(&status)?)?),
        false => view.last(&status)?,
    }
    if !over {
        return Ok(ExitCode::from(130));
    }
    let failed = L::failed(&status);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the status until all work has ended, or until interrupted. Returns `true` if interrupted.
async fn watch<L: WorkerFramework>(
    service: &mut L,
    interrupt: &Interrupt,
    view: &mut View,
    for_ever: bool,
) -> Result<bool> {
    let wake_signal = interrupt.wake_signal();
    loop {
        tokio::select! {
            () = wake_signal.notified() => return Ok(true),
            next = service.next(UPDATE_INTERVAL) => {
                let (status, over) = next?;
                view.show(&status)?;
                if over && !for_ever {
                    return Ok(false);
                }
            }
        }
        if interrupt.is_set() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_are_found_in_every_form() {
        for (master, expected) in [
            ("h:5050", &["h:5050"][..]),
            ("h:1, i", &["h:1", "i"]),
            ("https://h:1,http://i:2/", &["h:1", "i:2"]),
            ("zk://a:2181,b:2181/mesos", &["a:2181", "b:2181"]),
            ("zk://u:p@s/w@a:2181,b:2181/mesos/x", &["a:2181", "b:2181"]),
        ] {
            assert_eq!(hosts(master).collect::<Vec<_>>(), expected, "{master}");
        }
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(own_address("no.such.host.invalid:1,https://127.0.0.1:5050"), loopback);
    }
}
