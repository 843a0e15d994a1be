//! `tepui framework binpack`: runs the bin-packing framework, and shows what it does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use binpack::core::{JobEvent, State, Status, SubmissionEffect};
use binpack::job;
use binpack::place::Policy;
use binpack::service::{self, Handle, Options};
use binpack::{Behaviour, Knobs, Pace, Risk};

use super::common::FrameworkArgs;
use super::job_framework::{self, Framework, RunOptions, read, task_line};
use crate::execute::capabilities;
use crate::job::model::Summary;
use crate::job::show::jobs_table;

/// Flags of `tepui framework binpack`.
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
    knobs: KnobArgs,
}

/// How the framework behaves towards the cluster.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Behaviour")]
struct KnobArgs {
    /// Framework to behave like: tepui, marathon, aurora or spark; the flags below change single settings
    #[arg(long, default_value = "tepui", value_name = "NAME")]
    behave_like: Behaviour,
    /// Where tasks go: first-fit, best-fit, worst-fit (spread), dot-product (tetris), least-residual (l2),
    /// first-fit-decreasing (ffd)
    #[arg(long)]
    policy: Option<Policy>,
    /// How long to hold offers on which nothing was placed
    #[arg(long, value_name = "TIME", value_parser = time)]
    hold: Option<Duration>,
    /// Longest random addition to --hold, drawn for each offer
    #[arg(long, value_name = "TIME", value_parser = time)]
    hold_jitter: Option<Duration>,
    /// Whether to decline held offers as soon as no task waits
    #[arg(long, value_name = "BOOL")]
    decline_fast: Option<bool>,
    /// How long to refuse offers that waiting tasks could not use
    #[arg(long, value_name = "TIME", value_parser = time)]
    refuse: Option<Duration>,
    /// How long to refuse offers that arrive while no task waits
    #[arg(long, value_name = "TIME", value_parser = time)]
    refuse_idle: Option<Duration>,
    /// How long to refuse the rest of an offer after tasks were launched on it
    #[arg(long, value_name = "TIME", value_parser = time)]
    refuse_rest: Option<Duration>,
    /// Whether to suppress offers while no task waits
    #[arg(long, value_name = "BOOL")]
    suppress_idle: Option<bool>,
    /// Revive offers when work arrives, at most once in this time; `never` lets refusals expire
    #[arg(long, value_name = "TIME", value_parser = revive)]
    revive_every: Option<Revive>,
    /// Place at most this many tasks in this time, such as 5/25ms
    #[arg(long, value_name = "TASKS/TIME", value_parser = pace)]
    pace: Option<Pace>,
    /// Largest number of tasks to launch on one agent at once
    #[arg(long, value_name = "NUMBER")]
    tasks_per_offer: Option<u32>,
    /// Launch tasks of a job with what its earlier tasks were measured to use, at this risk of a shortage, such as
    /// 0.05; never with more than the job file says, unless a task ended for lack of memory
    #[arg(long, alias = "active_sizing", value_name = "RISK")]
    active_sizing: Option<Risk>,
    /// Interval between measurements of running tasks for --active-sizing
    #[arg(long, alias = "measure_every", default_value = "5s", value_name = "TIME", value_parser = interval)]
    measure_every: Duration,
    /// Avoid agents for a while whose tasks failed lately while the same jobs succeed elsewhere, and try those tasks
    /// again at once
    #[arg(long, alias = "avoid_failing_agents")]
    avoid_failing_agents: bool,
}

/// Minimum interval between revives; `None` for never.
#[derive(Clone, Copy, Debug)]
struct Revive(Option<Duration>);

fn time(text: &str) -> Result<Duration, String> {
    job::parse_time(text).ok_or_else(|| "write a time such as 10, 1.5s, 500ms, 2m or 1h".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| if time.is_zero() { Err("must be above 0".to_owned()) } else { Ok(time) })
}

fn revive(text: &str) -> Result<Revive, String> {
    if text == "never" { Ok(Revive(None)) } else { time(text).map(|time| Revive(Some(time))) }
}

fn pace(text: &str) -> Result<Pace, String> {
    let pace = text.split_once('/').and_then(|(tasks, every)| Some((tasks.parse().ok()?, job::parse_time(every)?)));
    match pace {
        Some((tasks, every)) if tasks > 0 && !every.is_zero() => Ok(Pace { tasks, every }),
        _ => Err("write a number of tasks and a time, both above 0, such as 5/25ms".to_owned()),
    }
}

