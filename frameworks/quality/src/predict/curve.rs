//! The two families of curves that the losses of iterative algorithms follow (SLAQ, section 4.2).

use serde::{Deserialize, Serialize};

/// How an algorithm converges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// 1 / (a k^2 + b k + c) + d: gradient descent and other methods of first order.
    Sublinear,
    /// m^(k - b) + c, with 0 < m < 1: methods that take away a part of the error in each iteration.
    Exponential,
}

/// A curve of a family. Iterations count from an origin: the newest iteration that it was fitted to is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Curve {
    /// 1 / (a k^2 + b k + c) + d, with a, b >= 0 and c > 0.
    Sublinear {
        /// Factor of the square.
        a: f64,
        /// Factor of the iteration.
        b: f64,
        /// The inverse of what is above `d` at the origin.
        c: f64,
        /// Where the loss ends.
        d: f64,
    },
    /// height rate^k + end, with 0 < rate < 1.
    Exponential {
        /// What is above `end` at the origin.
        height: f64,
        /// What is left of it after an iteration.
        rate: f64,
        /// Where the loss ends.
        end: f64,
    },
}

impl Curve {
    /// The loss at iteration `k` after the origin. Before it the curve may leave the loss's range.
    pub fn at(&self, k: f64) -> f64 {
        match *self {
            Curve::Sublinear { a, b, c, d } => {
                let below = (a * k + b) * k + c;
                if below > 0.0 { 1.0 / below + d } else { f64::INFINITY }
            }
            Curve::Exponential { height, rate, end } => height * rate.powf(k) + end,
        }
    }

    /// Where the loss ends.
    pub fn end(&self) -> f64 {
        match *self {
            Curve::Sublinear { d, .. } => d,
            Curve::Exponential { end, .. } => end,
        }
    }

    /// How many iterations after the origin the loss is down to `loss`; none if it never is.
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

    /// Its family.
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
