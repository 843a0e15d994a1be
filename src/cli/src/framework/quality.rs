//! `tepui framework quality`: training jobs that share cores by the quality that these bring. Also what a worker task
//! runs, and predictions from a kept model.

mod view;

use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quality::allocate::Policy;
use quality::input::{self, Format, Label};
use quality::job::{self, Job};
use quality::scheduler::{State, Status, TOKEN_VARIABLE};
use quality::service::worker::{self, WorkerOptions};
use quality::service::{Options, SavedModel, Service, plot};

use super::common::FrameworkArgs;
use super::screen::{EVERY, View};
use crate::interrupt::Interrupt;

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
    /// Say what a kept model makes of the rows of a file
    Predict(PredictArgs),
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Training")]
struct QualityArgs {
    /// Jobs to train, as TOML; without it, or with --keep-running, jobs come by the HTTP API
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Who gets cores: slaq, fair, fifo or shortest
    #[arg(long, default_value = "slaq", value_name = "POLICY")]
    policy: Policy,
    /// For how long a decision holds
    #[arg(long, default_value = "3secs", value_name = "DURATION", value_parser = base::parse_duration)]
    epoch: Duration,
    /// The most cores to use at once
    #[arg(long, value_name = "NUMBER")]
    cores: Option<u32>,
    /// Cores of a worker task
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    worker_cores: u32,
    /// Memory of a worker task, in MB
    #[arg(long, default_value_t = 64, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    worker_mem: u32,
    /// The program that workers run, if this one is not at the same place on the agents
    #[arg(long, value_name = "PATH")]
    worker_program: Option<String>,
    /// This machine's address as workers see it; found out if not given
    #[arg(long, value_name = "IP")]
    worker_address: Option<IpAddr>,
    /// How many numbers of the data a core may look at in a second: for experiments in which a core is worth the same
    /// however busy its machine is
    #[arg(long, value_name = "NUMBER")]
    pace: Option<f64>,
    /// Where to keep models [default: models in --state-dir]
    #[arg(long, value_name = "FOLDER")]
    models: Option<PathBuf>,
    /// Write every iteration of every job into a CSV file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// At the end, draw losses and cores over time into an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Go on when all jobs have ended, until interrupted
    #[arg(long)]
    keep_running: bool,
    /// At the end, print everything as JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct WorkerArgs {
    #[arg(long)]
    driver: String,
    #[arg(long)]
    job: String,
    #[arg(long)]
    task: String,
    #[arg(long, default_value_t = 1)]
    cores: u32,
    #[arg(long)]
    pace: Option<f64>,
    #[arg(long, default_value = "30secs", value_parser = base::parse_duration)]
    grace: Duration,
    #[arg(long, env = TOKEN_VARIABLE, hide_env_values = true)]
    token: String,
}

#[derive(Debug, clap::Args)]
struct PredictArgs {
    /// A model, as the framework keeps it
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// CSV without labels, or LIBSVM
    #[arg(value_name = "DATA")]
    data: PathBuf,
}

/// Carries the command out.
///
/// # Errors
/// What went wrong, and what to do about it.
pub(super) fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    match args.command {
        Some(Command::Worker(args)) => work(args),
        Some(Command::Predict(args)) => predict(&args),
        None => crate::block_on(serve(args.framework, args.quality)),
    }
}

fn work(args: WorkerArgs) -> Result<ExitCode> {
    let pace = checked_pace(args.pace)?;
    let WorkerArgs { driver, job, task, cores, grace, token, .. } = args;
    worker::run(&WorkerOptions { driver, job, task, token, cores: cores.clamp(1, 1024), pace, grace })?;
    Ok(ExitCode::SUCCESS)
}

fn checked_pace(pace: Option<f64>) -> Result<Option<f64>> {
    match pace {
        Some(pace) if !(pace.is_finite() && pace >= 1.0) => bail!("--pace={pace}: must be a number, at least 1"),
        pace => Ok(pace),
    }
}

