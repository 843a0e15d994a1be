//! `tepui framework dag`: runs the framework of jobs of stages, and shows its progress; `tepui framework dag-task`:
//! runs one of its tasks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dag::core::{After, JobEvent, Outcome, Settings, Sprinting, State, Status, Targets};
use dag::job::{self, Class};
use dag::learned::{BYTES_MAX, Model, Order};
use dag::service::{self, Handle, Options};
use dag::task::{Spec, VARIABLE};
use jobs::file::seconds;
use jobs::place::Policy;

use super::common::FrameworkArgs;
use super::job_framework::{self, Framework, RunOptions, read, task_line};
use crate::dag::model::Summary;
use crate::dag::show::jobs_table;
use crate::execute::capabilities;

/// Flags of `tepui framework dag`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    framework: FrameworkArgs,
    /// Job files to submit at the start; with --state-dir, jobs that are there already are left as they are
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// End when all jobs have ended; fail if one has failed
    #[arg(long)]
    until_done: bool,
    /// Print events as JSON, one line for each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

/// How the framework behaves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Behaviour")]
struct SettingArgs {
    /// Which stage is next, and how many tasks a job may run: fifo, fair, "weighted ALPHA", sjf-cp, remaining, tetris,
    /// graphene or deadline; or decima, a learned order with a guard
    #[arg(long, default_value = "remaining", value_name = "ORDER")]
    order: Order,
    /// The weights of the learned order, from `tepui lab train decima`; else those that come with this program
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Where tasks go: first-fit, best-fit, worst-fit (spread), dot-product (tetris), least-residual (l2)
    #[arg(long, default_value = "best-fit")]
    policy: Policy,
    /// Directory for data between stages of jobs that name none, the same on all agents; without one outputs stay in
    /// the sandboxes, and readers fetch them from the agents
    #[arg(long, value_name = "DIR")]
    shared: Option<String>,
    /// Path of this program on the agents [default: the same path as here]
    #[arg(long, value_name = "PATH")]
    worker_program: Option<PathBuf>,
    /// Address of the API for tasks, such as http://host:port [default: the address that it listens at]
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    /// How long to refuse offers that waiting tasks cannot use
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = time)]
    refuse: Duration,
    /// The share of tasks that jobs of low priority leave out while others wait, of stages that allow it; or auto: the
    /// smallest with which all targets are met, found from the jobs that have ended
    #[arg(long, default_value = "0", value_name = "SHARE|auto", value_parser = drop_share)]
    drop: Drop,
    /// What the mean response of jobs of a class should be, such as low=10m; once for each class
    #[arg(long, value_name = "CLASS=TIME", value_parser = target)]
    target: Vec<(Class, Duration)>,
    /// Leave tasks out even if no other job waits
    #[arg(long)]
    drop_always: bool,
    /// Cores that tasks of high-priority jobs may use above their requests, as a fraction of the requests, such as 0.5
    #[arg(long, default_value_t = 0.0, value_name = "PART", value_parser = part)]
    sprint: f64,
    /// How old a job of high priority is when its tasks begin to sprint; or auto: the latest age with which its target
    /// is met, or without one that with which responses are shortest, found from the jobs that have ended
    #[arg(long, default_value = "0s", value_name = "TIME|auto", value_parser = after)]
    sprint_after: After,
    /// Budget of sprints: core-seconds above requests that they may use at once
    #[arg(long, default_value_t = 600.0, value_name = "NUMBER", value_parser = part)]
    sprint_budget: f64,
    /// Core-seconds by which the budget of sprints refills in a second
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = part)]
    sprint_refill: f64,
}

fn time(text: &str) -> Result<Duration, String> {
    seconds::parse(text).ok_or_else(|| "write a time such as 10, 1.5s, 500ms, 2m or 1h".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| "must be 0 or more and below 1".to_owned())
}

/// The value of `--drop`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drop {
    Share(f64),
    Auto,
}

fn drop_share(text: &str) -> Result<Drop, String> {
    if text == "auto" {
        Ok(Drop::Auto)
    } else {
        share(text).map(Drop::Share).map_err(|rule| format!("{rule}, or auto"))
    }
}

fn after(text: &str) -> Result<After, String> {
    if text == "auto" { Ok(After::Auto) } else { time(text).map(After::Age).map_err(|rule| format!("{rule}, or auto")) }
}

fn target(text: &str) -> Result<(Class, Duration), String> {
    let (class, wanted) = text.split_once('=').ok_or("write a class and a time, such as low=10m")?;
    let class = match class {
        "low" => Class::Low,
        "normal" => Class::Normal,
        "high" => Class::High,
        other => return Err(format!("'{other}' is not a class: must be low, normal or high")),
    };
    match time(wanted)? {
        Duration::ZERO => Err("a target must be above 0".to_owned()),
        wanted => Ok((class, wanted)),
    }
}

fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| "must be a number, 0 or more".to_owned())
}

impl SettingArgs {
    fn order(&self) -> Result<Order> {
        match (&self.order, &self.model) {
            (order, None) => Ok(order.clone()),
            (Order::Learned(_), Some(file)) => Ok(Order::Learned(read_model(file)?.into())),
            (order, Some(_)) => bail!("--model needs the order decima, not {order}"),
        }
    }

