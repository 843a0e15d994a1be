//! The commands that run daemons, and the embedded cluster that other commands start.
//!
//! What a daemon does is in the crate `daemon`; here is only how the command line reaches it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Flags of `tepui local`.
#[derive(Debug, clap::Args)]
pub struct LocalArgs {
    /// How many agents to start
    #[arg(long, short = 'n', default_value_t = 1, value_name = "NUMBER")]
    pub agents: usize,
    /// Port of the master, on 127.0.0.1; 0 takes any free one
    #[arg(long, default_value_t = 5050)]
    pub port: u16,
    /// What each agent offers, such as cpus:4;mem:4096; by default, what the machine has
    #[arg(long, value_name = "RESOURCES")]
    pub resources: Option<String>,
    /// Folder for the state and the tasks' sandboxes; by default one that is removed at the end
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
}

/// Runs a master until it is told to end.
pub fn master(_flags: Vec<OsString>) -> Result<ExitCode> {
    bail!("this build has no daemons")
}

/// Runs an agent until it is told to end.
pub fn agent(_flags: Vec<OsString>) -> Result<ExitCode> {
    bail!("this build has no daemons")
}

/// Runs a master and agents until interrupted.
pub fn local(_args: LocalArgs) -> Result<ExitCode> {
    bail!("this build has no daemons")
}

/// What an embedded cluster is to be like.
#[derive(Debug)]
pub struct ClusterOptions {
    /// How many agents.
    pub agents: usize,
    /// What each agent offers, as in `--resources`.
    pub resources: String,
}

/// A cluster in this process; it ends when this is dropped.
pub trait Cluster {
    /// Where its master listens, as `host:port`.
    fn master(&self) -> String;

    /// The folder that holds its state and the sandboxes.
    fn work_dir(&self) -> PathBuf;

    /// Ends the cluster, and removes its folder unless `keep`.
    fn stop(self: Box<Self>, keep: bool) -> Result<()>;
}

/// Starts a cluster in this process, with its master on a free port.
///
/// # Errors
/// This machine does not let it: no free port, no place for the work folder.
pub fn start_cluster(_options: &ClusterOptions) -> Result<Box<dyn Cluster>> {
    bail!("this build has no daemons; name a running master with --master")
}
