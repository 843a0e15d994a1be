//! Models of workloads: jobs with consecutive parts, of which a sprint makes some faster. They contain no measurements.

use crate::study::random::Random;

/// A model of jobs of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name of the workload.
    pub name: &'static str,
    /// Mean service time of a job, in seconds.
    pub mean: f64,
    /// Standard deviation of the logarithm of a job's work.
    pub sigma: f64,
    /// Parts of a job: fraction of the work, and the fraction of the part that a sprint makes faster.
    pub parts: &'static [(f64, f64)],
    /// Exponent of a job's work by which the share of its first part grows: it is longer in long jobs.
    pub skew: f64,
}

/// A job of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Seconds of each part without a sprint, and the fraction of it that a sprint makes faster.
    pub parts: Vec<(f64, f64)>,
    /// Fraction of a lifted limit that neighbours leave, 0 to 1.
    pub luck: f64,
}

impl Job {
    /// Returns the service time in seconds without a sprint.
    pub fn service(&self) -> f64 {
        self.parts.iter().map(|(work, _)| work).sum()
    }
}

/// The workloads of the study.
pub const WORKLOADS: [Workload; 9] = [
    Workload { name: "computes", mean: 20.0, sigma: 0.3, skew: 0.0, parts: &[(1.0, 0.95)] },
    Workload {
        name: "map, shuffle, reduce",
        mean: 40.0,
        sigma: 0.4,
        skew: 0.0,
        parts: &[(0.6, 0.9), (0.25, 0.1), (0.15, 0.7)],
    },
    Workload {
        name: "iterates",
        mean: 30.0,
        sigma: 0.3,
        skew: 0.0,
        parts: &[
            (0.2, 0.95),
            (0.05, 0.0),
            (0.2, 0.95),
            (0.05, 0.0),
            (0.2, 0.95),
            (0.05, 0.0),
            (0.2, 0.95),
            (0.05, 0.0),
        ],
    },
    Workload { name: "walks a graph", mean: 15.0, sigma: 0.6, skew: 0.3, parts: &[(0.3, 0.4), (0.7, 0.5)] },
    Workload { name: "bound by memory", mean: 25.0, sigma: 0.3, skew: 0.0, parts: &[(0.5, 0.3), (0.5, 0.4)] },
    Workload { name: "loads, then computes", mean: 30.0, sigma: 0.4, skew: 0.0, parts: &[(0.3, 0.05), (0.7, 0.95)] },
    Workload { name: "computes, then writes", mean: 30.0, sigma: 0.4, skew: 0.0, parts: &[(0.7, 0.95), (0.3, 0.05)] },
    Workload { name: "short requests", mean: 2.0, sigma: 0.5, skew: 0.0, parts: &[(0.4, 0.6), (0.6, 0.85)] },
    Workload { name: "a few long jobs", mean: 20.0, sigma: 0.9, skew: 0.4, parts: &[(0.4, 0.9), (0.6, 0.5)] },
];

impl Workload {
    /// Draws a job.
    pub fn draw(&self, random: &mut Random) -> Job {
        let size = random.lognormal(1.0, self.sigma);
        let shares = |(n, (share, scales)): (usize, &(f64, f64))| {
            let share = share * random.lognormal(1.0, 0.1) * if n == 0 { size.powf(self.skew) } else { 1.0 };
            (share, *scales)
        };
        let drawn: Vec<(f64, f64)> = self.parts.iter().enumerate().map(shares).collect();
        let total: f64 = drawn.iter().map(|(share, _)| share).sum();
        let parts = drawn.into_iter().map(|(share, scales)| (self.mean * size * share / total, scales)).collect();
        Job { parts, luck: 0.6 + 0.4 * random.part() }
    }
}
