//! Runs a cluster in this process, for commands that show or measure something on a cluster of their own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use daemon::local::LocalOptions;
use tokio::sync::oneshot;

use crate::daemons::{remove, temporary_directory};

/// The options of an embedded cluster.
#[derive(Debug, Default)]
pub struct ClusterOptions {
    /// Number of agents of the cluster.
    pub agents: usize,
    /// Resources of each agent, as in `--resources`.
    pub resources: String,
    /// Further flags of the master, by their names.
    pub master_flags: Vec<(String, String)>,
    /// Further flags of each agent, if they have any; they come after `resources`.
    pub agent_flags: Vec<Vec<(String, String)>>,
    /// Text of a file for the master's `--policies`.
    pub policies: Option<String>,
}

/// A cluster in this process. Dropping it stops the cluster.
pub trait Cluster {
    /// Returns the address of its master, as `host:port`.
    fn master(&self) -> String;

    /// Returns the directory of its state and the sandboxes.
    fn work_dir(&self) -> PathBuf;

    /// Stops the cluster, and removes its directory unless `keep`.
    fn stop(self: Box<Self>, keep: bool) -> Result<()>;
}

/// Starts a cluster in this process, with its master on a free port.
///
/// # Errors
/// There is no free port, or the work directory cannot be created.
pub fn start_cluster(options: &ClusterOptions) -> Result<Box<dyn Cluster>> {
    let work_dir = temporary_directory()?;
    let mut master_flags = options.master_flags.clone();
    if let Some(text) = &options.policies {
        let file = work_dir.join("policies.json");
        store::write_file(&file, text.as_bytes(), store::Access::Owner)
            .with_context(|| format!("cannot write {}", file.display()))?;
        master_flags.push(("policies".to_owned(), file.to_string_lossy().into_owned()));
    }
    let options = LocalOptions {
        agents: options.agents,
        port: 0,
        resources: Some(options.resources.clone()),
        work_dir: work_dir.clone(),
        master_flags,
        agent_flags: options.agent_flags.clone(),
    };
    let (started, seen) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("cluster".into())
        .spawn(move || serve(&options, &started, stopped))
        .context("cannot start a thread for the cluster")?;
    let master = seen.recv().context("the cluster could not start")??;
    Ok(Box::new(Embedded { master, work_dir, stop, thread }))
}

/// Runs the embedded cluster on a thread of its own, with its own reactor.
fn serve(
    options: &LocalOptions,
    started: &mpsc::Sender<Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) -> Result<()> {
    daemon::process::runtime()?.block_on(async {
        match daemon::local::start(options).await {
            Ok(cluster) => {
                // The caller waits for this message.
                let _ = started.send(Ok(cluster.master));
                let _ = stopped.await;
                cluster.stop().await
            }
            Err(error) => {
                let _ = started.send(Err(error));
                Ok(())
            }
        }
    })
}

struct Embedded {
    master: SocketAddr,
    work_dir: PathBuf,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Cluster for Embedded {
    fn master(&self) -> String {
        self.master.to_string()
    }

    fn work_dir(&self) -> PathBuf {
        self.work_dir.clone()
    }

    fn stop(self: Box<Self>, keep: bool) -> Result<()> {
        // A cluster that has ended on its own has closed the channel.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| anyhow!("the cluster's thread has failed"))??;
        if keep { Ok(()) } else { remove(&self.work_dir) }
    }
}
