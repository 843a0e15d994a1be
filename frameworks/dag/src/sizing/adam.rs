//! Adam (Kingma and Ba, 2015) in one dimension, with a step size that halves where the slope changes its sign. It knows
//! nothing of sizes.

use serde::{Deserialize, Serialize};

/// Step size below which it is not halved any more.
const SMALLEST_STEP: f64 = 0.08;

/// State of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    beta1: f64,
    beta2: f64,
    step: f64,
    mean: f64,
    square: f64,
    /// `beta1` and `beta2` to the power of the number of steps: the fraction of both means that is still 0.
    unseen: (f64, f64),
    last: f64,
}

impl Adam {
    /// Creates the optimiser from the longest step and the decay rates of both means.
    pub fn new(step: f64, beta1: f64, beta2: f64) -> Adam {
        Adam { beta1, beta2, step, mean: 0.0, square: 0.0, unseen: (1.0, 1.0), last: 0.0 }
    }

    /// Returns the step for a slope: upwards, and no longer than the longest step.
    ///
    /// A slope opposite to the last one halves the longest step and resets the mean: momentum beyond the maximum would
    /// cost whole waves.
    pub fn step(&mut self, slope: f64) -> f64 {
        let slope = if slope.is_finite() { slope.clamp(-10.0, 10.0) } else { 0.0 };
        if slope * self.last < 0.0 {
            self.step = (self.step / 2.0).max(SMALLEST_STEP.min(self.step));
            self.mean = 0.0;
            self.unseen.0 = 1.0;
        }
        if slope != 0.0 {
            self.last = slope;
        }
        self.mean = self.beta1 * self.mean + (1.0 - self.beta1) * slope;
        self.square = self.beta2 * self.square + (1.0 - self.beta2) * slope * slope;
        self.unseen = (self.unseen.0 * self.beta1, self.unseen.1 * self.beta2);
        let mean = self.mean / (1.0 - self.unseen.0).max(1e-12);
        let square = self.square / (1.0 - self.unseen.1).max(1e-12);
        self.step * (mean / (square.sqrt() + 1e-9)).clamp(-1.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_longest_and_a_change_of_sign_halves_it() {
        let mut adam = Adam::new(1.0, 0.5, 0.9);
        assert!((adam.step(0.3) - 1.0).abs() < 1e-6);
        assert!(adam.step(0.3) > 0.9);
        let back = adam.step(-0.3);
        assert!((-0.51..-0.4).contains(&back), "{back}");
        assert_eq!(Adam::new(1.0, 0.5, 0.9).step(f64::NAN), 0.0);
    }

    #[test]
    fn it_finds_the_highest_point_of_a_parabola() {
        let (mut adam, mut at) = (Adam::new(1.4, 0.5, 0.9), 0.0);
        for _ in 0..40 {
            at += adam.step(2.0 * (4.85 - at));
        }
        assert!((at - 4.85_f64).abs() < 0.15, "{at}");
    }
}
