//! Chooses the configurations to try by greedy hill climbing, and computes the Pareto frontier of those that were
//! tried.
//!
//! VideoStorm (NSDI 2017), section 4: the figure of merit is quality minus a multiple of the demand, one knob is
//! changed at a time, and all visited configurations are kept. Performs no I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pipeline::{Config, Knobs};

/// A configuration with its quality and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Configuration of the pipeline.
    pub config: Config,
    /// F1 score against the golden configuration, 0 to 1.
    pub quality: f64,
    /// Cores needed to keep up with the stream: core-seconds for each second of video.
    pub cores: f64,
}

/// Measures the quality and the cost of configurations.
pub trait Evaluate {
    /// Error of a measurement.
    type Error;

    /// Measures quality and demand of a configuration.
    ///
    /// # Errors
    /// Returns an error if the configuration could not be tried.
    fn evaluate(&mut self, config: &Config) -> Result<Point, Self::Error>;
}

/// Parameters of the hill climbing.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Weights of the demand relative to the golden configuration's, one climb for each, from heavy to light.
    pub weights: Vec<f64>,
    /// Maximum number of configurations that are tried.
    pub tries: usize,
}

impl Default for Search {
    fn default() -> Search {
        Search { weights: vec![4.0, 1.0, 0.25, 0.06, 0.0], tries: 400 }
    }
}

/// Tries the golden configuration, then climbs from the cheapest. Each climb moves to the best neighbour until none is
/// better. The next climb, with another weight of the demand, starts from the configuration that is best by that weight
/// so far. Cheap configurations are therefore tried before expensive ones, and most expensive ones never. Returns all
/// points that were tried, the golden one first.
///
/// # Errors
/// Returns the first error of a measurement.
pub fn climb<E: Evaluate>(
    knobs: &Knobs,
    golden: Config,
    search: &Search,
    with: &mut E,
) -> Result<Vec<Point>, E::Error> {
    let first = with.evaluate(&golden)?;
    let dearest = first.cores.max(f64::MIN_POSITIVE);
    let mut seen = BTreeMap::from([(golden, first)]);
    let Some(cheapest) = knobs.all().pop() else { return Ok(vec![first]) };
    for weight in &search.weights {
        let worth = |p: &Point| p.quality - weight * p.cores / dearest;
        let best_seen = |seen: &BTreeMap<Config, Point>| {
            let others = seen.values().filter(|p| p.config != golden);
            others.max_by(|a, b| worth(a).total_cmp(&worth(b))).copied()
        };
        let mut here = match best_seen(&seen) {
            Some(point) => point,
            None => attempt(cheapest, &mut seen, with)?,
        };
        // No configuration is better than the golden one; where cores cost nothing, a slightly lower quality is
        // accepted.
        while here.quality < 0.999 || *weight > 0.0 {
            let mut best = here;
            for config in knobs.neighbours(&here.config) {
                if seen.len() >= search.tries && !seen.contains_key(&config) {
                    continue;
                }
                let point = attempt(config, &mut seen, with)?;
                if worth(&point) > worth(&best) + 1e-9 {
                    best = point;
                }
            }
            if best.config == here.config {
                break;
            }
            here = best;
        }
    }
    let mut points = vec![first];
    points.extend(seen.into_values().filter(|p| p.config != golden));
    Ok(points)
}

fn attempt<E: Evaluate>(config: Config, seen: &mut BTreeMap<Config, Point>, with: &mut E) -> Result<Point, E::Error> {
    if let Some(point) = seen.get(&config) {
        return Ok(*point);
    }
    let point = with.evaluate(&config)?;
    seen.insert(config, point);
    Ok(point)
}

/// Tries all configurations.
///
/// # Errors
/// Returns the first error of a measurement.
pub fn exhaustive<E: Evaluate>(knobs: &Knobs, with: &mut E) -> Result<Vec<Point>, E::Error> {
    knobs.all().iter().map(|config| with.evaluate(config)).collect()
}

/// Returns the points that no other point beats in both quality and cores, from cheap to expensive. Qualities rise
/// strictly.
pub fn frontier(points: &[Point]) -> Vec<Point> {
    let mut sorted: Vec<Point> =
        points.iter().filter(|p| p.quality.is_finite() && p.cores.is_finite()).copied().collect();
    sorted.sort_by(|a, b| a.cores.total_cmp(&b.cores).then(b.quality.total_cmp(&a.quality)));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|p| {
        let better = p.quality > best;
        best = best.max(p.quality);
        better
    });
    sorted
}
