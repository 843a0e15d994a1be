//! A learner: trains a model from the partial results of shards, for every algorithm.

use serde::{Deserialize, Serialize};

use super::algorithm::{Algorithm, Shape, is_a_program};
use super::data::Data;
use super::error::LearnError;
use super::kmeans::{self, KMeans};
use super::linear::{self, Linear};
use super::model::Model;
use super::multiclass::{self, Classes};
use super::net;
use super::perceptron::{Perceptron, Trainer};
use super::topics::{self, Topics};
use super::trees::{self, Trees};

/// What one round brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Round {
    /// More rounds are needed to end the iteration.
    Inner,
    /// An iteration is over.
    Iteration {
        /// Its number; 0 is the untrained model.
        iteration: u64,
        /// The loss of the model before this iteration's step.
        loss: f64,
        /// The fraction of examples that the model put into the right class, for classifiers.
        accuracy: Option<f64>,
        /// Whether this round's parameters were no better than earlier ones: the step is tried again, shorter, and loss
        /// and accuracy are those of the earlier parameters.
        retried: bool,
    },
}

/// The complete state of a training: stored and restored, it continues unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learner(Kind);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Kind {
    Linear(Linear),
    KMeans(KMeans),
    Perceptron(Trainer),
    Trees(Trees),
    Topics(Topics),
    Classes(Classes),
}

impl Learner {
    /// A learner that has seen nothing yet.
    ///
    /// # Errors
    /// The hyperparameters or the shape break a rule.
    pub fn new(algorithm: &Algorithm, shape: Shape) -> Result<Learner, LearnError> {
        algorithm.check()?;
        algorithm.check_shape(&shape)?;
        Ok(Learner(match algorithm {
            Algorithm::LinearRegression(o) => Kind::Linear(Linear::new(linear::Loss::Squared, *o, shape)),
            Algorithm::LogisticRegression(o) if shape.classes > 2 => {
                Kind::Classes(Classes::new(multiclass::Loss::Softmax, *o, shape))
            }
            Algorithm::LinearSvm(o) if shape.classes > 2 => {
                Kind::Classes(Classes::new(multiclass::Loss::SquaredHinge, *o, shape))
            }
            Algorithm::LogisticRegression(o) => Kind::Linear(Linear::new(linear::Loss::Logistic, *o, shape)),
            Algorithm::LinearSvm(o) => Kind::Linear(Linear::new(linear::Loss::SquaredHinge, *o, shape)),
            Algorithm::KMeans(o) => Kind::KMeans(KMeans::new(*o, shape)),
            Algorithm::Perceptron(o) => Kind::Perceptron(Trainer::new(o.clone(), shape)),
            Algorithm::BoostedTrees(o) => Kind::Trees(Trees::new(*o, shape)),
            Algorithm::Topics(o) => Kind::Topics(Topics::new(*o, shape)),
            Algorithm::Program(_) => return Err(is_a_program()),
        }))
    }

    /// What [`partial`] needs for the next round, the same for all shards.
    pub fn parameters(&self) -> Vec<f64> {
        match &self.0 {
            Kind::Linear(l) => l.parameters(),
            Kind::KMeans(l) => l.parameters(),
            Kind::Perceptron(l) => l.parameters(),
            Kind::Trees(l) => l.parameters(),
            Kind::Topics(l) => l.parameters(),
            Kind::Classes(l) => l.parameters(),
        }
    }

    /// Combines the partial results of all shards, in the order of the shards, and makes a step.
    ///
    /// # Errors
    /// The loss is not a number, or a partial result is not of this round.
    pub fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        match &mut self.0 {
            Kind::Linear(l) => l.fold(partials),
            Kind::KMeans(l) => l.fold(partials),
            Kind::Perceptron(l) => l.fold(partials),
            Kind::Trees(l) => l.fold(partials),
            Kind::Topics(l) => l.fold(partials),
            Kind::Classes(l) => l.fold(partials),
        }
    }

    /// The best model so far; none before the first iteration.
    pub fn model(&self) -> Option<Model> {
        match &self.0 {
            Kind::Linear(l) => l.model().map(Model::Linear),
            Kind::KMeans(l) => l.model().map(Model::Clusters),
            Kind::Perceptron(l) => l.model().map(Model::Perceptron),
            Kind::Trees(l) => l.model().map(Model::Forest),
            Kind::Topics(l) => l.model().map(Model::Topics),
            Kind::Classes(l) => l.model().map(Model::LinearClasses),
        }
    }
}

