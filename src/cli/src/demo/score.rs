//! Summary numbers of a run, to compare policies.

use quality::scheduler::JobStatus;

use super::frame::RunHistory;

/// Returns the share of the loss reduction that a job has left, from 1 at its first loss to 0 at its lowest, over the
/// seconds of the run.
///
/// It is measured, not predicted, because the lowest loss is known at the end.
pub(super) fn left(job: &JobStatus) -> Vec<(f64, f64)> {
    let first = job.history.first().map_or(0.0, |point| point.loss);
    let lowest = job.history.iter().map(|point| point.loss).fold(f64::INFINITY, f64::min);
    let range = if first > lowest { first - lowest } else { 1.0 };
    job.history.iter().map(|point| (point.seconds, ((point.loss - lowest) / range).clamp(0.0, 1.0))).collect()
}

/// Returns the time at which an ended job was submitted, on the clock of its history.
fn submitted(job: &JobStatus) -> f64 {
    job.history.last().map_or(0.0, |point| (point.seconds - job.seconds).max(0.0))
}

/// Returns the seconds from a job's submission to nine tenths of its loss reduction; `None` if it never got there.
pub(super) fn mostly_learnt(job: &JobStatus) -> Option<f64> {
    left(job).into_iter().find(|(_, left)| *left <= 0.1).map(|(at, _)| at - submitted(job))
}

/// Returns the mean of what a job has left to learn, from its submission until `seconds` of the run. Before its first
/// loss everything is left.
fn mean_left(job: &JobStatus, seconds: f64) -> f64 {
    let began = submitted(job);
    let (mut sum, mut before, mut at) = (0.0, 1.0, began);
    for (until, left) in left(job) {
        let until = until.min(seconds);
        sum += before * (until - at).max(0.0);
        (before, at) = (left, at.max(until));
    }
    (sum + before * (seconds - at).max(0.0)) / (seconds - began).max(1e-9)
}

/// Returns the mean time from submission to nine tenths of the loss reduction, in seconds.
pub(super) fn mean_learnt(history: &RunHistory) -> f64 {
    let jobs = history.last().map_or(&[][..], |last| &last.training.jobs);
    mean(&jobs.iter().filter_map(mostly_learnt).collect::<Vec<_>>())
}

/// Returns the mean time from submission to the end of a training, in seconds.
pub(super) fn mean_completion(history: &RunHistory) -> f64 {
    let jobs = history.last().map_or(&[][..], |last| &last.training.jobs);
    mean(&jobs.iter().map(|job| job.seconds).collect::<Vec<_>>())
}

/// Returns the measures of a run with their values, over its first `seconds`.
pub(super) fn rows(history: &RunHistory, seconds: f64) -> Vec<(&'static str, String)> {
    let Some(last) = history.last() else { return Vec::new() };
    let jobs = &last.training.jobs;
    let queries = &last.video.queries;
    let weights: f64 = queries.iter().map(|query| query.goals.quality_weight).sum();
    let quality =
        queries.iter().map(|query| query.goals.quality_weight * query.mean_quality).sum::<f64>() / weights.max(1e-9);
    vec![
        (
            "training: mean normalised loss over jobs and time",
            format!("{:.1} %", 100.0 * mean(&jobs.iter().map(|job| mean_left(job, seconds)).collect::<Vec<_>>())),
        ),
        ("training: mean seconds until 90 % of the loss reduction", format!("{:.1}", mean_learnt(history))),
        ("training: mean seconds from submission to the end", format!("{:.1}", mean_completion(history))),
        ("video: weighted mean quality", format!("{quality:.2}")),
        (
            "video: mean seconds of lag over the goal",
            format!("{:.2}", mean(&queries.iter().map(|query| query.mean_lag_over).collect::<Vec<_>>())),
        ),
        ("seconds until the end, with lags within the goals", format!("{:.0}", last.at)),
    ]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
