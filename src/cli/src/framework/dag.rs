//! `tepui framework dag`: runs the framework of jobs of stages, and shows what it does; `tepui framework dag-task`: the
//! runner of its tasks.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dag::core::{Happening, Outcome, Settings, Sprinting, State, Status};
use dag::job::{self, Job, Syntax};
use dag::order::Heuristic;
use dag::service::{Error, Follower, Options, Service};
use dag::task::{Spec, VARIABLE};
use jobs::file::seconds;
use jobs::place::Policy;
use sdk::{AskError, Ending};
use tokio::time::MissedTickBehavior;

use super::common::FrameworkArgs;
use super::screen::Overdrawn;
use crate::dag::model::Jobs;
use crate::dag::show::jobs_table;
use crate::execute::capabilities;
use crate::interrupt::Interrupt;
use crate::read::print;

/// Interval between updates of the table on a terminal.
const REDRAW: Duration = Duration::from_millis(250);

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
    /// Print what happens as JSON, a line an event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

/// How the framework behaves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Behaviour")]
struct SettingArgs {
    /// Which stage is next, and how many tasks a job may run: fifo, fair, "weighted ALPHA", sjf-cp, remaining, tetris
    /// or graphene
    #[arg(long, default_value = "remaining", value_name = "ORDER")]
    order: Heuristic,
    /// Where tasks go: first-fit, best-fit, worst-fit (spread), dot-product (tetris), least-residual (l2)
    #[arg(long, default_value = "best-fit")]
    policy: Policy,
    /// Directory for data between stages of jobs that name none, the same on all agents; without one outputs stay in
    /// the sandboxes, and readers fetch them from the agents
    #[arg(long, value_name = "DIR")]
    shared: Option<String>,
    /// This program on the agents, if it is not at the same place there
    #[arg(long, value_name = "PATH")]
    worker_program: Option<PathBuf>,
    /// The API's address for tasks, such as http://host:port, if it is not the one that it listens at
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    /// For how long what waiting tasks have no use for is refused
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = time)]
    refuse: Duration,
    /// The share of tasks that jobs of low priority leave out while others wait, of stages that allow it
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    drop: f64,
    /// Leave tasks out also while no other job is there
    #[arg(long)]
    drop_always: bool,
    /// By what part tasks of jobs of high priority may use more cores than they request, such as 0.5
    #[arg(long, default_value_t = 0.0, value_name = "PART", value_parser = part)]
    sprint: f64,
    /// Core-seconds above requests that sprints may use at once
    #[arg(long, default_value_t = 600.0, value_name = "NUMBER", value_parser = part)]
    sprint_budget: f64,
    /// Core-seconds that come back to that budget in a second
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
        .ok_or_else(|| "must be 0 or more, and below 1".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| "must be a number, 0 or more".to_owned())
}

impl SettingArgs {
    fn settings(&self) -> Result<Settings> {
        let runner = match &self.worker_program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("this program's path")?,
        };
        if self.shared.as_ref().is_some_and(|shared| !shared.starts_with('/')) {
            bail!("--shared must be an absolute path, the same on all agents");
        }
        Ok(Settings {
            placement: self.policy,
            order: self.order,
            shared: self.shared.as_ref().map(|shared| shared.trim_end_matches('/').to_owned()),
            runner: runner.display().to_string(),
            api: self.api.clone().unwrap_or_default(),
            refuse: self.refuse,
            drop: self.drop,
            drop_under_load: !self.drop_always,
            sprint: Sprinting { boost: self.sprint, budget: self.sprint_budget, refill: self.sprint_refill },
            ..Settings::default()
        })
    }
}

/// Runs the framework until it is interrupted, or until all is done.
///
/// # Errors
/// A job file is wrong, no API can be served, or the master refuses the framework.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    crate::show_warnings();
    let jobs = read(&args.files)?;
    let settings = args.settings.settings()?;
    let mut driver = args.framework.options("dag")?;
    // Without it no agent with graphics processors is offered.
    driver.settings.framework.capabilities.extend(capabilities(&["GPU_RESOURCES"])?);
    let keeps = args.framework.state_dir.is_some();
    daemon::process::runtime()?.block_on(async {
        let mut service = Service::start(Options { driver, listen: args.framework.listen, settings }).await?;
        let mut follower = service.follow();
        if !args.json {
            let address = service.address();
            print(&format!("dag      http://{address}\ntry      tepui dag submit --service={address} FILE"))?;
        }
        if !jobs.is_empty() {
            // After a crash, it continues with its earlier jobs.
            let taken = if keeps { service.resume(jobs).await } else { service.submit(jobs).await };
            if let Err(Error::Ask(AskError::Gone)) = taken {
                return ended(&service.wait().await, ExitCode::FAILURE);
            }
            taken.context("the jobs were not taken")?;
        }
        watch(service, &mut follower, args, keeps).await
    })
}

