//! Generates queries like those of TPC-H on Spark from published totals: 22 graphs of 2 to 18 stages, 9.18 in the mean,
//! each in seven sizes of input. They contain no measurements.
//!
//! These facts of the public traces are preserved: the stages, the mean work by size, the mean tasks, and that the
//! quarter with most work has about 62 % of it. The graphs, and the distribution of work over stages, are invented.

use std::sync::Arc;

use super::job::{Durations, JobModel, StageModel};
use super::random::Random;
use super::tpch::{QUERIES, Queries, SIZES};
use crate::order::Amounts;

/// Number of stages of each query. The counts are those of the public traces.
const STAGES: [usize; 22] = [4, 18, 6, 4, 12, 2, 18, 14, 13, 8, 9, 6, 6, 4, 7, 9, 8, 8, 4, 16, 14, 12];

/// Mean core-seconds of a query by size.
const WORK: [f64; 7] = [174.0, 241.0, 349.0, 545.0, 1095.0, 1680.0, 2141.0];

/// Mean number of tasks of a query by size: 912 and 1,576 are published, those between are evenly spaced in the
/// logarithm of size.
const TASKS: [f64; 7] = [912.0, 1068.0, 1186.0, 1304.0, 1460.0, 1540.0, 1576.0];

/// Numbers of executors for which durations are generated.
const EXECUTORS: [u32; 9] = [2, 5, 10, 20, 40, 50, 60, 80, 100];

/// Generates the queries. The same seed gives the same ones.
pub fn queries(seed: u64) -> Queries {
    let mut jobs = Vec::new();
    let weights = weights(seed);
    for (at, size) in SIZES.iter().enumerate() {
        for query in 1..=QUERIES {
            let (work, tasks) = (WORK[at] * weights[query as usize - 1], TASKS[at]);
            let stages = stages(seed, query, &format!("made-{size}-{query}"), work, tasks);
            jobs.push(((*size).to_owned(), query, Arc::new(JobModel { name: format!("made-{size}-{query}"), stages })));
        }
    }
    Queries::of(jobs)
}

/// Draws the relative work of each query, with a mean of 1.
fn weights(seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed, "weights");
    let drawn: Vec<f64> = (0..QUERIES).map(|_| random.lognormal(1.0, 0.75)).collect();
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    drawn.into_iter().map(|one| one / mean).collect()
}

fn stages(seed: u64, query: u32, name: &str, work: f64, tasks: f64) -> Vec<StageModel> {
    let mut random = Random::new(seed, &format!("query {query}"));
    let count = STAGES[query as usize - 1];
    let parts: Vec<f64> = (0..count).map(|_| random.lognormal(1.0, 1.2)).collect();
    let spread: Vec<f64> = (0..count).map(|_| random.lognormal(1.0, 0.8)).collect();
    let (all, wide) = (parts.iter().sum::<f64>(), spread.iter().sum::<f64>());
    (0..count)
        .map(|at| {
            let parents = parents(at, count, &mut random);
            let tasks = (tasks * spread[at] / wide).round().clamp(1.0, 2000.0) as u32;
            let mean = (work * parts[at] / all * 1000.0 / f64::from(tasks)).max(20.0);
            let durations = EXECUTORS.map(|executors| durations(executors, mean, tasks, &mut random));
            StageModel {
                key: format!("{name}-{at}"),
                tasks,
                parents,
                rough: mean as u64,
                demand: Amounts::default(),
                durations: durations.into(),
            }
        })
        .collect()
}

/// Draws the parents of a stage in a tree of joins: one or two of the last stages without a child; the last stage joins
/// all.
fn parents(at: usize, count: usize, random: &mut Random) -> Vec<u32> {
    let inputs = count.div_ceil(3);
    if at < inputs {
        return Vec::new();
    }
    if at + 1 == count {
        let from = at.saturating_sub(2).max(1);
        return (from - 1..at).map(|parent| parent as u32).collect();
    }
    let first = (at - inputs) as u32;
    let second = (inputs + random.below(at - inputs + 1)).min(at) as u32;
    if random.part() < 0.5 && second != first && (second as usize) < at {
        vec![first.min(second), first.max(second)]
    } else {
        vec![first]
    }
}

/// Draws a dozen durations of each kind. First waves are slower, and tasks get slower with more executors at the job.
fn durations(executors: u32, mean: f64, tasks: u32, random: &mut Random) -> Durations {
    let slower = 1.0 + 0.3 * (f64::from(executors) / 100.0);
    let mut draw = |factor: f64, count: u32| -> Vec<u64> {
        (0..count.min(12)).map(|_| random.lognormal(mean * factor * slower / 1.12, 0.25).max(1.0) as u64).collect()
    };
    let first = draw(1.3, executors.min(tasks));
    let rest = draw(1.0, tasks.saturating_sub(executors));
    let mut fresh = draw(1.3, executors.min(tasks));
    fresh.iter_mut().for_each(|one| *one += super::job::WARM_UP);
    Durations { executors, first, rest, fresh }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_as_published() {
        let queries = queries(1);
        let all = queries.of_sizes(&SIZES);
        let mean = |of: &dyn Fn(&JobModel) -> f64| all.iter().map(|job| of(job)).sum::<f64>() / all.len() as f64;
        assert_eq!(all.len(), 154);
        assert!((mean(&|job| job.stages.len() as f64) - 9.18).abs() < 0.01);
        let work = mean(&|job| job.work() as f64 / 1000.0);
        assert!((work - 889.0).abs() < 60.0, "{work}");
        let mut works: Vec<u64> = all.iter().map(|job| job.work()).collect();
        works.sort_unstable();
        let top = works[works.len() * 77 / 100..].iter().sum::<u64>() as f64 / works.iter().sum::<u64>() as f64;
        assert!((0.55..0.72).contains(&top), "{top}");
        for job in &all {
            for (at, stage) in job.stages.iter().enumerate() {
                assert!(stage.parents.iter().all(|parent| (*parent as usize) < at), "{}", job.name);
            }
        }
        assert_eq!(queries.of_sizes(&["2g"])[3], super::queries(1).of_sizes(&["2g"])[3]);
    }
}
