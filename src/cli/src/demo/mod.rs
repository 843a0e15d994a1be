//! `tepui demo`: a small cluster, real work on it, and a summary of what ran where.

mod plan;
mod record;
mod report;
mod scheduler;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sdk::Ending;
use sdk::driver::{self, Options};
use sdk::v1::FrameworkInfo;

use crate::connect::MasterArgs;
use crate::daemons::{self, ClusterOptions};
use crate::execute::{capabilities, no_master, user};
use crate::interrupt::Interrupt;
use crate::read::model::{Agent, Agents};
use scheduler::Demo;

/// How long the agents may take until they are registered.
const READY: Duration = Duration::from_secs(15);
/// Agents of the embedded cluster.
const AGENTS: usize = 3;

/// Flags of `tepui demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to run, in the form of examples/demo.toml
    #[arg(value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Use a running cluster instead of starting one
    #[arg(long, short, value_name = "MASTER")]
    master: Option<String>,
    /// What each agent of the started cluster offers
    #[arg(long, default_value = "cpus:2;mem:1024;disk:1024")]
    resources: String,
    /// Keep the cluster's folder with all sandboxes
    #[arg(long)]
    keep: bool,
}

/// Runs the demo; 0 if every task finished.
///
/// # Errors
/// The plan or the cluster is at fault, or a task failed; says why, and where to look.
pub fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    let tasks = plan::tasks(args.plan.as_deref())?;
    if let Some(master) = args.master {
        return crate::block_on(on(master, tasks, 1));
    }
    let options = ClusterOptions { agents: AGENTS, resources: args.resources };
    let cluster = daemons::start_cluster(&options).context("cannot start a cluster")?;
    eprintln!("started a master on {} and {AGENTS} agents in {}", cluster.master(), cluster.work_dir().display());
    let result = crate::block_on(on(cluster.master(), tasks, AGENTS));
    let failed = !matches!(&result, Ok(code) if *code == ExitCode::SUCCESS);
    let folder = cluster.work_dir();
    cluster.stop(args.keep || failed)?;
    if args.keep || failed {
        eprintln!("the sandboxes are kept in {}", folder.display());
    }
    result
}

/// Runs the tasks on a cluster that has, or will soon have, so many agents.
async fn on(master: String, tasks: Vec<sdk::v1::TaskInfo>, agents: usize) -> Result<ExitCode> {
    let count = tasks.len();
    let mut options = Options::new(&master, framework()?)?;
    let master = MasterArgs { master, principal: None, secret: None };
    let agents = wait_for_agents(&master, agents).await?;
    let interrupt = Interrupt::watch()?;
    options.nudge = Some(interrupt.nudge());
    options.give_up_after = Some(READY);
    let demo = Demo::new(tasks, view::new(count, &agents), interrupt.clone());
    let began = began();
    let finished = driver::run(demo, options).await;
    let took = began.elapsed();
    let left = finished.scheduler.left();
    // The bars go away with the scheduler.
    let records = finished.scheduler.into_records();
    match finished.ending {
        Ending::Stopped => {}
        Ending::Error(why) => bail!("the master refused: {why}"),
        Ending::Unreachable(why) => bail!(no_master(&why)),
        Ending::State(why) => bail!("{why}"),
    }
    crate::read::print(&report::summary(&records, &agents, took))?;
    if interrupt.wanted() {
        return Ok(ExitCode::from(130));
    }
    if let Some((id, record)) = records.0.iter().find(|(_, r)| r.ended.is_some() && !r.finished()) {
        let sandbox = report::sandbox(id, record, &agents, &master).await;
        bail!("the task {id} failed: {}\n{sandbox}", record.message);
    }
    if left > 0 {
        bail!("{left} tasks were not launched");
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "how long the demo took is shown to a person")]
fn began() -> Instant {
    Instant::now()
}

/// Reads the agents until there are enough.
async fn wait_for_agents(master: &MasterArgs, wanted: usize) -> Result<Vec<Agent>> {
    let began = began();
    loop {
        let problem = match master.read::<Agents>("/slaves").await {
            Ok(agents) if agents.slaves.iter().filter(|a| a.active).count() >= wanted => return Ok(agents.slaves),
            Ok(agents) => anyhow::anyhow!("{} of {wanted} agents registered", agents.slaves.len()),
            Err(error) => error,
        };
        if began.elapsed() > READY {
            return Err(problem.context(format!("no cluster within {} s", READY.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn framework() -> Result<FrameworkInfo> {
    Ok(FrameworkInfo {
        user: user(),
        name: "tepui-demo".to_owned(),
        roles: vec!["*".to_owned()],
        capabilities: capabilities(&["MULTI_ROLE", "RESERVATION_REFINEMENT", "PARTITION_AWARE"])?,
        ..Default::default()
    })
}
