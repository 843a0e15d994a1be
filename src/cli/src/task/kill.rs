//! `tepui task kill`: kills tasks of any framework.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::find::{SearchScope, TaskArgs, find};
use super::state_now;

/// Interval between two requests for the state of a task.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Flags of `tepui task kill`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// Time between SIGTERM and SIGKILL, such as 10secs; by default as the task's kill policy says
    #[arg(long, value_name = "DURATION")]
    grace_period: Option<String>,
    /// Wait until the task has ended
    #[arg(long)]
    wait: bool,
}

/// Kills the task as its framework would.
///
/// # Errors
/// There is no such running task, or the master rejects the call.
pub fn run(args: &Args) -> Result<ExitCode> {
    let grace = args.grace_period.as_deref().map(base::parse_duration).transpose().context("--grace-period")?;
    crate::block_on(async {
        let task = find(&args.task, SearchScope::Running).await?;
        let mut body = json!({ "framework_id": { "value": task.framework }, "task_id": { "value": task.id } });
        if let Some(grace) = grace {
            body["kill_policy"] = json!({ "grace_period": { "nanoseconds": grace.as_nanos() as u64 } });
        }
        args.task.master.send_call("KILL_TASK", &body).await?;
        if !args.wait {
            return crate::read::print(&format!("task '{}' is being killed", task.id));
        }
        loop {
            match state_now(&args.task.master, &task).await? {
                None => bail!("the master no longer has the final state of task '{}'", task.id),
                Some(now) if !now.is_live() => {
                    return crate::read::print(&format!("task '{}' is {}", task.id, now.state()));
                }
                Some(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    })
}
