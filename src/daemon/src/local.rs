//! A whole cluster in one process: a master and some agents, for trials and demonstrations.
//!
//! The daemons are the same as those of `tepui master` and `tepui agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agent::{self, Stop};
use crate::common::LogLevel;
use crate::flags::{Flags, Part};
use crate::{connections, logging, master};

/// The settings of a local cluster.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// Number of agents.
    pub agents: usize,
    /// Port of the master on 127.0.0.1; for 0 the system chooses a free one.
    pub port: u16,
    /// Resources of each agent, as in `--resources`; `None` for those of the host.
    pub resources: Option<String>,
    /// Directory for state and sandboxes.
    pub work_dir: PathBuf,
    /// Other flags of the master, as names and values.
    pub master_flags: Vec<(String, String)>,
    /// Other flags of each agent, as names and values; further agents have none. They override `resources`.
    pub agent_flags: Vec<Vec<(String, String)>>,
}

/// A running cluster. Dropping it ends it without waiting.
#[derive(Debug)]
pub struct LocalCluster {
    /// Address on which the master listens.
    pub master: SocketAddr,
    stop: watch::Sender<bool>,
    agents: Vec<JoinHandle<anyhow::Result<()>>>,
    leader: JoinHandle<anyhow::Result<()>>,
}

/// Starts a cluster in the current runtime. Agents register at once, without a random delay.
///
/// # Errors
/// A port that is in use, or a directory that cannot be used.
pub async fn start(options: &LocalOptions) -> anyhow::Result<LocalCluster> {
    let log_level = logging::switch(2);
    if let Err(error) = wire::raise_open_files_limit() {
        tracing::warn!("the limit of open files cannot be raised: {error}");
    }
    let (stop, stopped) = watch::channel(false);
    let mut flags = Flags::defaults(Part::Master);
    flags.set("ip", "127.0.0.1")?;
    flags.set("port", &options.port.to_string())?;
    flags.set("registry", "in_memory")?;
    connections::share(&mut flags, options.agents + 1)?;
    set_all(&mut flags, &options.master_flags)?;
    let running = master::start(flags, log_level.clone()).await?;
    let address = running.address;
    let leader = tokio::spawn(running.run_until(is_stopped(stopped.clone())));
    let mut agents = Vec::new();
    for index in 0..options.agents {
        let flags = agent_flags(options, index, address)?;
        let running = start_agent(flags, &log_level).await.with_context(|| format!("agent {index} cannot start"))?;
        let stopped = is_stopped(stopped.clone());
        agents.push(tokio::spawn(async move {
            let end = async {
                stopped.await;
                Stop::Unregister
            };
            running.run_until(end).await.map(|_| ())
        }));
    }
    Ok(LocalCluster { master: address, stop, agents, leader })
}

async fn start_agent(flags: Flags, log_level: &Arc<LogLevel>) -> anyhow::Result<agent::RunningAgent> {
    agent::start(flags, log_level.clone()).await
}

fn agent_flags(options: &LocalOptions, index: usize, master: SocketAddr) -> anyhow::Result<Flags> {
    let mut flags = Flags::defaults(Part::Agent);
    let directory = options.work_dir.join(format!("agent-{index}"));
    flags.set("ip", "127.0.0.1")?;
    flags.set("port", "0")?;
    flags.set("master", &master.to_string())?;
    flags.set("work_dir", &directory.to_string_lossy())?;
    flags.set("hostname", "localhost")?;
    flags.set("registration_backoff_factor", "1ms")?;
    flags.set("launcher", "posix")?;
    // The tasks of the cluster end with it.
    flags.set("systemd_enable_support", "false")?;
    connections::share(&mut flags, options.agents + 1)?;
    if let Some(resources) = &options.resources {
        flags.set("resources", resources)?;
    }
    set_all(&mut flags, options.agent_flags.get(index).map_or(&[], Vec::as_slice))?;
    Ok(flags)
}

fn set_all(flags: &mut Flags, others: &[(String, String)]) -> anyhow::Result<()> {
    for (name, value) in others {
        flags.set(name, value)?;
    }
    Ok(())
}

async fn is_stopped(mut stopped: watch::Receiver<bool>) {
    // A dropped sender means stop, too.
    let _ = stopped.wait_for(|stop| *stop).await;
}

impl LocalCluster {
    /// Ends the cluster: tasks first, then the agents, then the master.
    ///
    /// # Errors
    /// An earlier error of a daemon.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        for agent in self.agents {
            agent.await.context("an agent has failed")??;
        }
        self.leader.await.context("the master has failed")?
    }
}