/// The model that a round's parameters are; none if they are none, or not of this algorithm and shape. A topic model's
/// topics are the normalised weights of the round.
pub fn model_of(algorithm: &Algorithm, shape: &Shape, parameters: &[f64]) -> Option<Model> {
    match algorithm {
        Algorithm::LinearRegression(_) => linear::model_of(false, shape, parameters).map(Model::Linear),
        Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) if shape.classes > 2 => {
            multiclass::model_of(shape, parameters).map(Model::LinearClasses)
        }
        Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => {
            linear::model_of(true, shape, parameters).map(Model::Linear)
        }
        Algorithm::KMeans(o) => kmeans::model_of(o.clusters, shape, parameters).map(Model::Clusters),
        Algorithm::Perceptron(o) => Perceptron::of(&o.hidden, shape, parameters).map(Model::Perceptron),
        Algorithm::BoostedTrees(o) => trees::model_of(o, shape, parameters).map(Model::Forest),
        Algorithm::Topics(o) => topics::model_of(o, parameters).map(Model::Topics),
        Algorithm::Program(_) => None,
    }
}

/// What a worker keeps of a shard from round to round, to save work. It never changes a result.
#[derive(Debug, Default)]
pub struct Memory {
    pub(crate) trees: Option<trees::Kept>,
}

/// The partial result of one shard in the round that `parameters` are of.
///
/// # Errors
/// The parameters are not of this algorithm and shape.
pub fn partial(
    algorithm: &Algorithm,
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
    memory: &mut Memory,
) -> Result<Vec<f64>, LearnError> {
    if data.width() != shape.columns {
        return Err(LearnError::invalid("columns", format!("{} instead of {}", data.width(), shape.columns)));
    }
    match algorithm {
        Algorithm::LinearRegression(_) => linear::partial(linear::Loss::Squared, parameters, data),
        Algorithm::LogisticRegression(_) if shape.classes > 2 => {
            multiclass::partial(multiclass::Loss::Softmax, shape.classes, parameters, data)
        }
        Algorithm::LinearSvm(_) if shape.classes > 2 => {
            multiclass::partial(multiclass::Loss::SquaredHinge, shape.classes, parameters, data)
        }
        Algorithm::LogisticRegression(_) => linear::partial(linear::Loss::Logistic, parameters, data),
        Algorithm::LinearSvm(_) => linear::partial(linear::Loss::SquaredHinge, parameters, data),
        Algorithm::KMeans(o) => kmeans::partial(o.clusters, parameters, data),
        Algorithm::Perceptron(o) => net::partial(&o.hidden, shape, parameters, data),
        Algorithm::BoostedTrees(o) => trees::partial(o, shape, parameters, data, memory),
        Algorithm::Topics(o) => topics::partial(o, parameters, data),
        Algorithm::Program(_) => Err(is_a_program()),
    }
}

/// The sum of all shards' numbers, taken in the order of the shards.
pub(crate) fn total(partials: &[Vec<f64>], width: usize) -> Result<Vec<f64>, LearnError> {
    let mut sum = vec![0.0; width];
    for (shard, partial) in partials.iter().enumerate() {
        if partial.len() != width {
            return Err(LearnError::Mismatch { shard, got: partial.len(), want: width });
        }
        for (total, part) in sum.iter_mut().zip(partial) {
            *total += part;
        }
    }
    Ok(sum)
}

/// Reads parameters piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [f64]);

impl<'a> Reader<'a> {
    pub(crate) fn new(numbers: &'a [f64]) -> Reader<'a> {
        Reader(numbers)
    }

    /// The next `count` numbers.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [f64], LearnError> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(LearnError::invalid("parameters", "are not of this algorithm and data"));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// The next number.
    pub(crate) fn one(&mut self) -> Result<f64, LearnError> {
        Ok(self.take(1)?[0])
    }

    /// The next number, which counts something: a whole number below 2^32.
    pub(crate) fn count(&mut self) -> Result<usize, LearnError> {
        let number = self.one()?;
        if (0.0..4_294_967_296.0).contains(&number) && number.fract() == 0.0 {
            return Ok(number as usize);
        }
        Err(LearnError::invalid("parameters", "have a count that is no whole number"))
    }
}
