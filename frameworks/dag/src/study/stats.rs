//! Means over seeds with their intervals. It draws nothing.

use crate::priority::student;

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
        let n = values.len() as f64;
        if values.is_empty() {
            return Spread::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Spread { mean, half: 0.0 };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Spread { mean, half: student(0.95, values.len() as u64 - 1) * (variance / n).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        assert!((spread.mean - 2.0).abs() < 1e-12 && (spread.half - 4.303 / 3_f64.sqrt()).abs() < 1e-3, "{spread:?}");
        assert_eq!(Spread::of(&[7.0]), Spread { mean: 7.0, half: 0.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
