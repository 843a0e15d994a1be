//! The multi-layer perceptron: trained by Adam over stripes of the data, with a classifier as the result.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::algorithm::{Algorithm, Shape, within};
use super::data::Data;
use super::error::LearnError;
use super::learner::{Reader, Round, total};
use super::local::LocalTraining;
use super::model::Model;
use super::net::{self, GRADIENT, MOMENTS, weights_count, widths};
use super::sample;
use super::scaling::{Scaling, moments_width};

/// Maximum number of weights of a net: 32 MB, which are sent in every round.
const WEIGHTS_MAX: usize = 4_000_000;
const HALVINGS_MAX: u32 = 10;

/// Hyperparameters of a multi-layer perceptron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PerceptronOptions {
    /// Widths of the hidden layers. One layer of 32 by default.
    pub hidden: Vec<usize>,
    /// Step of Adam. 0.01 by default; halved when the loss is not a number.
    pub learning_rate: f64,
    /// Number of steps of an iteration, each over its own part of the rows. 1 by default.
    pub steps: u32,
    /// Weight of the L2 penalty: half the squared length of the weights, times this, is added to the loss. 0.0001 by
    /// default.
    pub l2: f64,
    /// Seed of the first weights.
    pub seed: u64,
}

impl Default for PerceptronOptions {
    fn default() -> PerceptronOptions {
        PerceptronOptions { hidden: vec![32], learning_rate: 0.01, steps: 1, l2: 1e-4, seed: 0 }
    }
}

impl PerceptronOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        if self.hidden.len() > 8 || self.hidden.iter().any(|w| !(1..=4096).contains(w)) {
            return Err(LearnError::invalid("hidden", "at most 8 layers, each between 1 and 4096 wide"));
        }
        if !(1..=1000).contains(&self.steps) {
            return Err(LearnError::invalid("steps", "must be between 1 and 1000"));
        }
        within("l2", self.l2, 0.0, 1e6)?;
        within("learning_rate", self.learning_rate, 1e-9, 1e3)
    }

    pub(crate) fn check_shape(&self, shape: &Shape) -> Result<(), LearnError> {
        if !(2..=10_000).contains(&shape.classes) {
            let rule = format!("perceptron needs between 2 and 10000, and the labels name {}", shape.classes);
            return Err(LearnError::invalid("classes", rule));
        }
        let weights = weights_count(&widths(shape.columns, &self.hidden, shape.classes));
        if weights > WEIGHTS_MAX {
            return Err(LearnError::invalid("hidden", format!("{weights} weights, and {WEIGHTS_MAX} is the limit")));
        }
        Ok(())
    }
}

/// The state of the training of a perceptron.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trainer {
    options: PerceptronOptions,
    shape: Shape,
    scaling: Option<Scaling>,
    weights: Vec<f64>,
    /// Weights after the last iteration, to return to when a loss is not a number.
    good: Vec<f64>,
    /// Running means of the gradient and of its square, for Adam.
    mean: Vec<f64>,
    square: Vec<f64>,
    updates: i32,
    rate: f64,
    halvings: u32,
    iteration: u64,
    /// Number of the iteration's next step.
    stripe: u32,
    /// Loss, right answers and rows of the iteration's steps so far.
    so_far: [f64; 3],
}

impl Trainer {
    pub(crate) fn new(options: PerceptronOptions, shape: Shape) -> Trainer {
        let widths = widths(shape.columns, &options.hidden, shape.classes);
        let mut generator = sample::generator(options.seed, 0);
        let mut weights = Vec::with_capacity(weights_count(&widths));
        for pair in widths.windows(2) {
            // This deviation keeps the outputs' variance from layer to layer (Glorot and Bengio, 2010).
            let deviation = (2.0 / (pair[0] + pair[1]) as f64).sqrt();
            weights.extend((0..pair[0] * pair[1]).map(|_| deviation * sample::normal(&mut generator)));
            weights.extend(std::iter::repeat_n(0.0, pair[1]));
        }
        let zeros = vec![0.0; weights.len()];
        Trainer {
            shape,
            scaling: None,
            good: weights.clone(),
            weights,
            mean: zeros.clone(),
            square: zeros,
            updates: 0,
            rate: options.learning_rate,
            halvings: 0,
            iteration: 0,
            stripe: 0,
            so_far: [0.0; 3],
            options,
        }
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        let Some(scaling) = &self.scaling else { return vec![MOMENTS] };
        let mut parameters = vec![GRADIENT, f64::from(self.stripe), f64::from(self.options.steps)];
        parameters.extend(&scaling.means);
        parameters.extend(&scaling.deviations);
        parameters.extend(&self.weights);
        parameters
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        if self.scaling.is_none() {
            self.scaling = Some(Scaling::from_moments(&total(partials, moments_width(self.shape.columns))?));
            return Ok(Round::Inner);
        }
        let count = self.weights.len();
        let sums = total(partials, count + 3)?;
        if sums.iter().any(|s| !s.is_finite()) {
            return self.step_back();
        }
        for (so_far, sum) in self.so_far.iter_mut().zip(&sums[count..]) {
            *so_far += sum;
        }
        self.update(&sums[..count], sums[count + 2].max(1.0));
        self.stripe += 1;
        if self.stripe < self.options.steps {
            return Ok(Round::Inner);
        }
        Ok(self.end_iteration())
    }

