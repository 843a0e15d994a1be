//! Runs trainings that share cores (SLAQ) in virtual time: the policy code of the quality framework decides over losses
//! that its trainers have recorded. Work and arrivals are drawn from the seed; nothing is trained.

use std::path::Path;

use lab::seeds::Seed;
use lab::span::Span;
use plot::{Line, Lines};
use quality::allocate::Policy;
use quality::replay::{Outcome, Pool, RecordedJob, read_losses, replay};
use rand_distr::{Distribution, Exp1, LogNormal, StandardUniform};
use serde::Deserialize;

use crate::Failed;
use crate::row::{Row, over_seeds};

/// A scenario with trainings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "`name`, `about` and `replay` are for readers and for the choice of this kind")]
pub struct Training {
    name: String,
    about: String,
    replay: String,
    /// File of recorded losses, relative to the scenario.
    curves: String,
    seed: u64,
    repetitions: u64,
    /// Mean time between two submissions.
    poisson: Span,
    cores: u32,
    /// Interval of decisions.
    epoch: Span,
    /// Overhead of an iteration, in addition to its work.
    overhead: Span,
    /// Number of parts into which the work of an iteration is divided.
    shards: u32,
    /// Variation of the work of iterations among jobs: the standard deviation of its logarithm.
    spread: f64,
    /// Ratios of the jobs' demand to the capacity while they arrive: one row for each.
    load: Vec<f64>,
}

impl Training {
    /// Runs the scenario, and returns its rows.
    pub fn rows(text: &str, directory: &Path) -> Result<Vec<Row>, Failed> {
        let scenario: Training = toml::from_str(text)?;
        let recorded = read(&directory.join(&scenario.curves))?;
        Ok(scenario.load.iter().map(|load| scenario.row(*load, &recorded)).collect())
    }

    fn row(&self, load: f64, recorded: &[Vec<f64>]) -> Row {
        let (mut numbers, mut pictures) = (Vec::new(), Vec::new());
        for seed in self.seed..self.seed + self.repetitions {
            let curves = self.jobs(load, recorded, Seed::root(seed));
            let pool = Pool { cores: self.cores, epoch: self.epoch.0.as_secs_f64(), at_once: true };
            let [slaq, fair] = [Policy::Slaq, Policy::Fair].map(|policy| replay(&curves, policy, pool));
            numbers.push(compared(&curves, &slaq, &fair));
            if pictures.is_empty() {
                pictures.push(("loss", picture(&curves, &slaq, &fair)));
            }
        }
        let values = vec![("load".to_owned(), load.to_string())];
        Row { values, numbers: over_seeds(&numbers), pictures, ..Row::default() }
    }

    /// Returns the jobs of a seed: each recorded training once, in an order of its own.
    fn jobs(&self, load: f64, recorded: &[Vec<f64>], seed: Seed) -> Vec<RecordedJob> {
        let (mut when, mut work) = (seed.child("arrivals").rng(), seed.child("work").rng());
        let mut order: Vec<(f64, usize)> =
            (0..recorded.len()).map(|n| (StandardUniform.sample(&mut seed.nth("order", n).rng()), n)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = recorded.iter().map(Vec::len).sum::<usize>() as f64 / recorded.len().max(1) as f64;
        let gap = self.poisson.0.as_secs_f64();
        // With this mean of the logarithm, the mean of the values is 1.
        let uneven = LogNormal::new(-self.spread * self.spread / 2.0, self.spread);
        let mut now = 0.0;
        let mut curves = Vec::new();
        for (_, n) in order {
            let losses = recorded[n].clone();
            let times = uneven.as_ref().map_or(1.0, |uneven| uneven.sample(&mut work));
            curves.push(RecordedJob {
                work: load * gap * f64::from(self.cores) * times / mean,
                losses,
                after: now,
                priority: 1.0,
                shards: self.shards,
                ceiling: self.shards.min(self.cores),
                overhead: self.overhead.0.as_secs_f64(),
                rounds: 1.0,
            });
            let draw: f64 = Exp1.sample(&mut when);
            now += gap * draw;
        }
        curves
    }
}

/// Reads recorded losses: `job,algorithm,losses`.
fn read(file: &Path) -> Result<Vec<Vec<f64>>, Failed> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    Ok(read_losses(&text).map_err(|why| format!("{}: {why}", file.display()))?)
}

fn compared(curves: &[RecordedJob], slaq: &Outcome, fair: &Outcome) -> Vec<(String, f64)> {
    let until = slaq.makespan.max(fair.makespan);
    let mut numbers = Vec::new();
    let mut both = |name: &str, of: &dyn Fn(&Outcome) -> f64| {
        let (ours, theirs) = (of(slaq), of(fair));
        numbers.push((format!("slaq.{name}"), ours));
        numbers.push((format!("fair.{name}"), theirs));
        numbers.push((format!("less.{name}"), 1.0 - ours / theirs));
    };
    both("loss", &|outcome| outcome.mean_left_of_running(curves));
    both("left", &|outcome| outcome.mean_left(curves, until));
    both("t90", &|outcome| outcome.mean_time_to(curves, 0.1));
    both("t95", &|outcome| outcome.mean_time_to(curves, 0.05));
    both("end", &|outcome| outcome.ends.iter().map(|ends| ends[ends.len() - 1]).sum::<f64>() / curves.len() as f64);
    both("jobs", &|outcome| {
        outcome.epochs.iter().map(|(_, jobs)| jobs.len() as f64).sum::<f64>() / outcome.epochs.len() as f64
    });
    both("high", &|outcome| cores_of(outcome, 0.0, 0.25));
    both("low", &|outcome| cores_of(outcome, 0.5, 1.0));
    numbers
}

/// Returns the share of the cores of the jobs between two positions (from 0 to 1) in the order of what they have left
/// to learn, the most first. It is a mean over the epochs in which four jobs or more run.
fn cores_of(outcome: &Outcome, from: f64, to: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for (_, jobs) in outcome.epochs.iter().filter(|(_, jobs)| jobs.len() >= 4) {
        let mut jobs = jobs.clone();
        jobs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let place = |part: f64| (part * jobs.len() as f64).round() as usize;
        let cores = |jobs: &[(u32, f64)]| jobs.iter().map(|(cores, _)| f64::from(*cores)).sum::<f64>();
        sum += cores(&jobs[place(from)..place(to)]) / cores(&jobs).max(1.0);
        count += 1;
    }
    sum / f64::from(count.max(1))
}

fn picture(curves: &[RecordedJob], slaq: &Outcome, fair: &Outcome) -> Lines {
    let line = |name: &str, outcome: &Outcome| Line::new(name, outcome.left_of_running(curves, 5.0));
    Lines {
        x: "seconds".to_owned(),
        y: "left to learn, mean over the jobs that run".to_owned(),
        lines: vec![line("slaq", slaq), line("fair", fair)],
        ..Lines::default()
    }
}
