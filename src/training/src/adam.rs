//! The optimizer Adam: updates weights by running means of gradients and of their squares.

/// Decay rates of the two running means, of gradients and of squared gradients (β1 and β2).
const KEEP: (f32, f32) = (0.9, 0.999);

/// Optimizer state of Adam.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Running means of the gradients, one for each weight.
    pub means: Vec<f32>,
    /// Running means of the squared gradients, one for each weight.
    pub squares: Vec<f32>,
    /// Number of steps so far.
    pub steps: u64,
}

impl Adam {
    /// Creates the state for a number of weights.
    pub fn new(weights: usize) -> Adam {
        Adam { means: vec![0.0; weights], squares: vec![0.0; weights], steps: 0 }
    }

    /// Updates the weights by one step against the gradient, whose norm is clipped to `norm`.
    ///
    /// Returns the norm before clipping. If it is not finite, nothing changes.
    pub fn step(&mut self, weights: &mut [f32], gradient: &[f32], step: f32, norm: f32) -> f32 {
        let length = gradient.iter().map(|slope| f64::from(*slope).powi(2)).sum::<f64>().sqrt() as f32;
        if !length.is_finite() {
            return length;
        }
        let factor = if length > norm { norm / length } else { 1.0 };
        self.steps += 1;
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let (first, second) = (1.0 - KEEP.0.powi(steps), 1.0 - KEEP.1.powi(steps));
        let means = self.means.iter_mut().zip(&mut self.squares);
        for ((weight, slope), (mean, square)) in weights.iter_mut().zip(gradient).zip(means) {
            let slope = slope * factor;
            *mean += (1.0 - KEEP.0) * (slope - *mean);
            *square += (1.0 - KEEP.1) * (slope * slope - *square);
            *weight -= step * (*mean / first) / ((*square / second).sqrt() + 1e-8);
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_bottom_of_a_bowl() {
        let (mut adam, mut weights) = (Adam::new(2), vec![3.0_f32, -2.0]);
        for _ in 0..2000 {
            let gradient = [2.0 * (weights[0] - 1.0), 20.0 * (weights[1] - 0.5)];
            adam.step(&mut weights, &gradient, 0.01, 1.0);
        }
        assert!((weights[0] - 1.0).abs() < 0.01 && (weights[1] - 0.5).abs() < 0.01, "{weights:?}");
    }
}
