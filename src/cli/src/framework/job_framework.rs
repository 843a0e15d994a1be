//! Runs a framework of jobs until all is done, and shows what it does: the common part of `tepui framework binpack` and
//! `tepui framework dag`.
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

use super::screen::Overdrawn;
use crate::execute::stopped;
use crate::interrupt::Interrupt;
use crate::read::print;

/// Interval between updates of the table on a terminal.
const REDRAW: Duration = Duration::from_millis(250);
/// States of tasks that are reported as they come.
const BAD: [&str; 6] = ["TASK_FAILED", "TASK_ERROR", "TASK_LOST", "TASK_DROPPED", "TASK_GONE", "TASK_UNREACHABLE"];

/// The handle of a framework of jobs that runs in this process.
pub(super) trait Framework: Handle<Event: Serialize> {
    /// An event in words; none for those that are not shown.
    fn line(event: &Self::Event) -> Option<String>;
    /// The table of jobs, and how the framework is.
    fn table(status: &Self::Status) -> Result<String>;
    /// Whether all jobs have finished; none while one has not ended.
    fn outcome(status: &Self::Status) -> Option<bool>;
}

/// What the command was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Events are printed as JSON.
    pub(super) json: bool,
    /// It ends when all jobs have ended.
    pub(super) until_done: bool,
    /// The framework keeps its state: it resumes its jobs at a start and leaves their tasks at an end.
    pub(super) keeps: bool,
}

/// Reads the jobs of files.
///
/// # Errors
/// A file cannot be read, or has faults.
pub(super) fn read<J>(files: &[PathBuf], read: fn(&str, &str, Syntax) -> Result<Vec<J>, Faults>) -> Result<Vec<J>> {
    let mut jobs = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read '{name}'"))?;
        jobs.extend(read(&name, &text, Syntax::of_file(&name))?);
    }
    Ok(jobs)
}

/// Submits jobs and shows what happens until the framework is interrupted or ends, or until all is done.
///
/// # Errors
/// The jobs were not taken, or the master refuses the framework.
pub(super) async fn run<F: Framework>(
    mut service: Service<F>,
    jobs: Vec<F::Job>,
    greeting: &str,
    wanted: Wanted,
) -> Result<ExitCode> {
    let mut follower = service.handle().follow();
    if !wanted.json {
        print(greeting)?;
    }
    if !jobs.is_empty() {
        // After a crash, it continues with its earlier jobs.
        let taken =
            if wanted.keeps { service.handle().resume(jobs).await } else { service.handle().submit(jobs).await };
        if taken.as_ref().is_err_and(F::is_gone) {
            return ended(&service.wait().await, ExitCode::FAILURE);
        }
        taken.context("the jobs were not taken")?;
    }
    watch(service, &mut follower, wanted).await
}

/// Shows what happens until the end.
async fn watch<F: Framework>(
    mut service: Service<F>,
    follower: &mut Follower<F::Event>,
    wanted: Wanted,
) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let nudge = interrupt.nudge();
    let live = std::io::stdout().is_terminal() && !wanted.json;
    let mut screen = Screen { json: wanted.json, table: Overdrawn::default() };
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = nudge.notified() => {
                let ending = service.stop(!wanted.keeps).await;
                return ended(&ending, ExitCode::from(130));
            }
            ending = service.wait() => return ended(&ending, ExitCode::FAILURE),
            event = follower.next() => {
                if let Ok(Some(event)) = event {
                    screen.show::<F>(&event)?;
                }
                continue;
            }
            _ = redraw.tick(), if live || wanted.until_done => {}
        }
        let status = match service.handle().status().await {
            // It has just ended; its ending has the reason.
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
        if let Some(well) = F::outcome(&status).filter(|_| wanted.until_done) {
            let ending = service.stop(!wanted.keeps).await;
            return ended(&ending, if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
}

fn ended(ending: &Ending, code: ExitCode) -> Result<ExitCode> {
    stopped(ending).map(|()| code)
}

/// Events as lines, above a table that is drawn over itself on a terminal.
struct Screen {
    json: bool,
    table: Overdrawn,
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

/// What an update of a task is shown as, `task` being the task in words; none where nothing went wrong.
pub(super) fn task_line(task: &str, state: &str, message: &str) -> Option<String> {
    let is_bad = BAD.contains(&state);
    is_bad.then(|| format!("{task}: {} {message}", state.trim_start_matches("TASK_").to_lowercase()))
}
