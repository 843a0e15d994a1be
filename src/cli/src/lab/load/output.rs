//! Output of a load: a status line while it runs, and latencies at the end.

use std::cell::Cell;
use std::time::Duration;

use ::lab::measure::Summary;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::plan::Plan;
use crate::lab::live::{Played, RunState};
use crate::read::table::{number, table};

/// Interval between updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);
/// Number of the newest tasks of each framework whose waits the line shows.
const NEWEST: usize = 200;

/// The status line of a running load.
pub(super) struct Line {
    bar: ProgressBar,
    next: Cell<Duration>,
    /// Number of offers at the last update, and the time of that update.
    before: Cell<(u64, Duration)>,
}

impl Line {
    pub fn new(plan: &Plan, quiet: bool) -> Line {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(plan.duration.as_millis() as u64) };
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {msg}") {
            bar.set_style(style);
        }
        Line { bar, next: Cell::new(Duration::ZERO), before: Cell::new((0, Duration::ZERO)) }
    }

    pub fn show(&self, run_state: &RunState<'_>) {
        if run_state.now < self.next.get() || self.bar.is_hidden() {
            return;
        }
        self.next.set(run_state.now + UPDATE_INTERVAL);
        let (mut submitted, mut waiting, mut left, mut offers) = (0, 0, 0, 0);
        let mut waits = Vec::new();
        for framework in 0..run_state.recorder.frameworks() {
            let (state, tasks) = (run_state.recorder.state(framework), run_state.recorder.tasks(framework));
            submitted += tasks.len() as u64;
            waiting += state.waiting_tasks;
            left += state.waiting_tasks + state.running_tasks;
            offers += state.offers_received;
            let newest = tasks.iter().rev().take(NEWEST).filter(|task| task.running.is_finite());
            waits.extend(newest.map(|task| task.running - task.submitted));
        }
        let (before, since) = self.before.replace((offers, run_state.now));
        let seconds = (run_state.now - since).as_secs_f64().max(1e-3);
        let waits = Summary::of(waits);
        self.bar.set_position(run_state.now.as_millis() as u64);
        self.bar.set_message(format!(
            "{:.0} s, {submitted} submitted, {waiting} wait, {} run, {} ended; newest wait {} ms (p99 {}); {:.0} offers/s",
            run_state.now.as_secs_f64(),
            left - waiting,
            submitted - left,
            millis(waits.p50),
            millis(waits.p99),
            (offers - before) as f64 / seconds,
        ));
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn millis(seconds: f64) -> String {
    let millis = seconds * 1000.0;
    if millis < 100.0 { format!("{millis:.1}") } else { format!("{millis:.0}") }
}

/// The results of a load. Times are in seconds.
#[derive(Debug, Serialize)]
pub(super) struct LoadReport {
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    pub agents: usize,
    pub frameworks: u32,
    /// Requested number of tasks in a second.
    pub rate: f64,
    pub submitted: u64,
    pub finished: u64,
    pub failed: u64,
    /// Number of tasks that had not ended.
    pub left: u64,
    /// Number of tasks in a second that started to run, over the time in which they were submitted.
    pub started_per_second: f64,
    pub offers_per_second: f64,
    pub accepted: u64,
    pub declined: u64,
    /// Times from submission to the report that the task runs.
    pub submit_to_running: Summary,
    /// Times from launch to the report that the task runs.
    pub launch_to_running: Summary,
    /// Times from submission to the update that the task has finished.
    pub submit_to_finished: Summary,
}

impl LoadReport {
    pub fn of(played: &Played, plan: &Plan, interrupted: bool) -> LoadReport {
        let (outcome, task_times) = (&played.outcome, &played.task_times);
        let sum = |of: fn(&::lab::measure::FrameworkOutcome) -> u64| outcome.frameworks.iter().map(of).sum::<u64>();
        let seconds = outcome.seconds.max(1e-3);
        let submitting = plan.duration.as_secs_f64().min(seconds);
        LoadReport {
            interrupted,
            seconds: outcome.seconds,
            agents: outcome.live.as_ref().map_or(0, |live| live.agents),
            frameworks: plan.frameworks,
            rate: plan.rate,
            submitted: sum(|framework| framework.submitted),
            finished: sum(|framework| framework.finished),
            failed: sum(|framework| framework.failed),
            left: sum(|framework| framework.left),
            started_per_second: task_times.started_by(submitting) as f64 / submitting,
            offers_per_second: sum(|framework| framework.offers_received) as f64 / seconds,
            accepted: sum(|framework| framework.offers_accepted),
            declined: sum(|framework| framework.offers_declined),
            submit_to_running: Summary::of(task_times.wait.clone()),
            launch_to_running: Summary::of(task_times.start.clone()),
            submit_to_finished: Summary::of(task_times.whole.clone()),
        }
    }

    /// Formats the report for a terminal.
    pub fn text(&self) -> String {
        let end = if self.interrupted { ", interrupted" } else { "" };
        let mut times = table(&["MILLISECONDS", ">TASKS", ">MEAN", ">p50", ">p90", ">p99", ">MAX"]);
        for (name, summary) in [
            ("submit to running", &self.submit_to_running),
            ("launch to running", &self.launch_to_running),
            ("submit to finished", &self.submit_to_finished),
        ] {
            let Summary { count, mean, p50, p90, p99, max } = *summary;
            let numbers = [mean, p50, p90, p99, max].map(millis);
            times.add_row([name.to_owned(), count.to_string()].into_iter().chain(numbers));
        }
        format!(
            "{:.1} s on {} agents{end}: {} of {} tasks finished, {} failed, {} left\n\
             {} tasks/s came to run ({} wanted); {} offers/s, {} accepted, {} declined\n\n{times}\n",
            self.seconds,
            self.agents,
            self.finished,
            self.submitted,
            self.failed,
            self.left,
            number((self.started_per_second * 10.0).round() / 10.0),
            number(self.rate),
            number((self.offers_per_second * 10.0).round() / 10.0),
            self.accepted,
            self.declined,
        )
    }
}
