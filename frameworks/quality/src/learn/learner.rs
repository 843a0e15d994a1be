//! A learner: trains a model from the partial results of shards, for every algorithm.

use serde::{Deserialize, Serialize};

use super::algorithm::{Algorithm, Shape};
use super::critical::{Critical, CriticalRows, RowShares, Steps};
use super::data::Data;
use super::descent::Descent;
use super::error::LearnError;
use super::kmeans::{self, KMeans};
use super::linear::{self, Linear};
use super::method::Method;
use super::model::Model;
use super::multiclass::{self, Classes};
use super::net;
use super::perceptron::{Perceptron, Trainer};
use super::skipping;
use super::topics::{self, Topics};
use super::trees::{self, Trees};

/// The result of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Round {
    /// More rounds are needed to end the iteration.
    Inner,
    /// An iteration has ended.
    Iteration {
        /// Number of the iteration; 0 is the untrained model.
        iteration: u64,
        /// Loss of the model before this iteration's step.
        loss: f64,
        /// Share of examples that the model classified correctly, for classifiers.
        accuracy: Option<f64>,
        /// Whether this round's parameters were no better than earlier ones: the step is tried again, shorter, and loss
        /// and accuracy are those of the earlier parameters.
        retried: bool,
    },
}

/// The complete state of a training. A training continues unchanged after storing and restoring it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Learner {
    kind: Kind,
    critical: Option<Critical>,
}

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
    /// Creates a learner before its first iteration.
    ///
    /// # Errors
    /// The hyperparameters or the shape break a rule.
    pub fn new(algorithm: &Algorithm, shape: Shape) -> Result<Learner, LearnError> {
        algorithm.check()?;
        algorithm.check_shape(&shape)?;
        let kind = match algorithm.method(&shape)? {
            Method::Linear(loss, options) => Kind::Linear(Linear::new(loss, options, shape)),
            Method::Classes(loss, options) => Kind::Classes(Classes::new(loss, options, shape)),
            Method::KMeans(o) => Kind::KMeans(KMeans::new(*o, shape)),
            Method::Perceptron(o) => Kind::Perceptron(Trainer::new(o.clone(), shape)),
            Method::Trees(o) => Kind::Trees(Trees::new(*o, shape)),
            Method::Topics(o) => Kind::Topics(Topics::new(*o, shape)),
        };
        Ok(Learner { kind, critical: None })
    }

    /// Turns this into a learner on critical rows, if `options` are given. Its rounds are then those of
    /// [`partial_of_critical`].
    ///
    /// [`partial_of_critical`]: super::partial_of_critical
    ///
    /// # Errors
    /// The algorithm learns from all rows, or an option breaks a rule.
    pub fn on_critical_rows(
        self,
        options: Option<CriticalRows>,
        algorithm: &Algorithm,
        shape: &Shape,
    ) -> Result<Learner, LearnError> {
        let Some(options) = options else { return Ok(self) };
        options.check(algorithm)?;
        Ok(Learner { critical: Some(Critical::new(options, algorithm, shape)), ..self })
    }

    /// Sets the smallest share of the rows from now on, in a training on critical rows; the job's own limit holds, too.
    pub fn allow(&mut self, fraction: f64) {
        if let Some(critical) = &mut self.critical {
            critical.allow(fraction);
        }
    }

    /// Returns whether the last iteration has skipped rows, in a training on critical rows: then its loss is not exact.
    pub fn has_skipped(&self) -> bool {
        self.critical.as_ref().is_some_and(Critical::has_skipped)
    }

    /// Makes the next iteration one over all rows, also in a training on critical rows.
    pub fn use_all_rows_next(&mut self) {
        if let Some(critical) = &mut self.critical {
            critical.use_all_rows_next(&mut self.kind);
        }
    }

    /// Returns the shares of the rows in a training on critical rows; `None` in others.
    pub fn row_shares(&self) -> Option<RowShares> {
        self.critical.as_ref().map(Critical::shares)
    }

    /// Returns the mean share of the rows with which iterations have computed so far, in a training on critical rows;
    /// `None` in others.
    pub fn mean_row_share(&self) -> Option<f64> {
        self.critical.as_ref().map(Critical::mean_share)
    }

    /// Returns the parameters that [`partial`] needs for the next round, the same for all shards.
    pub fn parameters(&self) -> Vec<f64> {
        match &self.critical {
            Some(critical) => critical.parameters(&self.kind),
            None => self.kind.parameters(),
        }
    }

    /// Combines the partial results of all shards, in the order of the shards, and makes a step.
    ///
    /// # Errors
    /// The loss is not a number, or a partial result is not of this round.
    pub fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        match &mut self.critical {
            Some(critical) => critical.fold(&mut self.kind, partials),
            None => self.kind.fold(partials),
        }
    }

    /// Returns the best model so far; `None` before the first iteration.
    pub fn model(&self) -> Option<Model> {
        match &self.kind {
            Kind::Linear(l) => l.model().map(Model::Linear),
            Kind::KMeans(l) => l.model().map(Model::Clusters),
            Kind::Perceptron(l) => l.model().map(Model::Perceptron),
            Kind::Trees(l) => l.model().map(Model::Forest),
            Kind::Topics(l) => l.model().map(Model::Topics),
            Kind::Classes(l) => l.model().map(Model::LinearClasses),
        }
    }
}

