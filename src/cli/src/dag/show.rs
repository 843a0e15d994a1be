//! `tepui dag list` and `tepui dag show`: tables of jobs, stages and tasks, and plots of sizes.

use std::process::ExitCode;

use anyhow::Result;

use super::ServiceArgs;
use super::model::{Estimate, Sizing, Stage, Summary, Task, View, tasks, view};
use crate::job_list::reasons;
use crate::read::table::{age, number, table};
use crate::read::{now, print};
use crate::service;

/// Number of tasks of a stage that are shown by default.
const TASKS_SHOWN: usize = 40;
/// Number of the last waves that are plotted.
const WAVES_SHOWN: usize = 24;
/// Length of the longest bar of a plot, in characters.
const BAR: usize = 30;

/// Flags of `tepui dag show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
    /// Stage whose tasks to show
    stage: Option<String>,
    /// Show all tasks, however many
    #[arg(long, short)]
    all: bool,
}

/// Formats jobs as a table.
pub(crate) fn jobs_table(jobs: &[Summary]) -> String {
    let mut table =
        table(&["JOB", "STATE", "PRIORITY", ">STAGES", ">WAITING", ">LIVE", ">DONE", ">FAILED", ">DROPPED", ">AGE"]);
    for job in jobs {
        let tasks = &job.tasks;
        table.add_row([
            job.name.clone(),
            job.state.clone(),
            job.priority.clone(),
            format!("{}/{}", job.stages_done, job.stages),
            tasks.waiting.to_string(),
            tasks.live.to_string(),
            tasks.finished.to_string(),
            tasks.failed.to_string(),
            tasks.dropped.to_string(),
            age(job.age),
        ]);
    }
    table.trim_fmt()
}

pub(super) async fn show(args: &ShowArgs) -> Result<ExitCode> {
    let service = args.service.find().await?;
    if args.service.json {
        let stage = args.stage.as_ref().map(|stage| format!("/stages/{}/tasks", service::encode(stage)));
        let document = service.get(&service::path(&args.job, &stage.unwrap_or_default())).await?;
        return print(&serde_json::to_string_pretty(&document)?);
    }
    let view = view(&service, &args.job).await?;
    let most = if args.all { usize::MAX } else { TASKS_SHOWN };
    let tasks = match &args.stage {
        Some(stage) => Some(tasks(&service, &args.job, stage, most).await?),
        None => None,
    };
    let mut text = show_text(&view);
    if let Some(tasks) = tasks {
        text.push_str(&format!("\n\n{}", tasks_table(&tasks, now().as_secs_f64())));
        if tasks.len() == most {
            text.push_str("\nmore tasks may exist: use --all");
        }
    }
    print(&text)
}

fn show_text(view: &View) -> String {
    let mut text = jobs_table(std::slice::from_ref(&view.summary));
    text.push('\n');
    if !view.summary.why.is_empty() {
        text.push_str(&format!("\nfailed: {}\n", view.summary.why));
    }
    text.push_str(&reasons(&view.why));
    for found in &view.tuned {
        text.push_str(&format!("{} priority: {found}\n", view.summary.priority));
    }
    text.push_str(&format!("\n{}\n", stages_table(&view.stages)));
    for stage in &view.stages {
        let has_outputs = view.summary.ended.is_none() || stage.tasks.finished > 0;
        if let Some(directory) = stage.directory.as_ref().filter(|_| has_outputs) {
            let place = if stage.removed { "removed when the job ended" } else { directory };
            text.push_str(&format!("outputs of {}: {place}\n", stage.name));
        }
        if let Some(estimate) = &stage.estimate {
            text.push_str(&estimate_text(&stage.name, estimate));
        }
        if let Some(sizing) = stage.sizing.as_ref().filter(|sizing| !sizing.waves.is_empty()) {
            text.push_str(&plot(&stage.name, sizing));
        }
    }
    text.trim_end().to_owned()
}

