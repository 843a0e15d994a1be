//! Shows training jobs: as a table, or as lines about changes.

use quality::scheduler::{JobStatus, State, Status};

use crate::framework::view::{Displayed, ItemState};
use crate::read::table::{percent, table};

impl Displayed for Status {
    fn text(&self) -> String {
        text(self)
    }

    fn item_states(&self) -> Vec<ItemState> {
        let item_state = |job: &JobStatus| {
            let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
            let state = state(job.state);
            let line = format!("{:7.1} s  {} is {state}{reason}", self.seconds, job.name);
            ItemState { name: job.name.clone(), state, line }
        };
        self.jobs.iter().map(item_state).collect()
    }
}

fn text(status: &Status) -> String {
    let mut titles = vec![
        "JOB",
        "ALGORITHM",
        "STATE",
        ">ITERATION",
        ">LOSS",
        ">REMAINING LOSS",
        ">ACCURACY",
        ">CORES",
        ">EXPECTED GAIN",
        ">PREDICTION ERROR",
    ];
    // Columns without a value for any job are left out.
    let is_held = status.jobs.iter().any(|job| job.validation.is_some());
    let skips = status.jobs.iter().any(|job| job.rows.is_some());
    let is_over = status.jobs.iter().any(|job| !job.reason.is_empty());
    titles.extend([">VALIDATION"].iter().filter(|_| is_held));
    titles.extend([">ROWS"].iter().filter(|_| skips));
    titles.extend(["END"].iter().filter(|_| is_over));
    let mut table = table(&titles);
    for job in &status.jobs {
        let mut row = row(job);
        row.extend(is_held.then(|| validation(job)));
        row.extend(skips.then(|| job.rows.map_or_else(|| "-".to_owned(), percent)));
        row.extend(is_over.then(|| job.reason.clone()));
        table.add_row(row);
    }
    let lines: Vec<String> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
    let mean = status.mean_normalised_loss.map(|m| format!(", mean remaining loss {}", percent(m)));
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
        or_dash(iterations(job)),
        or_dash(job.loss.map(|l| format!("{l:.5}"))),
        or_dash(job.normalised_loss.map(percent)),
        or_dash(job.accuracy.map(percent)),
        cores,
        if active { percent(job.predicted_gain) } else { "-".to_owned() },
        or_dash(job.prediction_error.map(percent)),
    ]
}

/// Formats the number of iterations that are done, and of all; while iterations are repeated, the number of the
/// repeated one.
fn iterations(job: &JobStatus) -> Option<String> {
    let of = |number: u64| format!("{}/{}", number + 1, job.iterations);
    match job.repeated {
        Some(number) => Some(format!("{} again", of(number))),
        None => job.iteration.map(of),
    }
}

/// Formats loss and accuracy on validation data.
fn validation(job: &JobStatus) -> String {
    let Some(score) = job.validation else { return "-".to_owned() };
    let accuracy = score.accuracy.map(|a| format!(" {}", percent(a))).unwrap_or_default();
    format!("{:.5}{accuracy}", score.loss)
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
