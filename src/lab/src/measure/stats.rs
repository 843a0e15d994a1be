//! Summary statistics: mean, percentiles, and confidence intervals over repetitions.

use serde::{Deserialize, Serialize};

/// A distribution in a few numbers, in the unit of what was summarised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many there were.
    pub count: usize,
    /// Their mean; 0 if there were none.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten are not above it.
    pub p90: f64,
    /// 99 in 100 are not above it.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Summarises; the order does not matter.
    pub fn of(mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let Some(max) = values.last().copied() else { return Summary::default() };
        // Nearest rank.
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

/// Two-sided 97.5 % points of Student's t, for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean of repetitions, and half the width of its 95 % confidence interval (0 for a single one).
pub fn mean_and_interval(values: &[f64]) -> (f64, f64) {
    let n = values.len();
    if n == 0 {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let t = T.get(n - 2).copied().unwrap_or(1.96);
    (mean, t * (variance / n as f64).sqrt())
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

    #[test]
    fn intervals() {
        let (mean, half) = mean_and_interval(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-12 && (half - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(mean_and_interval(&[7.0]), (7.0, 0.0));
    }
}
