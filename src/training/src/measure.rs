//! How good a network is on jobs that it did not learn from, beside the best heuristic on the same jobs.

use std::sync::Arc;

use dag::learned::{Decima, Mode, Network};
use dag::order::{Heuristic, Policy};
use dag::study::StudyError;
use dag::study::orders::{WORKLOADS, Workload};
use dag::study::tpch::Queries;

use crate::curve::Measured;
use crate::trainer::parallel;

/// Seeds of the jobs: neither those of trainings nor those of studies.
const SEEDS: std::ops::Range<u64> = 5_001..5_013;
/// Jobs of a stream: a part of that of the studies.
const JOBS: usize = 150;
/// The heuristics of which the best one counts.
const HEURISTICS: [Heuristic; 5] = [
    Heuristic::Fair,
    Heuristic::Weighted(-0.5),
    Heuristic::Weighted(-0.75),
    Heuristic::Weighted(-1.0),
    Heuristic::ShortestRemaining,
];

/// Jobs with the times that the best heuristic takes.
#[derive(Debug)]
pub struct Bench {
    queries: Queries,
    workloads: Vec<(Workload, f64)>,
}

impl Bench {
    /// Runs the heuristics on a batch and a stream of these queries.
    ///
    /// # Errors
    /// Queries that cannot be run.
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

    /// The network's times as parts of those.
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
