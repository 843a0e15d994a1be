//! Compares a network with the best heuristic on held-out jobs.

use std::sync::Arc;

use dag::learned::{Decima, Mode, Network};
use dag::order::{Heuristic, Policy};
use dag::study::StudyError;
use dag::study::orders::{WORKLOADS, Workload};
use dag::study::tpch::Queries;

use crate::curve::Measured;
use crate::trainer::parallel;

/// Seeds of the held-out jobs. Neither trainings nor studies use them.
const SEEDS: std::ops::Range<u64> = 5_001..5_013;
/// Number of jobs of the stream; those of the studies have more.
const JOBS: usize = 150;
/// Heuristics of which the best one is the reference.
const HEURISTICS: [Heuristic; 5] = [
    Heuristic::Fair,
    Heuristic::Weighted(-0.5),
    Heuristic::Weighted(-0.75),
    Heuristic::Weighted(-1.0),
    Heuristic::ShortestRemaining,
];

/// Held-out workloads with the mean completion time of the best heuristic on each.
#[derive(Debug)]
pub struct Bench {
    queries: Queries,
    workloads: Vec<(Workload, f64)>,
}

impl Bench {
    /// Runs the heuristics on a batch and a stream of these queries.
    ///
    /// # Errors
    /// A query cannot be run.
    pub fn new(queries: Queries, threads: usize) -> Result<Bench, StudyError> {
        let stream = Workload { jobs: JOBS, ..WORKLOADS[1] };
        let mut workloads = Vec::new();
        for workload in [WORKLOADS[0], stream] {
            let mut best = f64::INFINITY;
            for heuristic in HEURISTICS {
                best = best.min(mean(&workload, &queries, threads, || Box::new(heuristic))?);
            }
            workloads.push((workload, best));
        }
        Ok(Bench { queries, workloads })
    }

    /// Returns the network's mean completion times divided by those of the best heuristic.
    ///
    /// # Errors
    /// As [`Bench::new`].
    pub fn measure(&self, network: &Arc<Network>, iteration: u64, threads: usize) -> Result<Vec<Measured>, StudyError> {
        let one = |(workload, best): &(Workload, f64)| {
            let own = mean(workload, &self.queries, threads, || Box::new(Decima::new(network.clone(), Mode::Greedy)))?;
            Ok(Measured { iteration, workload: workload.name.to_owned(), of_best: own / best })
        };
        self.workloads.iter().map(one).collect()
    }
}

fn mean(
    workload: &Workload,
    queries: &Queries,
    threads: usize,
    policy: impl Fn() -> Box<dyn Policy> + Sync,
) -> Result<f64, StudyError> {
    let seeds: Vec<u64> = SEEDS.collect();
    let all = parallel(seeds.len(), threads, |n| workload.run_with(queries, &mut *policy(), seeds[n]));
    let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(all.iter().map(dag::study::cluster::Outcome::mean).sum::<f64>() / all.len().max(1) as f64)
}