    fn settings(&self) -> Result<Settings> {
        let runner = match &self.worker_program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("this program's path")?,
        };
        if self.shared.as_ref().is_some_and(|shared| !shared.starts_with('/')) {
            bail!("--shared must be an absolute path, the same on all agents");
        }
        if self.shared.as_ref().is_some_and(|shared| shared.trim_end_matches('/').is_empty()) {
            bail!("--shared must be a directory of its own, and not the root");
        }
        let mut targets = Targets::default();
        self.target.iter().for_each(|(class, wanted)| targets.set(*class, *wanted));
        if self.drop == Drop::Auto && targets.is_empty() {
            bail!("--drop=auto needs a target for some class, such as --target=low=10m");
        }
        if self.sprint_after == After::Auto && self.sprint == 0.0 {
            bail!("--sprint-after=auto needs --sprint, such as --sprint=0.5");
        }
        Ok(Settings {
            placement: self.policy,
            order: self.order()?,
            shared: self.shared.as_ref().map(|shared| shared.trim_end_matches('/').to_owned()),
            runner: runner.display().to_string(),
            api: self.api.clone().unwrap_or_default(),
            refuse: self.refuse,
            // The limits of the stages bound the share that is found.
            drop: if let Drop::Share(share) = self.drop { share } else { 0.99 },
            drop_auto: self.drop == Drop::Auto,
            targets,
            drop_under_load: !self.drop_always,
            sprint: Sprinting {
                boost: self.sprint,
                budget: self.sprint_budget,
                refill: self.sprint_refill,
                after: self.sprint_after,
            },
            ..Settings::default()
        })
    }
}

/// Runs the framework until it is interrupted, or until all jobs have ended.
///
/// # Errors
/// A job file is invalid, the API cannot be served, or the master refuses the framework.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    crate::show_warnings();
    let jobs = read(&args.files, job::read)?;
    let settings = args.settings.settings()?;
    let mut driver = args.framework.options("dag")?;
    // Without this capability agents with graphics processors are not offered.
    driver.settings.framework.capabilities.extend(capabilities(&["GPU_RESOURCES"])?);
    let wanted = RunOptions {
        json: args.json,
        until_done: args.until_done,
        has_state_directory: args.framework.state_dir.is_some(),
    };
    daemon::process::runtime()?.block_on(async {
        let service = service::start(Options { driver, listen: args.framework.listen, settings }).await?;
        let url = service.url();
        let greeting = format!("dag      {url}\ntry      tepui dag submit --service={url} FILE");
        job_framework::run(service, jobs, &greeting, wanted).await
    })
}

/// Reads the weights of a learned order.
pub(crate) fn read_model(file: &Path) -> Result<Model> {
    let context = || format!("cannot read the model {}", file.display());
    let length = std::fs::metadata(file).with_context(context)?.len();
    if length > BYTES_MAX as u64 {
        bail!("the model {} has {length} bytes: must have {BYTES_MAX} at most", file.display());
    }
    let bytes = std::fs::read(file).with_context(context)?;
    Model::read(&bytes).with_context(context)
}

impl Framework for Handle {
    fn line(event: &JobEvent) -> Option<String> {
        Some(match event {
            JobEvent::Submitted { name } => format!("{name}: submitted"),
            JobEvent::Cancelling { name } => format!("{name}: is being cancelled"),
            JobEvent::Stage { name, stage, phase } => {
                let phase = if *phase == dag::core::StagePhase::Done { "finished" } else { "may run" };
                format!("{name}: stage {stage} {phase}")
            }
            JobEvent::Ended { name, outcome: Outcome::Failed, why } => format!("{name}: failed: {why}"),
            JobEvent::Ended { name, outcome, .. } => format!("{name}: {}", format!("{outcome:?}").to_lowercase()),
            // The job file decides about this.
            JobEvent::Removed { .. } => return None,
            JobEvent::NotRemoved { name, why } => {
                format!("{name}: its outputs cannot be removed, retrying at the next start: {why}")
            }
            JobEvent::Order { order, note } => format!("the order is {order}: {note}"),
            JobEvent::Task { task_id, state, message, .. } => return task_line(task_id, state, message),
        })
    }

    fn table(status: &Status) -> Result<String> {
        let jobs: Vec<Summary> = serde_json::from_value(serde_json::to_value(&status.jobs)?)?;
        let connected = if status.connected { "connected" } else { "no master" };
        let (tasks, totals) = (&status.tasks, &status.totals);
        Ok(format!(
            "\n{}\n\n{connected}; order {}; {} waiting, {} live; launched {}, finished {}, failed {}, lost {}, recomputed {}",
            jobs_table(&jobs),
            status.order,
            tasks.waiting,
            tasks.live,
            totals.launched,
            totals.finished,
            totals.failed,
            totals.lost,
            totals.remade,
        ))
    }

    fn outcome(status: &Status) -> Option<bool> {
        let all_ended = status.removing == 0 && status.jobs.iter().all(|job| job.ended.is_some());
        all_ended.then(|| status.jobs.iter().all(|job| job.state == State::Finished))
    }
}

/// Runs one task in its sandbox, as its environment describes it.
///
/// # Errors
/// The process was not started by the framework.
pub(super) fn task() -> Result<ExitCode> {
    let text = std::env::var(VARIABLE)
        .with_context(|| format!("{VARIABLE} is not set: the framework starts this command on agents"))?;
    let spec: Spec = serde_json::from_str(&text).with_context(|| VARIABLE.to_owned())?;
    // A container of an image may start in a directory of the image.
    let sandbox = match std::env::var_os("MESOS_SANDBOX") {
        Some(sandbox) => PathBuf::from(sandbox),
        None => std::env::current_dir().context("the sandbox")?,
    };
    let code =
        crate::block_on(async { Ok(dag::task::run(&spec, &sandbox, |text| stdio::err!("tepui: {text}")).await) })?;
    Ok(ExitCode::from(code))
}
