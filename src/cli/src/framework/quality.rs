//! `tepui framework quality`: runs training jobs that share cores by predicted quality. Also runs a worker task, and
//! predicts and evaluates with a saved model.

mod model;
mod view;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quality::allocate::{Objective, Policy};
use quality::job::{self, Job};
use quality::scheduler::{JOB_VARIABLE, State, Status, TOKEN_VARIABLE};
use quality::service::worker::{self, WorkerOptions};
use quality::service::{Options, Service, plot};

use super::common::FrameworkArgs;
use super::live::{self, LiveArgs, WorkerFramework};
use crate::interrupt::Interrupt;
use crate::say::say;

/// Flags of `tepui framework quality`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    framework: FrameworkArgs,
    #[command(flatten)]
    quality: QualityArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Work for a job: what the framework's tasks run
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Print what a kept model predicts for each row of a file
    Predict(model::PredictArgs),
    /// Compare what a kept model predicts with the labels of a file
    Evaluate(model::EvaluateArgs),
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Training")]
struct QualityArgs {
    /// Jobs to train, as TOML; without it, or with --keep-running, jobs come by the HTTP API
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Policy that divides the cores: slaq, fair, fifo or shortest
    #[arg(long, default_value = "slaq", value_name = "POLICY")]
    policy: Policy,
    /// With --policy=slaq, the objective: from 0, quality, to 1, completion
    #[arg(long, value_name = "0..1")]
    objective: Option<f64>,
    /// Interval of decisions
    #[arg(long, default_value = "3secs", value_name = "DURATION", value_parser = base::parse_duration)]
    epoch: Duration,
    /// Largest number of cores to use at once
    #[arg(long, value_name = "NUMBER")]
    cores: Option<u32>,
    /// Cores of a worker task
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    worker_cores: u32,
    /// Memory of a worker task, in MB
    #[arg(long, default_value_t = 64, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    worker_mem: u32,
    /// Limit of the numbers of the data that a core processes in a second: for experiments with cores of equal speed
    #[arg(long, value_name = "NUMBER")]
    pace: Option<f64>,
    /// Where to keep models [default: models in --state-dir]
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// Write every iteration of every job into a CSV file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// At the end, draw losses and cores over time into an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, clap::Args)]
struct WorkerArgs {
    #[arg(long)]
    driver: String,
    #[arg(long, env = JOB_VARIABLE)]
    job: String,
    #[arg(long)]
    task: String,
    #[arg(long, default_value_t = 1)]
    cores: u32,
    #[arg(long)]
    pace: Option<f64>,
    #[arg(long, default_value = "30secs", value_parser = base::parse_duration)]
    grace: Duration,
    /// Size of the cache of data files, in MB, for jobs to which the worker returns
    #[arg(long, default_value_t = 16)]
    keep: u32,
    #[arg(long, env = TOKEN_VARIABLE, hide_env_values = true)]
    token: String,
}

/// Runs the command.
///
/// # Errors
/// Returns what failed, and what to do about it.
pub(super) fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    match args.command {
        Some(Command::Worker(args)) => work(args),
        Some(Command::Predict(args)) => model::predict(&args),
        Some(Command::Evaluate(args)) => model::evaluate(&args),
        None => crate::block_on(serve(args.framework, args.quality)),
    }
}

fn work(args: WorkerArgs) -> Result<ExitCode> {
    let pace = checked_pace(args.pace)?;
    let WorkerArgs { driver, job, task, cores, grace, token, .. } = args;
    let keep = u64::from(args.keep) << 20;
    let options = WorkerOptions { driver, job, task, token, cores: cores.clamp(1, 1024), pace, grace, keep };
    // The line in the task's sandbox tells to which job the task belonged.
    worker::run(&options, |job| say!("works for the job {job}"))?;
    Ok(ExitCode::SUCCESS)
}

fn checked_pace(pace: Option<f64>) -> Result<Option<f64>> {
    match pace {
        Some(pace) if !(pace.is_finite() && pace >= 1.0) => bail!("--pace={pace}: must be a number, at least 1"),
        pace => Ok(pace),
    }
}

fn read_jobs(path: Option<&Path>) -> Result<Vec<Job>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(job::parse(&path.display().to_string(), &text)?)
}

fn options(framework: &FrameworkArgs, args: &QualityArgs) -> Result<Options> {
    if args.cores.is_some_and(|cores| cores < args.worker_cores) {
        bail!("--cores: must be {} or more, the cores of a worker", args.worker_cores);
    }
    let mut options = Options::new(framework.options("quality")?);
    options.jobs = read_jobs(args.jobs.as_deref())?;
    options.policy = match args.objective {
        None => args.policy,
        Some(value) if args.policy == Policy::Slaq => Policy::Towards(Objective::new(value).context("--objective")?),
        Some(_) => bail!("--objective: is for --policy=slaq; {} has one objective", args.policy.name()),
    };
    options.epoch = args.epoch;
    options.workers_max = args.cores.map_or(options.workers_max, |cores| cores / args.worker_cores);
    options.worker_cores = args.worker_cores;
    options.worker_mem = args.worker_mem;
    if let Some(program) = &args.live.worker_program {
        options.worker_command[0] = program.display().to_string();
    }
    options.worker_address = args.live.address(framework);
    options.pace = checked_pace(args.pace)?;
    options.listen = framework.listen;
    options.state_dir.clone_from(&framework.state_dir);
    options.models.clone_from(&args.models);
    options.record.clone_from(&args.record);
    Ok(options)
}

async fn serve(framework: FrameworkArgs, args: QualityArgs) -> Result<ExitCode> {
    let options = options(&framework, &args)?;
    let for_ever = options.jobs.is_empty();
    let interrupt = Interrupt::watch()?;
    let service = Service::start(options).await?;
    let draw = |status: &Status| match &args.plot {
        Some(path) => {
            std::fs::write(path, plot::svg(status)).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(()),
    };
    live::show(service, &interrupt, (&framework, &args.live), for_ever, draw).await
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
        Ok(Service::next(self, after).await?)
    }

    async fn end(self, teardown: bool) -> Result<()> {
        Ok(self.stop(teardown).await?)
    }

    fn failed(status: &Status) -> Vec<String> {
        status.jobs.iter().filter(|j| j.state == State::Failed).map(|j| j.name.clone()).collect()
    }
}
