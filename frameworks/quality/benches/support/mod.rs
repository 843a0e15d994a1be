//! Code that the benchmarks share: real trainings as loss curves, on slots of a fixed speed.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(dead_code, reason = "each benchmark uses its own part")]

use quality::job::{Job, parse};
use quality::learn::{Algorithm, LocalTraining};
use quality::replay::{Outcome, Pool, RecordedJob};

/// Numbers of the data that a core processes in a second.
pub const PACE: f64 = 400_000.0;
/// Number of cores that the jobs share.
pub const SLOTS: u32 = 8;
/// The pool of [`SLOTS`] cores, with a decision every second.
pub const POOL: Pool = Pool { cores: SLOTS, epoch: 1.0, at_once: false };
/// Overhead of a round for sending, merging and the step, in seconds; measured in live runs.
const OVERHEAD: f64 = 0.01;

/// Returns the sixteen jobs of `sixteen.toml`.
pub fn sixteen() -> Vec<Job> {
    parse("sixteen.toml", include_str!("../sixteen.toml")).expect("the file is part of the benchmark")
}

/// Trains a job from its first to its last iteration, and returns its loss curve.
pub fn train(job: &Job) -> RecordedJob {
    let prepared = job.data.prepare(&job.algorithm, None).expect("generated data");
    let shards = (0..job.shards).map(|s| prepared.shard(&job.algorithm, s, job.shards).expect("generated data"));
    let shape = prepared.shape();
    let local = LocalTraining::new(job.algorithm.clone(), shape, shards.collect()).expect("a good job");
    let losses = local.run(job.iterations).expect("a training that converges").losses;
    let rounds = match &job.algorithm {
        Algorithm::BoostedTrees(o) => o.depth as f64,
        Algorithm::Perceptron(o) => f64::from(o.steps),
        _ => 1.0,
    };
    RecordedJob { work: (shape.rows * shape.columns) as f64 / PACE, rounds, ..recorded(job, losses) }
}

/// Returns the curve of a training whose losses are known.
pub fn recorded(job: &Job, losses: Vec<f64>) -> RecordedJob {
    RecordedJob {
        losses,
        after: job.after,
        priority: job.priority,
        shards: job.shards as u32,
        ceiling: job.ceiling(),
        work: 0.0,
        overhead: OVERHEAD,
        rounds: 1.0,
    }
}

/// Prints the measures of each policy, and compares each with the fair policy.
pub fn comparison(curves: &[RecordedJob], outcomes: &[(&str, &Outcome)]) {
    let until = outcomes.iter().map(|(_, o)| o.makespan).fold(0.0, f64::max);
    for (name, outcome) in outcomes {
        println!("{name}: all done after {:.0} s", outcome.makespan);
        line("  left to learn, mean over run and jobs", &percent(outcome.mean_left(curves, until)), "");
        line("  the same over the jobs that run at a time", &percent(outcome.mean_left_of_running(curves)), "");
        for share in [0.1, 0.05] {
            let what = format!("  mean time until {:.0} % are learnt", 100.0 * (1.0 - share));
            line(&what, &format!("{:.1} s", outcome.mean_time_to(curves, share)), "");
        }
        line("  mean completion", &format!("{:.1} s", outcome.mean_completion()), "");
    }
    let Some((_, fair)) = outcomes.iter().find(|(name, _)| *name == "fair") else { return };
    for (name, outcome) in outcomes.iter().filter(|(name, _)| *name != "fair") {
        println!("{name} against fair");
        let slaq = |wanted: &'static str| if *name == "slaq" { wanted } else { "" };
        let less = |of: &dyn Fn(&Outcome) -> f64| percent(1.0 - of(outcome) / of(fair));
        let left = less(&|outcome| outcome.mean_left(curves, until));
        line("  mean normalised loss over the run, lower by", &left, slaq("at least 30 %"));
        let running = less(&|outcome| outcome.mean_left_of_running(curves));
        line("  the same over the jobs that run at a time", &running, slaq("the paper: 73 %"));
        let time = less(&|outcome| outcome.mean_time_to(curves, 0.1));
        line("  time to 90 % loss reduction, shorter by", &time, slaq("at least 25 %; the paper: 45 %"));
        let time = less(&|outcome| outcome.mean_time_to(curves, 0.05));
        line("  time to 95 % loss reduction, shorter by", &time, slaq("the paper: 30 %"));
        line("  mean completion, shorter by", &less(&Outcome::mean_completion), "");
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Prints a line of a table: the measure, its value, and the expected value.
pub fn line(what: &str, figure: &str, wanted: &str) {
    println!("{what:<58} {figure:>14}   {wanted}");
}

/// Student's t for a 95 % interval with nine degrees of freedom, which are ten runs.
const T: f64 = 2.262;

/// Returns the mean of ten values, and half of its 95 % interval.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, T * (variance / count).sqrt())
}
