//! Draws the progress of a training: mean completion times on held-out jobs. It measures nothing.

use plot::{Line, Lines};
use serde::{Deserialize, Serialize};

/// A measurement on held-out jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Iteration before which the measurement was taken.
    pub iteration: u64,
    /// Name of the workload.
    pub workload: String,
    /// Mean seconds from arrival to completion, divided by those of the best heuristic on the same jobs.
    pub of_best: f64,
}

/// Returns an SVG with a line for each workload.
pub fn svg(measured: &[Measured]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for one in measured {
        if !names.contains(&one.workload.as_str()) {
            names.push(&one.workload);
        }
    }
    let line = |name: &&str| {
        let own = measured.iter().filter(|one| one.workload == *name);
        Line::new(*name, own.map(|one| (one.iteration as f64, one.of_best)).collect())
    };
    let mut lines: Vec<Line> = names.iter().map(line).collect();
    let last = measured.iter().map(|one| one.iteration).max().unwrap_or(0) as f64;
    lines.push(Line { dashed: true, ..Line::new("", vec![(0.0, 1.0), (last, 1.0)]) });
    Lines::new("Mean completion time on held-out jobs", "iteration", "relative to the best heuristic", lines).svg()
}
