//! A small neural network: one hidden layer of rectifiers, softmax over the four ends.
//!
//! It learns one example at a time by the gradient of the cross-entropy. The step of a weight shrinks as its gradients
//! accumulate (AdaGrad; Duchi, Hazan and Singer, 2011).

use super::End;

/// Step size of a weight that has not changed yet.
const RATE: f64 = 0.1;
/// Term of the divisor that keeps the first steps finite.
const TINY: f64 = 1e-6;
const ENDS: usize = End::ALL.len();

/// A network of one hidden layer that learns online.
#[derive(Clone, Debug)]
pub struct Network {
    inputs: usize,
    hidden: usize,
    /// Weights from the inputs and a constant to each unit of the hidden layer, then from that layer and a constant to
    /// each end.
    weights: Vec<f64>,
    /// Sum of the squared gradients of each weight.
    moved: Vec<f64>,
}

/// Activations of the network for one example.
struct Activations {
    hidden: Vec<f64>,
    shares: [f64; ENDS],
}

impl Network {
    /// Creates an untrained network. The seed decides the first weights of the hidden layer.
    pub fn new(inputs: usize, hidden: usize, seed: u64) -> Network {
        let first = hidden * (inputs + 1);
        let count = first + ENDS * (hidden + 1);
        let spread = (6.0 / (inputs + hidden) as f64).sqrt();
        let mut state = seed;
        let mut draw = || base::fraction(base::split_mix(&mut state));
        let weights = (0..count).map(|at| if at < first { spread * (2.0 * draw() - 1.0) } else { 0.0 }).collect();
        Network { inputs, hidden, weights, moved: vec![0.0; count] }
    }

    /// Returns the probability of each end. Missing inputs count as 0.
    pub fn predict(&self, inputs: &[f64]) -> [f64; ENDS] {
        self.activations(inputs).shares
    }

    fn activations(&self, inputs: &[f64]) -> Activations {
        let dot = |weights: &[f64], values: &[f64]| {
            let (bias, weights) = weights.split_last().unwrap_or((&0.0, &[]));
            bias + weights.iter().zip(values).map(|(w, x)| w * x).sum::<f64>()
        };
        let (first, second) = self.weights.split_at(self.hidden * (self.inputs + 1));
        let hidden: Vec<f64> = first.chunks(self.inputs + 1).map(|unit| dot(unit, inputs).max(0.0)).collect();
        let mut shares = [0.0; ENDS];
        for (share, unit) in shares.iter_mut().zip(second.chunks(self.hidden + 1)) {
            *share = dot(unit, &hidden);
        }
        let largest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.iter_mut().for_each(|share| *share = (*share - largest).exp());
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        Activations { hidden, shares }
    }

    /// Learns from one example.
    pub fn learn(&mut self, inputs: &[f64], end: End) {
        let Activations { hidden, shares } = self.activations(inputs);
        let boundary = self.hidden * (self.inputs + 1);
        let mut errors = shares;
        errors[end.place()] -= 1.0;
        let mut back = vec![0.0; self.hidden];
        for (output, error) in errors.into_iter().enumerate() {
            let at = boundary + output * (self.hidden + 1);
            for (unit, value) in hidden.iter().enumerate() {
                back[unit] += error * self.weights[at + unit];
                self.step(at + unit, error * value);
            }
            self.step(at + self.hidden, error);
        }
        for (unit, back) in back.into_iter().enumerate().filter(|(unit, _)| hidden[*unit] > 0.0) {
            let at = unit * (self.inputs + 1);
            for (input, value) in inputs.iter().take(self.inputs).enumerate() {
                self.step(at + input, back * value);
            }
            self.step(at + self.inputs, back);
        }
    }

    fn step(&mut self, weight: usize, gradient: f64) {
        if gradient != 0.0 {
            self.moved[weight] += gradient * gradient;
            self.weights[weight] -= RATE * gradient / (self.moved[weight].sqrt() + TINY);
        }
    }
}
