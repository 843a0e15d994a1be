//! `tepui execute`: runs a command, a task or a group of tasks on a cluster, as mesos-execute does.

mod args;
mod output;
mod scheduler;
mod task;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sdk::driver::{self, Encoding, Options};
use sdk::v1::framework_info::{Capability, capability};
use sdk::{Ending, v1::FrameworkInfo};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use args::Args;

use crate::connect::MasterArgs;
use crate::interrupt::Interrupt;
use crate::say::say;
use crate::waiting::WaitExplanation;
use output::Outputs;
use scheduler::{ExecuteScheduler, Progress};

/// Time limit for reaching a master before an error is reported.
const MASTER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which work that was not launched is explained, and interval between two explanations.
const FIRST_EXPLANATION: Duration = Duration::from_secs(1);
const EXPLANATION_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the work. The exit code is 0 if all of it finished, otherwise 1.
///
/// # Errors
/// A flag is invalid, no master was found, or the master refused the framework.
pub fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    let work = task::work(&args)?;
    let kill_after = args.kill_after.as_deref().map(base::parse_duration).transpose().context("--kill_after")?;
    args.master.prepare_tls()?;
    let mut options = Options::new(&args.master.master, framework(&args)?)?;
    options.credential = args.master.credential();
    options.encoding = if args.content_type == "json" { Encoding::Json } else { Encoding::Protobuf };
    options.give_up_after = Some(MASTER_TIMEOUT);
    crate::block_on(async {
        let interrupt = Interrupt::watch()?;
        options.wake_signal = Some(interrupt.wake_signal());
        let (progress, mut progress_receiver) = mpsc::unbounded_channel();
        let mut progress_output = ProgressOutput {
            outputs: Outputs::new(args.master.clone()),
            master: args.master.clone(),
            need: task::need_of(&work)?,
            waits: args.wait,
            framework: None,
            printed: Vec::new(),
        };
        let execute = ExecuteScheduler::new(work, kill_after, interrupt.clone(), std::io::stdout(), progress);
        let mut run = std::pin::pin!(driver::run(execute, options));
        let mut explanation_ticks = tokio::time::interval_at(Instant::now() + FIRST_EXPLANATION, EXPLANATION_INTERVAL);
        let finished = loop {
            tokio::select! {
                finished = &mut run => break finished,
                Some(progress) = progress_receiver.recv() => progress_output.handle_progress(progress),
                _ = explanation_ticks.tick() => {
                    if let Some(why) = progress_output.explain_waiting().await {
                        // The framework is removed when its stream closes.
                        bail!("the work cannot run: {why}. With --wait it waits for other agents");
                    }
                }
            }
        };
        while let Ok(progress) = progress_receiver.try_recv() {
            progress_output.handle_progress(progress);
        }
        progress_output.outputs.finish().await;
        stopped(&finished.ending)?;
        Ok(match finished.scheduler.succeeded() {
            _ if interrupt.is_set() => ExitCode::from(130),
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    })
}

/// The work beside the scheduler: output, and explanations while the work waits.
struct ProgressOutput {
    outputs: Outputs,
    master: MasterArgs,
    /// Resources that an offer must contain.
    need: String,
    /// Whether work that no agent can run waits for other agents.
    waits: bool,
    /// Id of the framework while the work waits for an offer; otherwise `None`.
    framework: Option<String>,
    /// Reasons that were printed last.
    printed: Vec<String>,
}

impl ProgressOutput {
    fn handle_progress(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting(framework) => self.framework = Some(framework),
            Progress::Launched => self.framework = None,
            Progress::Started(status) => self.outputs.start(&status),
        }
    }

    /// Prints why the work waits, if it does and the reasons have changed. Returns the reason why it can never run, if
    /// there is one.
    async fn explain_waiting(&mut self) -> Option<String> {
        let framework = self.framework.as_deref()?;
        // A master of Mesos does not explain.
        let waiting = WaitExplanation::ask(&self.master, framework, &self.need).await;
        let waiting = waiting.unwrap_or(WaitExplanation {
            reasons: vec!["the master gives no explanation".into()],
            impossible: None,
            agents: 0,
        });
        if waiting.reasons != self.printed {
            say!("Waiting for an offer of {}:", self.need);
            waiting.reasons.iter().for_each(|reason| say!("  {reason}"));
            self.printed = waiting.reasons;
        }
        if self.waits { None } else { waiting.impossible }
    }
}

/// Reports why a framework has ended, and what to do, unless it was asked to end.
///
/// # Errors
/// It was not asked to end.
pub(crate) fn stopped(ending: &Ending) -> Result<()> {
    if let Ending::Unreachable(why) = ending {
        bail!(
            "no master could be reached ({why}); start a cluster with `tepui local`, or name its master with --master"
        );
    }
    ending.why().map_or(Ok(()), |why| bail!(why))
}

fn framework(args: &Args) -> Result<FrameworkInfo> {
    let mut names: Vec<&str> = vec!["MULTI_ROLE", "RESERVATION_REFINEMENT"];
    if args.partition_aware {
        names.push("PARTITION_AWARE");
    }
    names.extend(args.framework_capabilities.iter().map(String::as_str));
    Ok(FrameworkInfo {
        user: user(),
        name: "tepui-execute".to_owned(),
        roles: vec![args.role.clone()],
        checkpoint: Some(args.checkpoint),
        principal: args.master.principal.clone(),
        capabilities: capabilities(&names)?,
        ..Default::default()
    })
}

/// Converts names to framework capabilities.
pub(crate) fn capabilities(names: &[&str]) -> Result<Vec<Capability>> {
    let one = |name: &&str| {
        let kind = capability::Type::from_str_name(name)
            .with_context(|| format!("'{name}' is not a capability of a framework"))?;
        Ok(Capability { r#type: Some(kind as i32) })
    };
    names.iter().map(one).collect()
}

/// Returns the name of the user that runs this process, or its number if it has no name.
pub(crate) fn user() -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(uid) = std::fs::metadata("/proc/self").map(|m| m.uid().to_string()) else { return "root".to_owned() };
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = passwd.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()));
    named.and_then(|line| line.split(':').next()).unwrap_or(&uid).to_owned()
}
