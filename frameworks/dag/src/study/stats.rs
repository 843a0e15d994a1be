//! Means over seeds with their confidence intervals. It draws nothing.

/// The mean of a number over seeds, with half the width of its 95 % confidence interval (0 for a single seed).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// Mean over the seeds.
    pub mean: f64,
    /// Half the width of the interval.
    pub half: f64,
}

impl Spread {
    /// Computes mean and interval of these values; 0 of none.
    pub fn of(values: &[f64]) -> Spread {
        let (mean, half) = base::mean_and_interval(values);
        Spread { mean, half }
    }
}
