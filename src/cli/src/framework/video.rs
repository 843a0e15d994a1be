//! `tepui framework video`: runs queries on videos that share cores by quality and lag. Also runs a worker task, and
//! has tools that need no cluster: generating traffic scenes, profiling, and running one query on this machine.

mod frame;
mod live_view;
mod tools;
mod uplink;
mod view;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use video::core::{State, Status};
use video::schedule::{Objective, Policy};
use video::service::{Hook, HookCall, Options, Service};
use video::spec::{QuerySpec, parse};
use video::worker::{self, WorkerOptions};

use super::common::FrameworkArgs;
use super::live::{self, LiveArgs, WorkerFramework};
use crate::execute::stopped;
use crate::interrupt::Interrupt;

/// Flags of `tepui framework video`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    framework: FrameworkArgs,
    #[command(flatten)]
    video: VideoArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a traffic scene whose truth is known: a video, and a JSON file beside it
    Generate(tools::GenerateArgs),
    /// Measure the cost and the quality of a query in each configuration
    Profile(tools::ProfileArgs),
    /// Run one query on a file or a camera on this machine, without a cluster
    Run(tools::RunArgs),
    /// Draw a frame of a video or a camera with a grid and a query's lines, to choose coordinates
    Frame(frame::FrameArgs),
    /// Print the address of a running query's live view, or watch it over a modelled link and report what a viewer sees
    Live(live_view::LiveArgs),
    /// Send the pictures of a camera on this machine to queries elsewhere, as large as each connection carries
    Uplink(uplink::UplinkArgs),
    /// Work on a query: what the framework's tasks run
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyName {
    /// By the utility of quality and lag
    Videostorm,
    /// Equal shares
    Fair,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ObjectiveName {
    /// The sum of the queries' utilities
    MaxSum,
    /// The least of them
    MaxMin,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Queries")]
struct VideoArgs {
    /// Queries, as TOML; without it, or with --keep-running, queries come by the HTTP API
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Policy that divides the cores
    #[arg(long, default_value = "videostorm")]
    policy: PolicyName,
    /// What the policy videostorm maximises
    #[arg(long, default_value = "max-sum")]
    objective: ObjectiveName,
    /// How far ahead to predict lag
    #[arg(long, default_value = "6secs", value_name = "DURATION", value_parser = base::parse_duration)]
    horizon: Duration,
    /// Interval of decisions
    #[arg(long, default_value = "1secs", value_name = "DURATION", value_parser = base::parse_duration)]
    epoch: Duration,
    /// Interval at which each query is compared with the best configuration on 20 s of its stream; 0secs: never
    #[arg(long, default_value = "5mins", value_name = "DURATION", value_parser = base::parse_duration)]
    sample_every: Duration,
    /// Largest number of cores that all tasks hold together [default: all that are offered]
    #[arg(long, value_name = "NUMBER")]
    cores: Option<f64>,
    /// Directory for the findings of queries, a file of JSON lines for each query
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Run this program when a query finds something, with the finding as a line of JSON on its standard input
    #[arg(long, value_name = "PROGRAM", conflicts_with = "alert_post")]
    alert_program: Option<String>,
    /// Send the finding to this address when a query finds something
    #[arg(long, value_name = "URL")]
    alert_post: Option<String>,
    /// Shortest time between two alerts; those between are counted in the next one
    #[arg(long, default_value = "1secs", value_name = "DURATION", value_parser = base::parse_duration)]
    alert_every: Duration,
    /// Directory for profiles [default: profiles in --state-dir, or tepui-profiles in the directory for temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
    /// Seconds of a video to profile
    #[arg(long, default_value_t = 12.0, value_name = "SECONDS")]
    profile_seconds: f64,
    /// URI from which agents fetch the program of workers
    #[arg(long, value_name = "URI")]
    worker_uri: Option<String>,
    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, clap::Args)]
struct WorkerArgs {
    #[arg(long)]
    driver: String,
    #[arg(long)]
    task: String,
    #[arg(long, env = "TEPUI_VIDEO_TOKEN", hide_env_values = true)]
    token: String,
}

/// Runs the command.
///
/// # Errors
/// Returns what failed, and what to do about it.
pub(super) fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    match args.command {
        Some(Command::Generate(args)) => tools::generate(&args),
        Some(Command::Profile(args)) => tools::profile(&args),
        Some(Command::Run(args)) => tools::run(&args),
        Some(Command::Frame(args)) => frame::frame(&args),
        Some(Command::Live(args)) => crate::block_on(live_view::live(&args)),
        Some(Command::Uplink(args)) => crate::block_on(uplink::uplink(args)),
        Some(Command::Worker(WorkerArgs { driver, task, token })) => {
            worker::run(&WorkerOptions { driver, task, token })?;
            Ok(ExitCode::SUCCESS)
        }
        None => crate::block_on(serve(args.framework, args.video)),
    }
}