impl Kind {
    fn descent(&mut self) -> Option<&mut Descent> {
        match self {
            Kind::Linear(l) => Some(l.descent()),
            Kind::Classes(l) => Some(l.descent()),
            Kind::KMeans(_) | Kind::Perceptron(_) | Kind::Trees(_) | Kind::Topics(_) => None,
        }
    }
}

impl Steps for Kind {
    fn parameters(&self) -> Vec<f64> {
        match self {
            Kind::Linear(l) => l.parameters(),
            Kind::KMeans(l) => l.parameters(),
            Kind::Perceptron(l) => l.parameters(),
            Kind::Trees(l) => l.parameters(),
            Kind::Topics(l) => l.parameters(),
            Kind::Classes(l) => l.parameters(),
        }
    }

    fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        match self {
            Kind::Linear(l) => l.fold(partials),
            Kind::KMeans(l) => l.fold(partials),
            Kind::Perceptron(l) => l.fold(partials),
            Kind::Trees(l) => l.fold(partials),
            Kind::Topics(l) => l.fold(partials),
            Kind::Classes(l) => l.fold(partials),
        }
    }

    fn settle(&mut self) {
        if let Some(descent) = self.descent() {
            descent.settle();
        }
    }

    fn mark(&mut self) {
        if let Some(descent) = self.descent() {
            descent.mark();
        }
    }

    fn back(&mut self) -> bool {
        self.descent().is_some_and(Descent::back)
    }
}

/// Returns the model that a round's parameters describe; `None` if they describe none, or are not of this algorithm and
/// shape. A topic model's topics are the normalised weights of the round.
pub fn model_of(algorithm: &Algorithm, shape: &Shape, parameters: &[f64]) -> Option<Model> {
    match algorithm.method(shape).ok()? {
        Method::Linear(loss, _) => linear::model_of(loss, shape, parameters).map(Model::Linear),
        Method::Classes(..) => multiclass::model_of(shape, parameters).map(Model::LinearClasses),
        Method::KMeans(o) => kmeans::model_of(o.clusters, shape, parameters).map(Model::Clusters),
        Method::Perceptron(o) => Perceptron::of(&o.hidden, shape, parameters).map(Model::Perceptron),
        Method::Trees(o) => trees::model_of(o, shape, parameters).map(Model::Forest),
        Method::Topics(o) => topics::model_of(o, parameters).map(Model::Topics),
    }
}

/// The data about a shard that a worker keeps from round to round, to save work. It never changes a result.
#[derive(Debug, Default)]
pub struct ShardCache {
    pub(crate) trees: Option<trees::Cached>,
    pub(crate) critical: Option<skipping::Cached>,
    /// Number of rows in the last round of a training on critical rows.
    pub worked: usize,
}

/// Computes the partial result of one shard in the round of `parameters`.
///
/// # Errors
/// The parameters are not of this algorithm and shape.
pub fn partial(
    algorithm: &Algorithm,
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
    memory: &mut ShardCache,
) -> Result<Vec<f64>, LearnError> {
    if data.width() != shape.columns {
        return Err(LearnError::invalid("columns", format!("{} instead of {}", data.width(), shape.columns)));
    }
    match algorithm.method(shape)? {
        Method::Linear(loss, _) => linear::partial(loss, parameters, data),
        Method::Classes(loss, _) => multiclass::partial(loss, shape.classes, parameters, data),
        Method::KMeans(o) => kmeans::partial(o.clusters, parameters, data),
        Method::Perceptron(o) => net::partial(&o.hidden, shape, parameters, data),
        Method::Trees(o) => trees::partial(o, shape, parameters, data, memory),
        Method::Topics(o) => topics::partial(o, parameters, data),
    }
}

/// Returns the sum of all shards' numbers, taken in the order of the shards.
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

    /// Reads the next `count` numbers.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [f64], LearnError> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(LearnError::invalid("parameters", "are not of this algorithm and data"));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// Returns all numbers that are left.
    pub(crate) fn rest(self) -> &'a [f64] {
        self.0
    }

    /// Reads the next number.
    pub(crate) fn one(&mut self) -> Result<f64, LearnError> {
        Ok(self.take(1)?[0])
    }

    /// Reads the next number as a count: a whole number below 2^32.
    pub(crate) fn count(&mut self) -> Result<usize, LearnError> {
        let number = self.one()?;
        if (0.0..4_294_967_296.0).contains(&number) && number.fract() == 0.0 {
            return Ok(number as usize);
        }
        Err(LearnError::invalid("parameters", "have a count that is not a whole number"))
    }
}