impl KnobArgs {
    fn knobs(&self) -> Knobs {
        let base = self.behave_like.knobs();
        Knobs {
            policy: self.policy.unwrap_or(base.policy),
            hold: self.hold.unwrap_or(base.hold),
            hold_jitter: self.hold_jitter.unwrap_or(base.hold_jitter),
            decline_fast: self.decline_fast.unwrap_or(base.decline_fast),
            refuse: self.refuse.unwrap_or(base.refuse),
            refuse_idle: self.refuse_idle.unwrap_or(base.refuse_idle),
            refuse_rest: self.refuse_rest.unwrap_or(base.refuse_rest),
            suppress_idle: self.suppress_idle.unwrap_or(base.suppress_idle),
            revive_every: self.revive_every.map_or(base.revive_every, |r| r.0),
            pace: self.pace.or(base.pace),
            tasks_per_offer: self.tasks_per_offer.or(base.tasks_per_offer),
            active_sizing: self.active_sizing,
            avoid_failing_agents: self.avoid_failing_agents,
            ..base
        }
    }
}

/// Runs the framework until it is interrupted, or until all jobs have ended.
///
/// # Errors
/// A job file is invalid, the API cannot be served, or the master refuses the framework.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    crate::show_warnings();
    let jobs = read(&args.files, job::read)?;
    let mut driver = args.framework.options("binpack")?;
    // Without this capability agents with graphics processors are not offered; tasks that need none are kept off them.
    driver.settings.framework.capabilities.extend(capabilities(&["GPU_RESOURCES"])?);
    driver.settings.seed = driver.settings.seed.wrapping_add(1);
    let knobs = Knobs { seed: driver.settings.seed, ..args.knobs.knobs() };
    let wanted = RunOptions {
        json: args.json,
        until_done: args.until_done,
        has_state_directory: args.framework.state_dir.is_some(),
    };
    daemon::process::runtime()?.block_on(async {
        let service = service::start(Options {
            driver,
            listen: args.framework.listen,
            knobs,
            measure_every: args.knobs.measure_every,
        })
        .await?;
        let url = service.url();
        let greeting = format!("binpack  {url}\ntry      tepui job submit --service={url} FILE");
        job_framework::run(service, jobs, &greeting, wanted).await
    })
}

impl Framework for Handle {
    fn line(event: &JobEvent) -> Option<String> {
        Some(match event {
            JobEvent::Submitted { name, version, taken } => match taken {
                SubmissionEffect::New => format!("{name}: submitted"),
                SubmissionEffect::Updated => format!("{name}: updated to version {version}"),
                SubmissionEffect::Scaled | SubmissionEffect::Unchanged => {
                    format!("{name}: number of tasks changed")
                }
            },
            JobEvent::Stopping { name } => format!("{name}: stopping"),
            JobEvent::Deployed { name, version } => format!("{name}: deployed, version {version}"),
            JobEvent::Ended { name, outcome } => format!("{name}: {}", format!("{outcome:?}").to_lowercase()),
            JobEvent::Task { place, state, message, .. } => {
                return task_line(&format!("{} on {}", place.task_id, place.host), state, message);
            }
        })
    }

    fn table(status: &Status) -> Result<String> {
        let jobs: Vec<Summary> = serde_json::from_value(serde_json::to_value(&status.jobs)?)?;
        let connected = if status.connected { "connected" } else { "no master" };
        let (used, tasks, totals) = (&status.used, &status.tasks, &status.totals);
        Ok(format!(
            "\n{}\n\n{connected}; {} waiting, {} live; in use: {used}; launched {}, finished {}, failed {}, lost {}",
            jobs_table(&jobs),
            tasks.waiting,
            tasks.live,
            totals.launched,
            totals.finished,
            totals.failed,
            totals.lost,
        ))
    }

    fn outcome(status: &Status) -> Option<bool> {
        let all_ended = status.jobs.iter().all(|job| job.ended.is_some());
        all_ended.then(|| status.jobs.iter().all(|job| job.state == State::Finished))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        args: Args,
    }

    fn knobs(words: &[&str]) -> Knobs {
        Flags::try_parse_from(std::iter::once("x").chain(words.iter().copied())).unwrap().args.knobs.knobs()
    }

    #[test]
    fn flags_change_single_settings_of_a_behaviour() {
        assert_eq!(knobs(&[]), Knobs::default());
        let changed = knobs(&["--behave-like=marathon", "--policy=spread", "--revive-every=never", "--pace=3/2s"]);
        let pace = Some(Pace { tasks: 3, every: Duration::from_secs(2) });
        let expected = Knobs { policy: Policy::WorstFit, revive_every: None, pace, ..Behaviour::Marathon.knobs() };
        assert_eq!(changed, expected);
    }

    #[test]
    fn wrong_settings_are_named() {
        for (flag, value) in [
            ("--pace", "0/1s"),
            ("--hold", "soon"),
            ("--policy", "best"),
            ("--behave-like", "mesos"),
            ("--refuse", "-1"),
        ] {
            let error = Flags::try_parse_from(["x", &format!("{flag}={value}")]).unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }
}
