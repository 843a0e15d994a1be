//! The commands that run daemons, and the embedded cluster that other commands start.
//!
//! What a daemon does is in the crate `daemon`; here is only how the command line reaches it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use daemon::flags::Part;
use daemon::local::LocalOptions;
use tokio::sync::oneshot;

use crate::connect::MasterArgs;

/// How long the agents of a cluster that is started may take until they are registered, also on a busy machine.
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
    /// What each agent offers, such as cpus:4;mem:4096; by default, what the machine has
    #[arg(long, value_name = "RESOURCES")]
    pub resources: Option<String>,
    /// Directory for the state and the tasks' sandboxes; by default one that is removed at the end
    #[arg(long, value_name = "DIR")]
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

/// Waits until that many agents are registered, and warns if some are missing.
async fn registered(master: SocketAddr, agents: usize) {
    let reader = MasterArgs { master: master.to_string(), principal: None, secret: None };
    if let Err(error) = reader.wait_for_agents(agents, READY).await {
        stdio::err!("tepui: {error:#}; it goes on as it is");
    }
}

/// Says where a local cluster is, and what can be done with it.
fn introduce(master: SocketAddr, agents: usize, work_dir: &Path) -> Result<()> {
    crate::read::print(&format!(
        "master  http://{master}\n\
         agents  {agents}, with state and sandboxes in {}\n\
         try     tepui execute --master={master} --command='echo hello'\n\
         end     Ctrl-C",
        work_dir.display()
    ))
    .map(|_| ())
}

/// What an embedded cluster is to be like.
#[derive(Debug, Default)]
pub struct ClusterOptions {
    /// How many agents.
    pub agents: usize,
    /// What each agent offers, as in `--resources`.
    pub resources: String,
    /// Other flags of the master, by their names.
    pub master_flags: Vec<(String, String)>,
    /// Other flags of each agent, if they have any; they come after `resources`.
    pub agent_flags: Vec<Vec<(String, String)>>,
    /// The text of a file for the master's `--policies`.
    pub policies: Option<String>,
}

/// A cluster in this process; it ends when this is dropped.
pub trait Cluster {
    /// Where its master listens, as `host:port`.
    fn master(&self) -> String;

    /// The directory of its state and the sandboxes.
    fn work_dir(&self) -> PathBuf;

    /// Ends the cluster, and removes its directory unless `keep`.
    fn stop(self: Box<Self>, keep: bool) -> Result<()>;
}

/// Starts a cluster in this process, with its master on a free port.
///
/// # Errors
/// No free port, or no place for the work directory.
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
    let master = seen.recv().context("the cluster has ended at once")??;
    Ok(Box::new(Embedded { master, work_dir, stop, thread }))
}

/// The embedded cluster's own thread, with a reactor of its own.
fn serve(
    options: &LocalOptions,
    started: &mpsc::Sender<Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) -> Result<()> {
    daemon::process::runtime()?.block_on(async {
        match daemon::local::start(options).await {
            Ok(cluster) => {
                // Whoever asked waits for this.
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
        // A cluster that has ended on its own has closed its end.
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| anyhow!("the cluster's thread has failed"))??;
        if keep { Ok(()) } else { remove(&self.work_dir) }
    }
}

/// A directory of this process, for a cluster that is not kept.
fn temporary_directory() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    let name = |attempt: u32| base.join(format!("tepui-{}-{attempt}", std::process::id()));
    for attempt in 0..100 {
        // Tasks may run as other users, and reach their sandboxes through it.
        match store::create_directory(&name(attempt), store::Access::All) {
            Ok(()) => return Ok(name(attempt)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make a directory in '{}'", base.display()));
            }
        }
    }
    bail!("cannot make a directory in '{}': all names are taken", base.display())
}

fn remove(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove the directory '{}'", directory.display()))
}
