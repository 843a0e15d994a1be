//! The two families of curves that the losses of iterative algorithms follow (SLAQ, section 4.2).

use serde::{Deserialize, Serialize};

/// A convergence family of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// 1 / (a k^2 + b k + c) + d: gradient descent and other first-order methods.
    Sublinear,
    /// m^(k - b) + c, with 0 < m < 1: methods that remove a fixed share of the error in each iteration.
    Exponential,
}

/// A curve of a family. Iterations count from an origin, which is the newest iteration of the fitted history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// 1 / (a k^2 + b k + c) + d, with a, b >= 0 and c > 0.
    Sublinear {
        /// Factor of the squared iteration.
        a: f64,
        /// Factor of the iteration.
        b: f64,
        /// Inverse of the loss above `d` at the origin.
        c: f64,
        /// Limit of the loss.
        d: f64,
    },
    /// height rate^k + end, with 0 < rate < 1.
    Exponential {
        /// Loss above `end` at the origin.
        height: f64,
        /// Share of the loss above `end` that is left after an iteration.
        rate: f64,
        /// Limit of the loss.
        end: f64,
    },
}

impl Curve {
    /// Returns the loss at iteration `k` after the origin. Before the origin the curve may leave the loss's range.
    pub fn at(&self, k: f64) -> f64 {
        match *self {
            Curve::Sublinear { a, b, c, d } => {
                let below = (a * k + b) * k + c;
                if below > 0.0 { 1.0 / below + d } else { f64::INFINITY }
            }
            Curve::Exponential { height, rate, end } => height * rate.powf(k) + end,
        }
    }

    /// Returns the limit of the loss.
    pub fn end(&self) -> f64 {
        match *self {
            Curve::Sublinear { d, .. } => d,
            Curve::Exponential { end, .. } => end,
        }
    }

    /// Returns the number of iterations after the origin at which the loss is down to `loss`; `None` if it never is.
    pub fn reaches(&self, loss: f64) -> Option<f64> {
        if self.at(0.0) <= loss {
            return Some(0.0);
        }
        let above = loss - self.end();
        if above <= 0.0 {
            return None;
        }
        let k = match *self {
            Curve::Sublinear { a, b, c, .. } => {
                let lack = c - 1.0 / above;
                if a > 0.0 { (-b + (b * b - 4.0 * a * lack).max(0.0).sqrt()) / (2.0 * a) } else { -lack / b }
            }
            Curve::Exponential { height, rate, .. } => (above / height).ln() / rate.ln(),
        };
        k.is_finite().then_some(k.max(0.0))
    }

    /// Returns the family of the curve.
    pub fn family(&self) -> Family {
        match self {
            Curve::Sublinear { .. } => Family::Sublinear,
            Curve::Exponential { .. } => Family::Exponential,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaching_a_loss_is_the_inverse_of_the_curve() {
        let curves = [
            Curve::Sublinear { a: 0.01, b: 0.2, c: 0.5, d: 0.3 },
            Curve::Sublinear { a: 0.0, b: 0.2, c: 0.5, d: 0.3 },
            Curve::Exponential { height: 2.0, rate: 0.9, end: 0.3 },
        ];
        for curve in curves {
            for k in [0.0, 1.0, 7.5, 100.0] {
                let back = curve.reaches(curve.at(k)).unwrap();
                assert!((back - k).abs() < 1e-6, "{curve:?}: {back} for {k}");
            }
            assert_eq!(curve.reaches(0.3), None);
            assert_eq!(curve.reaches(1e9), Some(0.0));
        }
    }
}
