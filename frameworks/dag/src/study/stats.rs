//! Means over seeds with their intervals. It draws nothing.

/// The mean of a number over seeds, with half the width of its 95 % confidence interval (0 for a single seed).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half the interval.
    pub half: f64,
}

impl Spread {
    /// Of these values; 0 of none.
    pub fn of(values: &[f64]) -> Spread {
        let (mean, half) = base::mean_and_interval(values);
        Spread { mean, half }
    }
}
