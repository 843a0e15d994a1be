//! Computes scores of a model on examples that it does not learn from: its loss and its accuracy, shard by shard.
//!
//! The model is that of a round's parameters, so scores are computed in the same round as the partial results.

use serde::{Deserialize, Serialize};

use super::algorithm::{Algorithm, Shape};
use super::data::Data;
use super::error::LearnError;
use super::learner::{ShardCache, total};
use super::method::Method;
use super::{kmeans, linear, multiclass, net, topics, trees};

/// The quality of a model on data that it does not learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Loss, without penalties for large weights.
    pub loss: f64,
    /// Share of the examples that are classified correctly, for classifiers.
    pub accuracy: Option<f64>,
}

/// Number of numbers that [`score`] returns: loss, right answers, and what both are divided by.
pub(crate) const WIDTH: usize = 3;

/// Returns the loss of a shard's examples, the number of right answers, and the number of examples (of words, for
/// topics). All are 0 in a round whose parameters are not a model: at the beginning, and in the middle of an iteration.
///
/// # Errors
/// The parameters are not of this algorithm and shape.
pub fn score(
    algorithm: &Algorithm,
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
    memory: &mut ShardCache,
) -> Result<Vec<f64>, LearnError> {
    if data.width() != shape.columns {
        return Err(LearnError::invalid("columns", format!("{} instead of {}", data.width(), shape.columns)));
    }
    let score = match algorithm.method(shape)? {
        Method::Linear(loss, _) => linear::score(loss, parameters, data),
        Method::Classes(loss, _) => multiclass::score(loss, shape.classes, parameters, data),
        Method::KMeans(o) => kmeans::score(o.clusters, parameters, data),
        Method::Perceptron(o) => net::score(&o.hidden, shape, parameters, data),
        Method::Trees(o) => trees::score(o, shape, parameters, data, memory),
        Method::Topics(o) => topics::score(o, parameters, data),
    };
    Ok(score?.unwrap_or_default().to_vec())
}

/// Returns the loss and the accuracy over all shards, from their [`score`]s in the order of the shards; `None` in a
/// round without scores.
///
/// # Errors
/// A score has the wrong size.
pub fn combined(algorithm: &Algorithm, scores: &[Vec<f64>]) -> Result<Option<Score>, LearnError> {
    let sums = total(scores, WIDTH)?;
    let of_all = |number: f64| number / sums[2];
    let accuracy = || algorithm.classifies().then(|| of_all(sums[1]));
    Ok((sums[2] > 0.0).then(|| Score { loss: of_all(sums[0]), accuracy: accuracy() }))
}