pub(super) fn read_queries(path: Option<&Path>) -> Result<Vec<QuerySpec>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let full = std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
    Ok(parse(&text, &path.display().to_string(), full.parent().unwrap_or(Path::new("/")))?)
}

fn options(framework: &FrameworkArgs, args: &VideoArgs) -> Result<Options> {
    if args.cores.is_some_and(|cores| !(0.02..=1e6).contains(&cores)) {
        bail!("--cores: at least 0.02");
    }
    if !(1.0..=600.0).contains(&args.profile_seconds) {
        bail!("--profile-seconds: 1 to 600");
    }
    let mut options = Options::new(framework.options("video")?);
    options.queries = read_queries(args.queries.as_deref())?;
    options.listen = framework.listen;
    options.control = SocketAddr::new(args.live.address(framework), 0);
    options.state_dir.clone_from(&framework.state_dir);
    options.results.clone_from(&args.results);
    let call = match (&args.alert_program, &args.alert_post) {
        (Some(program), _) => Some(HookCall::Program(program.clone())),
        (None, Some(url)) => Some(HookCall::post(url).context("--alert-post")?),
        (None, None) => None,
    };
    options.hook = call.map(|call| Hook { call, every: args.alert_every });
    let beside_state = framework.state_dir.as_ref().map(|directory| directory.join("profiles"));
    if let Some(directory) = args.profiles.clone().or(beside_state) {
        options.profiles = directory;
    }
    options.profile_seconds = args.profile_seconds;
    options.policy = match args.policy {
        PolicyName::Videostorm => Policy::Videostorm,
        PolicyName::Fair => Policy::Fair,
    };
    options.objective = match args.objective {
        ObjectiveName::MaxSum => Objective::MaxSum,
        ObjectiveName::MaxMin => Objective::MaxMin,
    };
    options.horizon = args.horizon.as_secs_f64();
    options.epoch = args.epoch;
    options.sample_every = args.sample_every;
    options.cores_max = args.cores;
    options.worker_program.clone_from(&args.live.worker_program);
    options.worker_uri.clone_from(&args.worker_uri);
    Ok(options)
}

async fn serve(framework: FrameworkArgs, args: VideoArgs) -> Result<ExitCode> {
    let options = options(&framework, &args)?;
    let for_ever = options.queries.is_empty();
    let interrupt = Interrupt::watch()?;
    if !options.queries.is_empty() {
        stdio::err!("reading or making profiles of {} queries", options.queries.len());
    }
    let service = Service::start(options).await?;
    live::show(service, &interrupt, (&framework, &args.live), for_ever, |_| Ok(())).await
}

impl WorkerFramework for Service {
    type Status = Status;

    fn api(&self) -> String {
        self.url()
    }

    async fn current_status(&self) -> Result<Status> {
        Ok(self.status().await?)
    }

    async fn next(&mut self, after: Duration) -> Result<(Status, bool)> {
        let (status, ending) = Service::next(self, after).await;
        if let Some(ending) = ending {
            stopped(&ending)?;
        }
        let status = status.context("the scheduler does not answer")?;
        let over = status.all_ended();
        Ok((status, over))
    }

    async fn end(self, teardown: bool) -> Result<()> {
        self.stop(teardown).await;
        Ok(())
    }

    fn failed(status: &Status) -> Vec<String> {
        let failed = status.queries.iter().filter(|q| q.state == State::Failed);
        failed.map(|q| format!("{} ({})", q.name, q.message)).collect()
    }
}
