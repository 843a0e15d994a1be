//! `tepui task logs`: prints files that a task has written to its sandbox.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::find::{SearchScope, TaskArgs, find};
use super::state_now;
use crate::sandbox::File;

/// Interval of reads of a file that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Flags of `tepui task logs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// Keep printing what is written until the task ends
    #[arg(long, short = 'f')]
    follow: bool,
    /// Print standard error instead of standard output
    #[arg(long, visible_alias = "error", short = 'e')]
    stderr: bool,
    /// Print another file of the sandbox
    #[arg(long, value_name = "PATH", conflicts_with = "stderr")]
    file: Option<String>,
    /// Print only this many of the last lines
    #[arg(long, short = 'n', value_name = "LINES")]
    tail: Option<usize>,
}

/// Prints the file, and what is added to it until the task ends.
///
/// # Errors
/// There is no such task, its agent does not answer, or the sandbox has no such file.
pub fn run(args: &Args) -> Result<ExitCode> {
    let name = args.file.as_deref().unwrap_or(if args.stderr { "stderr" } else { "stdout" });
    crate::block_on(async {
        let task = find(&args.task, SearchScope::All).await?;
        let of = (Some(task.framework.as_str()), task.id.as_str());
        let mut file = File::find(&args.task.master, task.agent()?, of, name).await?;
        if let Some(lines) = args.tail {
            file.skip_to_last(lines).await?;
        }
        let mut out = std::io::stdout();
        while args.follow && state_now(&args.task.master, &task).await?.is_some_and(|now| now.is_live()) {
            file.copy(&mut out).await?;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        file.copy(&mut out).await?;
        Ok(ExitCode::SUCCESS)
    })
}