fn read(files: &[PathBuf]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read '{name}'"))?;
        jobs.extend(job::read(&name, &text, Syntax::of_file(&name))?);
    }
    Ok(jobs)
}

/// Shows what happens until the end.
async fn watch(mut service: Service, follower: &mut Follower, args: &Args, keeps: bool) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let nudge = interrupt.nudge();
    let mut screen = Screen { live: std::io::stdout().is_terminal() && !args.json, table: Overdrawn::default() };
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = nudge.notified() => {
                let ending = service.stop(!keeps).await;
                return ended(&ending, ExitCode::from(130));
            }
            ending = service.wait() => return ended(&ending, ExitCode::FAILURE),
            event = follower.next() => {
                if let Ok(Some(event)) = event {
                    screen.tell(&event, args.json)?;
                }
                continue;
            }
            _ = redraw.tick(), if screen.live || args.until_done => {}
        }
        let status = match service.status().await {
            // It has just ended; its ending has the reason.
            Err(Error::Ask(AskError::Gone)) => return ended(&service.wait().await, ExitCode::FAILURE),
            status => status?,
        };
        // Events that the status already includes are printed first.
        while let Some(event) = follower.waiting() {
            screen.tell(&event, args.json)?;
        }
        screen.draw(&status)?;
        if args.until_done && status.jobs.iter().all(|job| job.ended.is_some()) {
            let failed = status.jobs.iter().any(|job| job.state != State::Finished);
            let ending = service.stop(!keeps).await;
            return ended(&ending, if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    }
}

fn ended(ending: &Ending, code: ExitCode) -> Result<ExitCode> {
    match ending {
        Ending::Stopped => Ok(code),
        Ending::Error(why) => bail!("the master refused: {why}"),
        Ending::Unreachable(why) => bail!(crate::execute::no_master(why)),
        Ending::State(why) => bail!("{why}"),
    }
}

/// A table that is drawn over itself on a terminal, or lines elsewhere.
struct Screen {
    live: bool,
    table: Overdrawn,
}

impl Screen {
    fn tell(&mut self, event: &Happening, json: bool) -> Result<()> {
        if json {
            print(&serde_json::to_string(event)?)?;
        } else if let Some(line) = line(event) {
            self.table.clear()?;
            print(&line)?;
        }
        Ok(())
    }

    fn draw(&mut self, status: &Status) -> Result<()> {
        if !self.live {
            return Ok(());
        }
        let jobs: Jobs = serde_json::from_value(serde_json::json!({ "jobs": status.jobs }))?;
        let connected = if status.connected { "connected" } else { "no master" };
        let (tasks, totals) = (&status.tasks, &status.totals);
        let text = format!(
            "\n{}\n\n{connected}; order {}; {} waiting, {} live; launched {}, finished {}, failed {}, lost {}, made again {}",
            jobs_table(&jobs.jobs),
            status.order,
            tasks.waiting,
            tasks.live,
            totals.launched,
            totals.finished,
            totals.failed,
            totals.lost,
            totals.remade,
        );
        self.table.draw(&text)
    }
}

/// An event in words; tasks that just go their way make none.
fn line(event: &Happening) -> Option<String> {
    Some(match event {
        Happening::Submitted { name } => format!("{name}: submitted"),
        Happening::Cancelling { name } => format!("{name}: is being cancelled"),
        Happening::Stage { name, stage, phase } => {
            let phase = if *phase == dag::core::StagePhase::Done { "finished" } else { "may run" };
            format!("{name}: stage {stage} {phase}")
        }
        Happening::Ended { name, outcome: Outcome::Failed, why } => format!("{name}: failed: {why}"),
        Happening::Ended { name, outcome, .. } => format!("{name}: {}", format!("{outcome:?}").to_lowercase()),
        Happening::Task { task_id, state, message, .. } => {
            let bad = ["TASK_FAILED", "TASK_ERROR", "TASK_LOST", "TASK_DROPPED", "TASK_GONE", "TASK_UNREACHABLE"];
            if !bad.contains(&state.as_str()) {
                return None;
            }
            format!("{task_id}: {} {message}", state.trim_start_matches("TASK_").to_lowercase())
        }
    })
}

/// Runs one task in its sandbox, as its environment says.
///
/// # Errors
/// It was not started by the framework.
pub(super) fn task() -> Result<ExitCode> {
    let text = std::env::var(VARIABLE)
        .with_context(|| format!("{VARIABLE} is not set: the framework starts this command on agents"))?;
    let spec: Spec = serde_json::from_str(&text).with_context(|| VARIABLE.to_owned())?;
    let sandbox = std::env::current_dir().context("the sandbox")?;
    let code =
        crate::block_on(async { Ok(dag::task::run(&spec, &sandbox, |text| stdio::err!("tepui: {text}")).await) })?;
    Ok(ExitCode::from(code))
}