fn stages_table(stages: &[Stage]) -> String {
    let titles =
        ["STAGE", "STATE", "AFTER", ">TASKS", ">WAITING", ">LIVE", ">DONE", ">FAILED", ">MEAN", ">LONGEST", "NEEDS"];
    let mut table = table(&titles);
    for stage in stages {
        let tasks = &stage.tasks;
        table.add_row([
            stage.name.clone(),
            stage.state.clone(),
            stage.after.join(","),
            stage.total.map_or("?".to_owned(), |total| total.to_string()),
            tasks.waiting.to_string(),
            tasks.live.to_string(),
            tasks.finished.to_string(),
            tasks.failed.to_string(),
            stage.mean.map_or_else(String::new, age),
            if tasks.live > 0 { age(stage.longest) } else { String::new() },
            format!("cpus:{} mem:{}", number(stage.need.cpus), number(stage.need.mem)),
        ]);
    }
    table.trim_fmt()
}

fn estimate_text(stage: &str, estimate: &Estimate) -> String {
    let Estimate { statistic, value, confidence, tasks, of, .. } = estimate;
    let bound = estimate.bound.map_or("unknown".to_owned(), number);
    format!(
        "estimate of {stage}: {statistic} {} \u{b1} {bound} ({} % confidence) from {tasks} of {of} tasks\n",
        number(*value),
        number(confidence * 100.0)
    )
}

/// Plots size and rate over the waves, as bars.
fn plot(stage: &str, sizing: &Sizing) -> String {
    let first = sizing.waves.len().saturating_sub(WAVES_SHOWN);
    let shown = &sizing.waves[first..];
    let most = shown.iter().map(|wave| wave.size).max().unwrap_or(1).max(1) as f64;
    let fastest = shown.iter().map(|wave| wave.rate).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |part: f64| "#".repeat(((part * BAR as f64).round() as usize).clamp(1, BAR));
    let mut table = table(&[">WAVE", ">TASKS", &format!(">{}", sizing.unit.to_uppercase()), "SIZE", ">RATE", "RATE"]);
    for wave in shown {
        table.add_row([
            wave.number.to_string(),
            wave.tasks.to_string(),
            wave.size.to_string(),
            bar(wave.size as f64 / most),
            format!("{}/s", number(wave.rate.round())),
            bar(wave.rate / fastest),
        ]);
    }
    format!(
        "\nsizes of {stage}: now {} {}, {} remaining; {}\n{}\n",
        sizing.size,
        sizing.unit,
        sizing.left,
        sizing.why,
        table.trim_fmt()
    )
}

fn tasks_table(tasks: &[Task], now: f64) -> String {
    let mut table = table(&[">TASK", "STATE", ">TRIES", ">UNITS", "HOST", ">TIME", "MESSAGE"]);
    for task in tasks {
        let time = task.took.or_else(|| task.running.map(|since| (now - since).max(0.0)));
        table.add_row([
            task.number.to_string(),
            task.state.clone(),
            task.attempts.to_string(),
            task.units.to_string(),
            task.place.clone().unwrap_or_default().host,
            time.map_or_else(String::new, age),
            task.message.clone(),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stages_sizes_and_estimates_are_shown() {
        let view: View = serde_json::from_value(json!({
            "summary": { "name": "count", "state": "running", "priority": "high", "stages": 2, "stages_done": 1, "age": 61.0 },
            "stages": [
                { "name": "map", "state": "running", "tasks": { "live": 2, "finished": 3 }, "mean": 1.5, "longest": 2.0,
                  "directory": "/m", "removed": true,
                  "sizing": { "unit": "bytes", "size": 4096, "left": 100, "why": "wave 1: fine",
                              "waves": [{ "number": 1, "size": 2048, "rate": 10.0, "tasks": 6 },
                                        { "number": 2, "size": 4096, "rate": 20.0, "tasks": 6 }] },
                  "estimate": { "statistic": "sum", "value": 12.0, "bound": 1.5, "confidence": 0.95, "tasks": 4, "of": 5 } },
                { "name": "reduce", "state": "blocked", "after": ["map"], "total": 1, "directory": "/d" },
            ],
            "why": ["reduce: waits for map", "warning: too large"],
            "tuned": ["jobs sprint once they are 2 s old"],
        }))
        .unwrap();
        let text = show_text(&view);
        for part in [
            "1/2",
            "reasons:\n  reduce: waits for map\n  warning: too large\n",
            "\nhigh priority: jobs sprint once they are 2 s old\n",
            "outputs of map: removed when the job ended\n",
            "outputs of reduce: /d",
            "sum 12 \u{b1} 1.5 (95 % confidence) from 4 of 5 tasks",
            "now 4096 bytes, 100 remaining; wave 1: fine",
            "###############  ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
