//! Runs a framework of jobs until all jobs have ended, and shows its progress: the common part of `tepui framework
//! binpack` and `tepui framework dag`.
//!
//! A framework implements [`Framework`].

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use jobs::file::{Faults, Syntax};
use jobs::follow::Follower;
use jobs::service::{Handle, Service};
use sdk::Ending;
use serde::Serialize;
use tokio::time::MissedTickBehavior;

use super::screen::RedrawnText;
use crate::execute::stopped;
use crate::interrupt::Interrupt;
use crate::read::print;

/// Interval between updates of the table on a terminal.
const REDRAW: Duration = Duration::from_millis(250);
/// States of tasks that are printed when they arrive.
const BAD: [&str; 6] = ["TASK_FAILED", "TASK_ERROR", "TASK_LOST", "TASK_DROPPED", "TASK_GONE", "TASK_UNREACHABLE"];

/// A handle of a framework of jobs that runs in this process.
pub(super) trait Framework: Handle<Event: Serialize> {
    /// Describes an event in words; `None` for events that are not shown.
    fn line(event: &Self::Event) -> Option<String>;
    /// Formats the table of jobs, and the state of the framework.
    fn table(status: &Self::Status) -> Result<String>;
    /// Returns whether all jobs have finished; `None` while one has not ended.
    fn outcome(status: &Self::Status) -> Option<bool>;
}

/// The options of the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunOptions {
    /// Whether to print events as JSON.
    pub(super) json: bool,
    /// Whether to end when all jobs have ended.
    pub(super) until_done: bool,
    /// Whether the framework keeps its state: then it resumes its jobs at a start and leaves their tasks running at an
    /// end.
    pub(super) has_state_directory: bool,
}

/// Reads the jobs of files.
///
/// # Errors
/// A file cannot be read, or is invalid.
pub(super) fn read<J>(files: &[PathBuf], read: fn(&str, &str, Syntax) -> Result<Vec<J>, Faults>) -> Result<Vec<J>> {
    let mut jobs = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read '{name}'"))?;
        jobs.extend(read(&name, &text, Syntax::of_file(&name))?);
    }
    Ok(jobs)
}

/// Submits jobs and shows the progress until the framework is interrupted or ends, or until all jobs have ended.
///
/// # Errors
/// The jobs were not accepted, or the master refuses the framework.
pub(super) async fn run<F: Framework>(
    mut service: Service<F>,
    jobs: Vec<F::Job>,
    greeting: &str,
    options: RunOptions,
) -> Result<ExitCode> {
    let mut follower = service.handle().follow();
    if !options.json {
        print(greeting)?;
    }
    if !jobs.is_empty() {
        // After a crash, the framework continues with its earlier jobs.
        let taken = if options.has_state_directory {
            service.handle().resume(jobs).await
        } else {
            service.handle().submit(jobs).await
        };
        if taken.as_ref().is_err_and(F::is_gone) {
            return ended(&service.wait().await, ExitCode::FAILURE);
        }
        taken.context("the framework rejected the jobs")?;
    }
    watch(service, &mut follower, options).await
}

/// Shows the progress until the end.
async fn watch<F: Framework>(
    mut service: Service<F>,
    follower: &mut Follower<F::Event>,
    options: RunOptions,
) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let wake_signal = interrupt.wake_signal();
    let live = std::io::stdout().is_terminal() && !options.json;
    let mut screen = Screen { json: options.json, table: RedrawnText::default() };
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = wake_signal.notified() => {
                let ending = service.stop(!options.has_state_directory).await;
                return ended(&ending, ExitCode::from(130));
            }
            ending = service.wait() => return ended(&ending, ExitCode::FAILURE),
            event = follower.next() => {
                if let Ok(Some(event)) = event {
                    screen.show::<F>(&event)?;
                }
                continue;
            }
            _ = redraw.tick(), if live || options.until_done => {}
        }
        let status = match service.handle().status().await {
            // The framework has just ended; its ending has the reason.
            Err(error) if F::is_gone(&error) => return ended(&service.wait().await, ExitCode::FAILURE),
            status => status?,
        };
        // Events that the status already includes are printed first.
        while let Some(event) = follower.waiting() {
            screen.show::<F>(&event)?;
        }
        if live {
            screen.table.draw(&F::table(&status)?)?;
        }
        if let Some(well) = F::outcome(&status).filter(|_| options.until_done) {
            let ending = service.stop(!options.has_state_directory).await;
            return ended(&ending, if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
}

fn ended(ending: &Ending, code: ExitCode) -> Result<ExitCode> {
    stopped(ending).map(|()| code)
}

/// Prints events as lines, above a table that replaces itself on a terminal.
struct Screen {
    json: bool,
    table: RedrawnText,
}

impl Screen {
    fn show<F: Framework>(&mut self, event: &F::Event) -> Result<()> {
        if self.json {
            print(&serde_json::to_string(event)?)?;
        } else if let Some(line) = F::line(event) {
            self.table.clear()?;
            print(&line)?;
        }
        Ok(())
    }
}

/// Formats an update of a task, which `task` names; `None` if nothing failed.
pub(super) fn task_line(task: &str, state: &str, message: &str) -> Option<String> {
    let is_bad = BAD.contains(&state);
    is_bad.then(|| format!("{task}: {} {message}", state.trim_start_matches("TASK_").to_lowercase()))
}
