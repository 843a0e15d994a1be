//! A small classifier: one linear layer and softmax, trained by gradient steps.
//!
//! It maps features to probabilities and knows no pictures.

use crate::random::SplitMix64;

/// A classifier of feature vectors.
pub trait Classify: Send + Sync {
    /// Returns the probability of each class.
    fn probabilities(&self, features: &[f32]) -> Vec<f32>;

    /// Returns the most probable class and its probability.
    fn best(&self, features: &[f32]) -> (usize, f32) {
        let all = self.probabilities(features);
        all.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }
}

/// A trained linear layer with softmax.
#[derive(Clone, Debug, PartialEq)]
pub struct Softmax {
    features: usize,
    /// Weights and then the bias of each class.
    weights: Vec<f32>,
}

impl Softmax {
    /// Trains on examples, each with its class, in `rounds` passes whose order follows from the seed. Missing features
    /// of an example, compared to the first, count as zero.
    pub fn train(examples: &[(Vec<f32>, usize)], classes: usize, rounds: usize, seed: u64) -> Softmax {
        let features = examples.first().map_or(0, |(x, _)| x.len());
        let mut model = Softmax { features, weights: vec![0.0; classes * (features + 1)] };
        let mut order: Vec<usize> = (0..examples.len()).collect();
        let mut rng = SplitMix64::new(seed);
        for round in 0..rounds {
            let rate = 0.15 / (1.0 + round as f32 * 0.25);
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i as u64 + 1) as usize);
            }
            for example in &order {
                let (x, class) = &examples[*example];
                model.learn(x, *class, rate);
            }
        }
        model
    }

    fn learn(&mut self, x: &[f32], class: usize, rate: f32) {
        let step = self.features + 1;
        for (c, p) in self.probabilities(x).into_iter().enumerate() {
            let by = rate * (f32::from(u8::from(c == class)) - p);
            // An example that is almost right changes nothing, and most are soon.
            if by.abs() < 1e-4 {
                continue;
            }
            let row = &mut self.weights[c * step..][..step];
            row.iter_mut().zip(x).for_each(|(w, x)| *w += by * x);
            row[step - 1] += by;
        }
    }
}

impl Classify for Softmax {
    fn probabilities(&self, features: &[f32]) -> Vec<f32> {
        let step = self.features + 1;
        let score = |row: &[f32]| row[..step - 1].iter().zip(features).map(|(w, x)| w * x).sum::<f32>() + row[step - 1];
        let scores: Vec<f32> = self.weights.chunks_exact(step).map(score).collect();
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f32> = scores.iter().map(|s| (s - highest).exp()).collect();
        let sum: f32 = powers.iter().sum();
        powers.into_iter().map(|p| p / sum).collect()
    }
}