fn predict(args: &PredictArgs) -> Result<ExitCode> {
    let model = SavedModel::read(&args.model)?;
    let name = args.data.display().to_string();
    let text = std::fs::read_to_string(&args.data).with_context(|| format!("cannot read {name}"))?;
    let csv = args.data.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let format = if csv { Format::Csv } else { Format::Libsvm };
    let input = input::read(&name, &text, format, Label::None, true)?;
    let lines: Vec<String> = input.data.rows().map(|row| model.predict(&row)).collect();
    crate::read::print(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn read_jobs(path: Option<&Path>) -> Result<Vec<Job>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(job::parse(&path.display().to_string(), &text)?)
}

fn options(framework: &FrameworkArgs, args: &QualityArgs) -> Result<Options> {
    if args.cores.is_some_and(|cores| cores < args.worker_cores) {
        bail!("--cores: fewer than a worker has, {}: nothing could be trained", args.worker_cores);
    }
    let mut options = Options::new(framework.options("quality")?);
    options.jobs = read_jobs(args.jobs.as_deref())?;
    options.policy = args.policy;
    options.epoch = args.epoch;
    options.workers_max = args.cores.map_or(options.workers_max, |cores| cores / args.worker_cores);
    options.worker_cores = args.worker_cores;
    options.worker_mem = args.worker_mem;
    if let Some(program) = &args.worker_program {
        options.worker_command[0].clone_from(program);
    }
    options.worker_address = args.worker_address.unwrap_or_else(|| framework.own_address());
    options.pace = checked_pace(args.pace)?;
    options.listen = framework.listen;
    options.state_dir.clone_from(&framework.state_dir);
    options.models.clone_from(&args.models);
    options.record.clone_from(&args.record);
    Ok(options)
}

async fn serve(framework: FrameworkArgs, args: QualityArgs) -> Result<ExitCode> {
    let options = options(&framework, &args)?;
    let until_interrupted = options.jobs.is_empty() || args.keep_running;
    let interrupt = Interrupt::watch()?;
    let service = Service::start(options).await?;
    eprintln!("the API is at http://{}", service.address());
    let mut view = View::new(std::io::stdout().is_terminal() && !args.json, args.json);
    let interrupted = watch(&service, &interrupt, &mut view, until_interrupted).await;
    // What is printed at the end must be read before the scheduler has gone.
    let status = service.status().await;
    let over = !matches!(interrupted, Ok(true));
    service.stop(over || framework.state_dir.is_none()).await?;
    interrupted?;
    finish(&status?, &args, &mut view, over)
}

/// Shows how things are until all jobs have ended, or until interrupted; `true` if interrupted.
async fn watch(service: &Service, interrupt: &Interrupt, view: &mut View, for_ever: bool) -> Result<bool> {
    let nudge = interrupt.nudge();
    let all_ended = async { if for_ever { std::future::pending().await } else { service.wait().await } };
    tokio::pin!(all_ended);
    loop {
        tokio::select! {
            ended = &mut all_ended => return ended.map(|_| false).map_err(Into::into),
            () = nudge.notified() => return Ok(true),
            () = tokio::time::sleep(EVERY) => {
                if let Some(why) = service.failure() {
                    bail!(why);
                }
                view.show(&service.status().await?)?;
            }
        }
        if interrupt.wanted() {
            return Ok(true);
        }
    }
}

fn finish(status: &Status, args: &QualityArgs, view: &mut View, over: bool) -> Result<ExitCode> {
    if let Some(path) = &args.plot {
        std::fs::write(path, plot::svg(status)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        crate::read::print(&serde_json::to_string_pretty(status)?)?;
    } else {
        view.last(status)?;
    }
    if !over {
        return Ok(ExitCode::from(130));
    }
    let failed: Vec<&str> = status.jobs.iter().filter(|j| j.state == State::Failed).map(|j| j.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}
