//! Compares the learned order with the best heuristics: on the workloads of its training, and on others. It trains
//! nothing.

use std::sync::Arc;

use super::StudyError;
use super::cluster::{Outcome, Setup, run};
use super::job::{Arrival, JobModel};
use super::orders::Workload;
use super::random::Random;
use super::stats::Spread;
use super::tpch::{Queries, SIX, SIZES};
use crate::learned::{Decima, Guard, GuardedOrder, Mode, Model};
use crate::order::{Heuristic, History, Policy};

/// A workload, and the distribution by which jobs are drawn from the queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Number of jobs, gaps, executors and sizes.
    pub workload: Workload,
    /// Exponent of a query's work that is its weight in the drawing: 0 for all alike, 1 for mostly large ones.
    pub power: f64,
}

const fn case(
    name: &'static str,
    jobs: usize,
    gap: Option<f64>,
    executors: u32,
    sizes: &'static [&'static str],
) -> Case {
    Case { workload: Workload { name, jobs, gap, executors, sizes, anchors: &[] }, power: 0.0 }
}

/// All cases: the paper's batch, both readings of its stream (shortened), and workloads unlike the training.
pub const CASES: [Case; 10] = [
    case("batch", 20, None, 50, &SIX),
    case("stream 45 s", 200, Some(45_000.0), 25, &SIX),
    case("stream 25 s", 200, Some(25_000.0), 50, &SIZES),
    case("stream 90 s", 200, Some(90_000.0), 25, &SIX),
    case("stream 40 s", 200, Some(40_000.0), 25, &SIX),
    case("batch, small jobs", 20, None, 50, &["2g", "5g"]),
    case("batch, large jobs", 20, None, 50, &["80g", "100g"]),
    case("batch, 15 executors", 20, None, 15, &SIX),
    case("batch, 100 executors", 20, None, 100, &SIX),
    Case { power: 1.0, ..case("batch, mostly large", 20, None, 50, &SIX) },
];

/// Exponents of a job's work that are tried for its share.
const POWERS: [f64; 9] = [-2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0];

impl Case {
    /// Returns the arrivals of a seed.
    pub fn arrivals(&self, queries: &Queries, seed: u64) -> Vec<Arrival> {
        if self.power == 0.0 {
            return self.workload.arrivals(queries, seed);
        }
        let known = queries.of_sizes(self.workload.sizes);
        let weight = |job: &Arc<JobModel>| (job.work().max(1) as f64).powf(self.power);
        let total: f64 = known.iter().map(weight).sum();
        let mut random = Random::new(seed, "jobs");
        let mut draw = || {
            let mut left = random.part() * total;
            known.iter().find(|job| {
                left -= weight(job);
                left < 0.0
            })
        };
        let drawn = (0..self.workload.jobs).filter_map(|_| draw().or_else(|| known.last()).cloned());
        drawn.map(|job| Arrival { at: 0, job }).collect()
    }

    fn run(&self, queries: &Queries, policy: &mut dyn Policy, seed: u64) -> Result<Outcome, StudyError> {
        let setup = Setup { executors: self.workload.executors, ..Setup::default() };
        run(setup, &self.arrivals(queries, seed), policy, &mut History::default(), seed)
    }
}

/// The results of an order in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the case.
    pub case: &'static str,
    /// Name of the order.
    pub order: String,
    /// Mean seconds from arrival to end.
    pub mean: Spread,
    /// Fraction by which the mean is shorter than with the tuned weighted shares on the same jobs.
    pub shorter: Spread,
    /// Seconds until the last job ended.
    pub makespan: Spread,
    /// Largest ratio of a job's time to its time with fair shares.
    pub worst: Spread,
}

/// Returns the seeds that a case uses: all for a batch, a fifth of them (at least two) for a stream.
pub fn seeds_of<'a>(case: &Case, seeds: &'a [u64]) -> &'a [u64] {
    let count = if case.workload.gap.is_some() { (seeds.len() / 5).max(2).min(seeds.len()) } else { seeds.len() };
    &seeds[..count]
}

/// Runs a case under fair shares, the best weighted ones, the best heuristic of this crate, and the learned order
/// without and with its guard.
///
/// # Errors
/// There are no queries of these sizes.
pub fn compare(case: &Case, queries: &Queries, model: &Arc<Model>, seeds: &[u64]) -> Result<Vec<Compared>, StudyError> {
    let all = |policy: &dyn Fn() -> Box<dyn Policy + Send>| -> Result<Vec<Outcome>, StudyError> {
        seeds.iter().map(|seed| case.run(queries, &mut *policy(), *seed)).collect()
    };
    let mean = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::mean).sum::<f64>() / outcomes.len().max(1) as f64;
    let fair = all(&|| Box::new(Heuristic::Fair))?;
    let mut tuned: Option<(f64, Vec<Outcome>)> = None;
    for power in POWERS {
        let outcomes = all(&|| Box::new(Heuristic::Weighted(power)))?;
        if tuned.as_ref().is_none_or(|(_, best)| mean(&outcomes) < mean(best)) {
            tuned = Some((power, outcomes));
        }
    }
    let Some((power, tuned)) = tuned else { return Ok(Vec::new()) };
    let network = Arc::new(model.network.clone());
    let remaining = all(&|| Box::new(Heuristic::ShortestRemaining))?;
    let learned = all(&|| Box::new(Decima::new(network.clone(), Mode::Greedy)))?;
    let guarded = all(&|| Box::new(GuardedOrder::new(model.clone(), Guard::default())))?;
    let row = |order: &str, outcomes: &[Outcome]| {
        let values = |of: &dyn Fn(usize) -> f64| Spread::of(&(0..outcomes.len()).map(of).collect::<Vec<_>>());
        let slower = |n: usize| {
            let pairs = outcomes[n].completions.iter().zip(&fair[n].completions);
            pairs.map(|(own, fair)| own / fair).fold(0.0, f64::max)
        };
        Compared {
            case: case.workload.name,
            order: order.to_owned(),
            mean: values(&|n| outcomes[n].mean()),
            shorter: values(&|n| 1.0 - outcomes[n].mean() / tuned[n].mean()),
            makespan: values(&|n| outcomes[n].makespan),
            worst: values(&slower),
        }
    };
    Ok(vec![
        row("fair", &fair),
        row(&format!("weighted {power} (tuned)"), &tuned),
        row("remaining", &remaining),
        row("decima, no guard", &learned),
        row("decima", &guarded),
    ])
}
