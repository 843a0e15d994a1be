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

pub use args::Args;

use crate::interrupt::Interrupt;
use output::Outputs;
use scheduler::Execute;

/// Time to reach a master before an error is reported.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the work, and ends with 0 if all of it finished, else with 1.
///
/// # Errors
/// A flag is wrong, no master was found, or the master refused the framework.
pub fn run(args: Args) -> Result<ExitCode> {
    crate::show_warnings();
    let work = task::work(&args)?;
    let kill_after = args.kill_after.as_deref().map(base::parse_duration).transpose().context("--kill_after")?;
    let mut options = Options::new(&args.master.master, framework(&args)?)?;
    options.credential = args.master.credential();
    options.encoding = if args.content_type == "json" { Encoding::Json } else { Encoding::Protobuf };
    options.give_up_after = Some(PATIENCE);
    crate::block_on(async {
        let interrupt = Interrupt::watch()?;
        options.nudge = Some(interrupt.nudge());
        let (started, mut tasks) = mpsc::unbounded_channel();
        let execute = Execute::new(work, kill_after, interrupt.clone(), std::io::stdout(), started);
        let mut outputs = Outputs::new(args.master.clone());
        let mut run = std::pin::pin!(driver::run(execute, options));
        let finished = loop {
            tokio::select! {
                finished = &mut run => break finished,
                Some(status) = tasks.recv() => outputs.start(&status),
            }
        };
        while let Ok(status) = tasks.try_recv() {
            outputs.start(&status);
        }
        outputs.finish().await;
        match finished.ending {
            Ending::Stopped if interrupt.wanted() => Ok(ExitCode::from(130)),
            Ending::Stopped if finished.scheduler.succeeded() => Ok(ExitCode::SUCCESS),
            Ending::Stopped => Ok(ExitCode::FAILURE),
            Ending::Error(why) => bail!("the master refused: {why}"),
            Ending::Unreachable(why) => bail!(no_master(&why)),
            Ending::State(why) => bail!("{why}"),
        }
    })
}

/// What to say, and what to do, when no master took the framework in.
pub(crate) fn no_master(why: &str) -> String {
    format!("no master took us in ({why}); start a cluster with `tepui local`, or name its master with --master")
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

/// Framework capabilities by their names.
pub(crate) fn capabilities(names: &[&str]) -> Result<Vec<Capability>> {
    let one = |name: &&str| {
        let kind = capability::Type::from_str_name(name)
            .with_context(|| format!("'{name}' is no capability of a framework"))?;
        Ok(Capability { r#type: Some(kind as i32) })
    };
    names.iter().map(one).collect()
}

/// The name of the user that runs this process, or its number if it has no name.
pub(crate) fn user() -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(uid) = std::fs::metadata("/proc/self").map(|m| m.uid().to_string()) else { return "root".to_owned() };
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = passwd.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()));
    named.and_then(|line| line.split(':').next()).unwrap_or(&uid).to_owned()
}
