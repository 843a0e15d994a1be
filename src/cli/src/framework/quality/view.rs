//! How training jobs look in a terminal: a table that is drawn again and again, or lines about what has changed.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use quality::scheduler::{JobStatus, State, Status};

use crate::read::table::{percent, table};

/// How often it is drawn.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// What is on the screen.
#[derive(Debug)]
pub(super) struct View {
    live: bool,
    silent: bool,
    /// How many lines the table has that is drawn.
    lines: usize,
    /// What was said of each job.
    said: BTreeMap<String, State>,
}

impl View {
    pub(super) fn new(live: bool, silent: bool) -> View {
        View { live, silent, lines: 0, said: BTreeMap::new() }
    }

    /// Shows how things are.
    pub(super) fn show(&mut self, status: &Status) -> Result<()> {
        if self.live { self.draw(status) } else { self.say(status) }
    }

    /// Shows how things were at the end.
    pub(super) fn last(&mut self, status: &Status) -> Result<()> {
        self.say_or_nothing(status)?;
        self.draw(status)
    }

    fn say_or_nothing(&mut self, status: &Status) -> Result<()> {
        if self.live { Ok(()) } else { self.say(status) }
    }

    fn draw(&mut self, status: &Status) -> Result<()> {
        let mut text = text(status);
        text.push('\n');
        let mut out = std::io::stdout().lock();
        if self.live && self.lines > 0 {
            // Up to where the last table began, and away with it.
            write!(out, "\x1b[{}A\x1b[J", self.lines)?;
        }
        self.lines = text.lines().count();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// A line for each job that has another state than before.
    fn say(&mut self, status: &Status) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        for job in &status.jobs {
            if self.said.insert(job.name.clone(), job.state) != Some(job.state) {
                let mut out = std::io::stdout().lock();
                let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
                writeln!(out, "{:7.1} s  {} is {}{reason}", status.seconds, job.name, state(job.state))?;
            }
        }
        Ok(())
    }
}

fn text(status: &Status) -> String {
    let titles =
        ["JOB", "ALGORITHM", "STATE", ">ITERATION", ">LOSS", ">LEFT", ">ACCURACY", ">CORES", ">GAIN", ">ERROR"];
    let mut table = table(&titles);
    for job in &status.jobs {
        table.add_row(row(job));
    }
    let lines: Vec<String> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
    let mean = status.mean_normalised_loss.map(|m| format!(", {} left to learn on average", percent(m)));
    let workers = status.workers;
    let head = format!("{}: {workers} workers{}", status.policy, mean.unwrap_or_default());
    format!("{head}\n{}", lines.join("\n"))
}

fn row(job: &JobStatus) -> Vec<String> {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let active = matches!(job.state, State::Waiting | State::Running);
    let cores = if active { format!("{}/{}", job.cores, job.wanted_cores) } else { "-".to_owned() };
    vec![
        job.name.clone(),
        job.kind.to_owned(),
        state(job.state).to_owned(),
        or_dash(job.iteration.map(|i| format!("{}/{}", i + 1, job.iterations))),
        or_dash(job.loss.map(|l| format!("{l:.5}"))),
        or_dash(job.normalised_loss.map(percent)),
        or_dash(job.accuracy.map(percent)),
        cores,
        if active { percent(job.predicted_gain) } else { "-".to_owned() },
        or_dash(job.prediction_error.map(percent)),
    ]
}

fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Running => "running",
        State::Finished => "finished",
        State::Failed => "failed",
        State::Stopped => "stopped",
    }
}