    /// Updates the weights by a step of Adam (Kingma and Ba, 2015).
    fn update(&mut self, gradient: &[f64], rows: f64) {
        const KEEP: (f64, f64) = (0.9, 0.999);
        self.updates = self.updates.saturating_add(1);
        let (first, second) = (1.0 - KEEP.0.powi(self.updates), 1.0 - KEEP.1.powi(self.updates));
        for (place, gradient) in gradient.iter().enumerate() {
            let gradient = gradient / rows + self.options.l2 * self.weights[place];
            self.mean[place] = KEEP.0 * self.mean[place] + (1.0 - KEEP.0) * gradient;
            self.square[place] = KEEP.1 * self.square[place] + (1.0 - KEEP.1) * gradient * gradient;
            let step = self.mean[place] / first / ((self.square[place] / second).sqrt() + 1e-8);
            self.weights[place] -= self.rate * step;
        }
    }

    fn end_iteration(&mut self) -> Round {
        let [loss, right, rows] = std::mem::take(&mut self.so_far);
        let rows = rows.max(1.0);
        let penalty = self.options.l2 / 2.0 * self.good.iter().map(|w| w * w).sum::<f64>();
        let iteration = self.iteration;
        self.iteration += 1;
        self.stripe = 0;
        self.good.clone_from(&self.weights);
        Round::Iteration { iteration, loss: loss / rows + penalty, accuracy: Some(right / rows), retried: false }
    }

    /// Restarts the iteration from where it started, with half the step.
    fn step_back(&mut self) -> Result<Round, LearnError> {
        if self.halvings == HALVINGS_MAX || self.iteration == 0 && self.updates == 0 {
            return Err(LearnError::NotANumber { iteration: self.iteration, halvings: self.halvings });
        }
        self.halvings += 1;
        self.rate /= 2.0;
        self.weights.clone_from(&self.good);
        self.mean.fill(0.0);
        self.square.fill(0.0);
        self.updates = 0;
        self.stripe = 0;
        self.so_far = [0.0; 3];
        Ok(Round::Inner)
    }

    pub(crate) fn model(&self) -> Option<Perceptron> {
        if self.iteration == 0 {
            return None;
        }
        let scaling = self.scaling.clone()?;
        let widths = widths(self.shape.columns, &self.options.hidden, self.shape.classes);
        Some(Perceptron { widths, scaling, weights: self.good.clone() })
    }
}

/// A trained classifier.
///
/// ```
/// use quality::learn::{Perceptron, PerceptronOptions};
///
/// // Exclusive or: no straight line separates these classes.
/// let rows = ndarray::array![[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
/// let options = PerceptronOptions { hidden: vec![8], learning_rate: 0.05, ..PerceptronOptions::default() };
/// let net = Perceptron::train(rows, &[0, 1, 1, 0], 2, &options, 200)?;
/// assert_eq!(net.predict(&[0.0, 1.0]), 1);
/// let kept = net.to_bytes();
/// assert_eq!(Perceptron::from_bytes(&kept)?.predict(&[1.0, 1.0]), 0);
/// # Ok::<(), quality::learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Perceptron {
    widths: Vec<usize>,
    scaling: Scaling,
    weights: Vec<f64>,
}

/// A perceptron with unchecked sizes.
#[derive(Deserialize)]
struct Unchecked {
    widths: Vec<usize>,
    scaling: Scaling,
    weights: Vec<f64>,
}

impl TryFrom<Unchecked> for Perceptron {
    type Error = String;

    fn try_from(u: Unchecked) -> Result<Perceptron, String> {
        if u.widths.len() < 2 || u.widths.iter().any(|w| !(1..=1_000_000).contains(w)) {
            return Err("a perceptron has at least two layers, none of them empty".into());
        }
        let count = u.widths.windows(2).try_fold(0_usize, |sum, w| sum.checked_add((w[0] + 1).checked_mul(w[1])?));
        let features = u.widths[0];
        if count != Some(u.weights.len()) || u.scaling.means.len() != features || u.scaling.deviations.len() != features
        {
            return Err("the number of weights is not that of the layers".into());
        }
        Ok(Perceptron { widths: u.widths, scaling: u.scaling, weights: u.weights })
    }
}

