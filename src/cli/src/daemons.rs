//! The commands that run daemons: `tepui master`, `tepui agent`, `tepui local`.
//!
//! The daemons are in the crate `daemon`; this module only connects them with the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use daemon::flags::Part;
use daemon::local::LocalOptions;
use wire::client::Address;

use crate::connect::MasterArgs;

/// Time that the agents of a started cluster may take to register, also on a busy machine.
pub(crate) const READY: Duration = Duration::from_secs(60);

/// Flags of `tepui local`.
#[derive(Debug, clap::Args)]
pub struct LocalArgs {
    /// Number of agents; prints the master's address when they are registered
    #[arg(long, short = 'n', default_value_t = 1, value_name = "NUMBER")]
    pub agents: usize,
    /// Port of the master, on 127.0.0.1; 0 takes any free one
    #[arg(long, default_value_t = 5050)]
    pub port: u16,
    /// Resources of each agent, such as cpus:4;mem:4096; by default, what the machine has
    #[arg(long, value_name = "RESOURCES")]
    pub resources: Option<String>,
    /// Directory for the state and the tasks' sandboxes; by default one that is removed at the end
    #[arg(long, alias = "work_dir", value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
}

/// Runs a master until it is stopped.
pub fn master(flags: Vec<OsString>) -> Result<ExitCode> {
    daemon::process::run(Part::Master, &texts(flags)?)
}

/// Runs an agent until it is stopped.
pub fn agent(flags: Vec<OsString>) -> Result<ExitCode> {
    daemon::process::run(Part::Agent, &texts(flags)?)
}

fn texts(flags: Vec<OsString>) -> Result<Vec<String>> {
    let text = |flag: OsString| flag.into_string().map_err(|flag| anyhow!("the flag {flag:?} is not UTF-8"));
    flags.into_iter().map(text).collect()
}

/// Runs a master and agents until interrupted.
pub fn local(args: LocalArgs) -> Result<ExitCode> {
    crate::show_warnings();
    let given = args.work_dir.is_some();
    let work_dir = args.work_dir.map_or_else(temporary_directory, Ok)?;
    let options = LocalOptions {
        agents: args.agents,
        port: args.port,
        resources: args.resources,
        work_dir: work_dir.clone(),
        ..LocalOptions::default()
    };
    daemon::process::runtime()?.block_on(async {
        let cluster = daemon::local::start(&options).await?;
        let mut end = pin!(crate::interrupt::wait_for_end());
        let ended = tokio::select! {
            ended = &mut end => Some(ended),
            () = registered(cluster.master, args.agents) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                introduce(cluster.master, args.agents, &work_dir)?;
                end.await
            }
        };
        ended.context("cannot wait for signals")?;
        cluster.stop().await
    })?;
    if !given {
        remove(&work_dir)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until this many agents are registered, and warns if some are missing.
async fn registered(master: SocketAddr, agents: usize) {
    let reader = MasterArgs { master: master.to_string(), principal: None, secret: None };
    if let Err(error) = reader.wait_for_agents(agents, READY).await {
        stdio::err!("tepui: {error:#}; continuing with the agents that are registered");
    }
}

/// Prints the address of a local cluster, and what can be done with it.
fn introduce(master: SocketAddr, agents: usize, work_dir: &Path) -> Result<()> {
    // The daemons of this process use TLS where the environment says so, as the clients do.
    let is_tls = wire::client::is_tls(&Address::new(&master.ip().to_string(), master.port()));
    let scheme = if is_tls { "https" } else { "http" };
    crate::read::print(&format!(
        "master  {scheme}://{master}\n\
         page    the same address, in a browser\n\
         agents  {agents}, with state and sandboxes in {}\n\
         try     tepui execute --master={master} --command='echo hello'\n\
         end     Ctrl-C",
        work_dir.display()
    ))
    .map(|_| ())
}

/// Creates a directory of this process, for a cluster that is not kept.
pub(crate) fn temporary_directory() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    let name = |attempt: u32| base.join(format!("tepui-{}-{attempt}", std::process::id()));
    for attempt in 0..100 {
        // Tasks may run as other users, and need access to their sandboxes in it.
        match store::create_directory(&name(attempt), store::Access::All) {
            Ok(()) => return Ok(name(attempt)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create a directory in '{}'", base.display()));
            }
        }
    }
    bail!("cannot create a directory in '{}': all names exist", base.display())
}

pub(crate) fn remove(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove the directory '{}'", directory.display()))
}
