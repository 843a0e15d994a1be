//! Summary statistics: mean and percentiles.

use serde::{Deserialize, Serialize};

/// The mean, percentiles and maximum of some values, in their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Mean of the values; 0 without values.
    pub mean: f64,
    /// Median of the values.
    pub p50: f64,
    /// 90th percentile of the values.
    pub p90: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// Largest of the values.
    pub max: f64,
}

impl Summary {
    /// Summarizes values in any order.
    pub fn of(mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let Some(max) = values.last().copied() else { return Summary::default() };
        // Percentiles are of the nearest rank.
        let rank = |part: f64| values[((values.len() as f64 * part).ceil() as usize).clamp(1, values.len()) - 1];
        Summary {
            count: values.len(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let summary = Summary::of((1..=100).rev().map(f64::from).collect());
        assert_eq!((summary.p50, summary.p90, summary.p99, summary.max), (50.0, 90.0, 99.0, 100.0));
        assert_eq!((summary.count, summary.mean), (100, 50.5));
        assert_eq!(Summary::of(Vec::new()), Summary::default());
    }
}