/// The compact form of a perceptron's weights.
#[derive(Serialize, Deserialize)]
struct Compact {
    version: u32,
    widths: Vec<usize>,
    means: Vec<f32>,
    deviations: Vec<f32>,
    weights: Vec<f32>,
}

/// Version of [`Perceptron::to_bytes`].
const COMPACT_VERSION: u32 = 1;

impl Perceptron {
    /// Trains a classifier in this process: `rows` are examples of classes `labels`, each below `classes`, in
    /// `iterations` passes.
    ///
    /// # Errors
    /// Sizes or options break a rule, or the loss is not a number.
    pub fn train(
        rows: Array2<f64>,
        labels: &[usize],
        classes: usize,
        options: &PerceptronOptions,
        iterations: u64,
    ) -> Result<Perceptron, LearnError> {
        if labels.len() != rows.nrows() {
            return Err(LearnError::invalid("labels", format!("{} for {} rows", labels.len(), rows.nrows())));
        }
        let shape = Shape { rows: rows.nrows(), columns: rows.ncols(), classes };
        let data = Data::dense(rows, labels.iter().map(|&l| l as f64).collect());
        let algorithm = Algorithm::Perceptron(options.clone());
        let trained = LocalTraining::new(algorithm, shape, vec![data])?.run(iterations)?;
        match trained.model {
            Some(Model::Perceptron(model)) => Ok(model),
            _ => Err(LearnError::invalid("iterations", "must be at least 1")),
        }
    }

    /// Returns the classifier that a round's parameters describe; `None` if they describe none.
    pub(crate) fn of(hidden: &[usize], shape: &Shape, parameters: &[f64]) -> Option<Perceptron> {
        let mut reader = Reader::new(parameters);
        let is_model = reader.one().ok()? != MOMENTS;
        reader.take(2).ok().filter(|_| is_model)?;
        let mut take = |count| reader.take(count).ok().map(<[f64]>::to_vec);
        let scaling = Scaling { means: take(shape.columns)?, deviations: take(shape.columns)? };
        let widths = widths(shape.columns, hidden, shape.classes);
        let weights = take(weights_count(&widths))?;
        Some(Perceptron { widths, scaling, weights })
    }

    /// Returns the number of features of an example.
    pub fn features(&self) -> usize {
        self.widths[0]
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    /// Returns the probability of each class. Missing features count as average, surplus ones are ignored.
    pub fn probabilities(&self, row: &[f64]) -> Vec<f64> {
        let mut scaled = self.scaling.apply(row);
        scaled.resize(self.features(), 0.0);
        let rows = Array2::from_shape_fn((1, scaled.len()), |(_, column)| scaled[column]);
        net::probabilities(&self.widths, &self.weights, rows).row(0).to_vec()
    }

    /// Returns the most probable class.
    pub fn predict(&self, row: &[f64]) -> usize {
        let probabilities = self.probabilities(row);
        let best = probabilities.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(0, |(class, _)| class)
    }

    /// Serializes the classifier compactly, with weights of 32 bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let narrow = |wide: &[f64]| wide.iter().map(|&w| w as f32).collect();
        let compact = Compact {
            version: COMPACT_VERSION,
            widths: self.widths.clone(),
            means: narrow(&self.scaling.means),
            deviations: narrow(&self.scaling.deviations),
            weights: narrow(&self.weights),
        };
        // Serialization fails only for lists of unknown length.
        postcard::to_stdvec(&compact).unwrap_or_default()
    }

    /// Restores a classifier from [`to_bytes`](Perceptron::to_bytes).
    ///
    /// # Errors
    /// The bytes are not a classifier, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Perceptron, LearnError> {
        let compact: Compact = postcard::from_bytes(bytes)
            .map_err(|error| LearnError::invalid("classifier", format!("cannot be read: {error}")))?;
        if compact.version != COMPACT_VERSION {
            return Err(LearnError::Version(compact.version, COMPACT_VERSION));
        }
        let wide = |narrow: Vec<f32>| narrow.into_iter().map(f64::from).collect();
        let scaling = Scaling { means: wide(compact.means), deviations: wide(compact.deviations) };
        let unchecked = Unchecked { widths: compact.widths, scaling, weights: wide(compact.weights) };
        Perceptron::try_from(unchecked).map_err(|rule| LearnError::invalid("classifier", rule))
    }
}
