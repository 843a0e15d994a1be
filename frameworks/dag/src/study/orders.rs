//! Compares the heuristics that Decima was compared with, on batches and streams of TPC-H queries.
//!
//! Queries come from the public simulator's directory ([`super::tpch`]) or are generated ([`super::generated`]).

use std::sync::Arc;

use super::StudyError;
use super::cluster::{Outcome, Setup, run};
use super::job::{Arrival, JobModel};
use super::random::Random;
use super::stats::Spread;
use super::tpch::{Queries, SIX, SIZES};
use crate::order::{Heuristic, History, Policy};

/// A workload: the jobs, their arrivals, and the executors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Name of the workload.
    pub name: &'static str,
    /// Number of jobs.
    pub jobs: usize,
    /// Mean milliseconds between arrivals; `None` if all jobs arrive at once.
    pub gap: Option<f64>,
    /// Number of executors.
    pub executors: u32,
    /// Sizes of the jobs' input.
    pub sizes: &'static [&'static str],
    /// Anchors: mean seconds by order that the public simulator's environment gave with our own implementations of the
    /// orders.
    pub anchors: &'static [(&'static str, f64)],
}

/// The set-ups: Decima's batch of 20 jobs, and both readings of its stream of 1,000 jobs.
pub const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "batch",
        jobs: 20,
        gap: None,
        executors: 50,
        sizes: &SIX,
        anchors: &[
            ("fifo", 257.4),
            ("sjf-cp", 169.0),
            ("fair", 101.0),
            ("weighted -0.5", 96.7),
            ("weighted -1", 104.3),
            ("weighted 1", 210.3),
        ],
    },
    Workload {
        name: "stream 45 s",
        jobs: 1000,
        gap: Some(45_000.0),
        executors: 25,
        sizes: &SIX,
        anchors: &[("fifo", 111.9), ("sjf-cp", 71.8), ("fair", 68.4), ("weighted -0.5", 60.7), ("weighted -1", 63.0)],
    },
    Workload {
        name: "stream 25 s",
        jobs: 1000,
        gap: Some(25_000.0),
        executors: 50,
        sizes: &SIZES,
        anchors: &[("fair", 61.4), ("weighted -0.5", 58.5), ("weighted -1", 64.0)],
    },
];

/// Names of the orders of the study. `learned` is `remaining` with only the durations of earlier runs.
pub const ORDERS: [&str; 10] = [
    "fifo",
    "sjf-cp",
    "fair",
    "weighted -0.5",
    "weighted -1",
    "weighted 1",
    "remaining",
    "learned",
    "tetris",
    "graphene",
];

impl Workload {
    /// Returns the arrivals of a seed.
    pub fn arrivals(&self, queries: &Queries, seed: u64) -> Vec<Arrival> {
        arrivals(&queries.of_sizes(self.sizes), self.jobs, self.gap, seed)
    }

    /// Runs a seed under a policy.
    ///
    /// # Errors
    /// There are no queries of these sizes, or the policy leaves all executors idle.
    pub fn run_with(&self, queries: &Queries, policy: &mut dyn Policy, seed: u64) -> Result<Outcome, StudyError> {
        let setup = Setup { executors: self.executors, ..Setup::default() };
        run(setup, &self.arrivals(queries, seed), policy, &mut History::default(), seed)
    }

    /// Runs a seed under an order.
    ///
    /// # Errors
    /// The order is unknown, or there are no queries of these sizes.
    pub fn run(&self, queries: &Queries, order: &str, seed: u64) -> Result<Outcome, StudyError> {
        let learned = order == "learned";
        let mut policy: Heuristic = if learned { "remaining" } else { order }
            .parse()
            .map_err(|_| StudyError::Setting { setting: "order", rule: "must be one of those that are known" })?;
        let setup = Setup { executors: self.executors, knows_durations: !learned, ..Setup::default() };
        let mut history = History::default();
        if learned {
            // Run other jobs first: the history of a batch would otherwise be empty.
            run(setup, &self.arrivals(queries, seed ^ 0x5eed), &mut policy, &mut history, seed)?;
        }
        run(setup, &self.arrivals(queries, seed), &mut policy, &mut history, seed)
    }
}

/// Draws this many jobs from the known ones. They arrive at once, or with a mean gap in milliseconds.
pub fn arrivals(known: &[Arc<JobModel>], jobs: usize, gap: Option<f64>, seed: u64) -> Vec<Arrival> {
    let (mut which, mut when) = (Random::new(seed, "jobs"), Random::new(seed, "arrivals"));
    let mut now = 0.0;
    let mut next = || -> Option<Arc<JobModel>> { known.get(which.below(known.len())).cloned() };
    (0..jobs)
        .filter_map(|_| {
            let at = gap.map_or(0.0, |gap| {
                now += when.exponential(gap);
                now
            });
            next().map(|job| Arrival { at: at as u64, job })
        })
        .collect()
}

/// The results of an order under a workload, over the seeds.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Ordered {
    /// Name of the workload.
    pub workload: &'static str,
    /// Name of the order.
    pub order: &'static str,
    /// Mean seconds from arrival to end.
    pub mean: Spread,
    /// Seconds until the last job ended.
    pub makespan: Spread,
    /// Mean divided by that of fair shares.
    pub of_fair: Spread,
    /// Mean of the public simulator (the anchor), if there is one.
    pub anchor: Option<f64>,
}

/// Runs all orders under a workload. A batch uses all `seeds`, a stream the first tenth of them (at least two), since
/// it has fifty times the jobs.
///
/// # Errors
/// As [`Workload::run`].
pub fn study(workload: &Workload, queries: &Queries, seeds: &[u64]) -> Result<Vec<Ordered>, StudyError> {
    let count = if workload.gap.is_some() { (seeds.len() / 10).max(2).min(seeds.len()) } else { seeds.len() };
    let seeds = &seeds[..count];
    let all = |order: &str| seeds.iter().map(|seed| workload.run(queries, order, *seed)).collect::<Result<Vec<_>, _>>();
    let fair = all("fair")?;
    ORDERS
        .iter()
        .map(|order| {
            let outcomes = all(order)?;
            let values = |of: &dyn Fn(usize) -> f64| Spread::of(&(0..outcomes.len()).map(of).collect::<Vec<_>>());
            Ok(Ordered {
                workload: workload.name,
                order,
                mean: values(&|n| outcomes[n].mean()),
                makespan: values(&|n| outcomes[n].makespan),
                of_fair: values(&|n| outcomes[n].mean() / fair[n].mean()),
                anchor: workload.anchors.iter().find(|(known, _)| known == order).map(|(_, anchor)| *anchor),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::generated;

    #[test]
    fn orders_differ_as_they_should_on_made_queries() {
        let queries = generated::queries(1);
        let small = Workload { jobs: 12, ..WORKLOADS[0] };
        let mean = |order: &str| (1..4).map(|seed| small.run(&queries, order, seed).unwrap().mean()).sum::<f64>();
        let (fifo, fair, remaining) = (mean("fifo"), mean("fair"), mean("remaining"));
        assert!(fair < fifo && remaining < 1.05 * fair, "{fifo} {fair} {remaining}");
        assert!(small.run(&queries, "unknown", 1).is_err());
        assert_eq!(small.run(&queries, "learned", 1).unwrap(), small.run(&queries, "learned", 1).unwrap());
    }
}
