//! `tepui lab failures`: measures how well the ends of a trace's jobs and tasks are predicted. It starts nothing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::lab::failures::{GeneratedTrace, Outcome, evaluate, generate_trace};
use ::lab::scenario::google_events;
use advice::ends::Score;
use anyhow::{Context, Result, bail};

use crate::read::print;
use crate::read::table::{age, table};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files of `task_events` of Google's trace of 2011, unpacked, in the order of time; a trace is generated otherwise
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Fraction of the trace's time in which the classifier only learns
    #[arg(long, default_value_t = 0.6, value_name = "SHARE")]
    learn: f64,
    /// Number of jobs of a generated trace
    #[arg(long, default_value_t = 8_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "trace")]
    jobs: u32,
    /// Seed of the generated trace and of the classifier
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if !(0.0..1.0).contains(&args.learn) {
        bail!("--learn is {}: must be from 0 to below 1", args.learn);
    }
    let outcome = if args.trace.is_empty() { made(args)? } else { traced(args)? };
    if args.json {
        return print(&serde_json::to_string_pretty(&outcome)?);
    }
    let source = match args.trace.is_empty() {
        true => format!(
            "a generated trace of {} jobs, seed {} (its mechanisms are in docs/papers/failures.md)",
            args.jobs, args.seed
        ),
        false => args.trace.iter().map(|path| path.display().to_string()).collect::<Vec<String>>().join(", "),
    };
    print(&text(&outcome, &source))
}

fn made(args: &Args) -> Result<Outcome> {
    let text =
        generate_trace(&GeneratedTrace { jobs: args.jobs as usize, seed: args.seed, ..GeneratedTrace::default() });
    let name = Path::new("the generated trace");
    let events = || google_events(text.as_bytes(), name);
    let mut last = 0.0;
    for event in events() {
        last = event?.time;
    }
    Ok(evaluate(events(), args.learn * last, args.seed)?)
}

/// Reads the files twice: first for the length of the trace.
fn traced(args: &Args) -> Result<Outcome> {
    let mut readers = Vec::new();
    for path in &args.trace {
        readers.push((open(path)?, path));
    }
    let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
    for event in readers.into_iter().flat_map(|(reader, path)| google_events(reader, path)) {
        let time = event?.time;
        if time < last {
            bail!("the events are not in order of time: name the files in the order of their times");
        }
        (first, last) = (first.min(time), time);
    }
    if !first.is_finite() {
        bail!("the trace has no events");
    }
    let mut readers = Vec::new();
    for path in &args.trace {
        readers.push((open(path)?, path));
    }
    let events = readers.into_iter().flat_map(|(reader, path)| google_events(reader, path));
    Ok(evaluate(events, first + args.learn * (last - first), args.seed)?)
}

fn open(path: &Path) -> Result<impl BufRead + use<>> {
    let file = File::open(path).with_context(|| format!("cannot read '{}'", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn text(outcome: &Outcome, source: &str) -> String {
    let mut all = table(&["PREDICTED", ">COUNT", ">RIGHT", ">BASELINE", ">MOST FREQUENT", ">PAPER"]);
    let mut row = |name: String, score: &Score, habit: Option<&Score>, source: &str| {
        all.add_row([
            name,
            score.count().to_string(),
            percent(score.accuracy()),
            habit.map_or_else(|| "-".to_owned(), |habit| percent(habit.accuracy())),
            percent(score.most_frequent()),
            source.to_owned(),
        ]);
    };
    row("jobs, at their first launch".to_owned(), &outcome.jobs, Some(&outcome.jobs_by_habit), "94.4 %");
    row("launches, at their start".to_owned(), &outcome.events, Some(&outcome.events_by_habit), "76.8 %");
    row("launches, model frozen".to_owned(), &outcome.events_frozen, None, "");
    for running in &outcome.running {
        row(format!("launches, after running for {}", age(running.age)), &running.then, None, "");
        row("these launches, at their start".to_owned(), &running.at_launch, None, "");
    }
    let mut classes = table(&["END", ">JOBS", ">PRECISION", ">RECALL", ">LAUNCHES", ">PRECISION", ">RECALL"]);
    for (job, event) in outcome.jobs.classes().iter().zip(outcome.events.classes()) {
        classes.add_row([
            job.end.name().to_owned(),
            job.count.to_string(),
            percent(job.precision),
            percent(job.recall),
            event.count.to_string(),
            percent(event.precision),
            percent(event.recall),
        ]);
    }
    format!(
        "{source}\n{} launches in the training part, the first {} of the trace; results for the rest:\n\n{}\n\n{}\n\n\"Paper\" is the paper's accuracy on Google's trace of \
2011; on a generated trace it cannot be compared.\n\"Baseline\" is the most frequent end so far of the job or its kind, without a network.",
        outcome.learned,
        age(outcome.from),
        all.trim_fmt(),
        classes.trim_fmt(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(trace: Vec<PathBuf>) -> Args {
        Args { trace, learn: 0.5, jobs: 200, seed: 1, json: false }
    }

    #[test]
    fn a_made_trace_and_the_same_from_a_file() {
        let outcome = made(&args(Vec::new())).unwrap();
        let shown = text(&outcome, "made");
        assert!(shown.contains("launches, after running for 10 min") && shown.contains("76.8 %"), "{shown}");
        assert_eq!(shown.lines().filter(|line| line.starts_with("evict")).count(), 1, "{shown}");

        let directory = std::env::temp_dir().join(format!("tepui-failures-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("part.csv");
        std::fs::write(&path, generate_trace(&GeneratedTrace { jobs: 200, ..GeneratedTrace::default() })).unwrap();
        let read = traced(&args(vec![path.clone()])).unwrap();
        assert_eq!(read.events.count() + read.learned, outcome.events.count() + outcome.learned);
        let twice = traced(&args(vec![path.clone(), path])).unwrap_err().to_string();
        assert!(twice.contains("not in order of time"), "{twice}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
