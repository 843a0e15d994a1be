//! Computes the rounds of shards in trainings on critical rows: chooses rows, and computes sums with them.
//!
//! The data about a shard that a worker keeps, its groups and the chosen rows, follows from the round's parameters. So
//! it does not matter which worker has a shard.

use super::algorithm::{Algorithm, Shape};
use super::critical::{ANCHOR, SKIPPING, WHOLE};
use super::data::Data;
use super::error::LearnError;
use super::groups::Groups;
use super::learner::{self, Reader, ShardCache};
use super::method::Method;
use super::model::Model;
use super::score::{WIDTH, score as score_of_all};
use super::{linear, multiclass, net};

/// The data about a shard that a worker keeps from round to round.
#[derive(Debug)]
pub(crate) struct Cached {
    groups: Groups,
    /// Rows that were chosen last, with a hash of what they were chosen by.
    chosen: Option<(u64, Data)>,
}

/// Computes the partial result of one shard in the round of `parameters`, in a training on critical rows. Stores the
/// number of rows that it has computed with in [`ShardCache::worked`].
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
    let round = Parts::of(parameters)?;
    if round.kind == WHOLE {
        memory.worked = data.len();
        return learner::partial(algorithm, shape, round.own, data, memory);
    }
    let mut cached = memory.critical.take().unwrap_or_else(|| Cached::new(data, shape));
    let mut compute = |data: &Data| learner::partial(algorithm, shape, round.own, data, memory);
    let mut worked = 0;
    let mut sums = Vec::new();
    if round.kind == ANCHOR {
        sums.extend(compute(data)?);
        // The choice of the last anchor is measured before it is replaced.
        let before = match round.before.is_empty() {
            true => None,
            false => Some(cached.chosen(algorithm, shape, round.before, round.fraction_before, data)?),
        };
        let old = before.map(|before| Ok::<_, LearnError>((before.len(), compute(before)?))).transpose()?;
        let chosen = cached.chosen(algorithm, shape, round.own, round.fraction, data)?;
        sums.extend(compute(chosen)?);
        worked += data.len() + chosen.len();
        if let Some((rows, old)) = old {
            sums.extend(old);
            worked += rows;
        }
    } else {
        let chosen = cached.chosen(algorithm, shape, round.before, round.fraction_before, data)?;
        sums.extend(compute(chosen)?);
        worked += chosen.len();
    }
    memory.critical = Some(cached);
    memory.worked = worked;
    sums.push(worked as f64);
    Ok(sums)
}

/// Returns the [`score`](fn@super::score) of a shard in a round of a training on critical rows; all numbers are 0 in a
/// round that skips rows.
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
    let round = Parts::of(parameters)?;
    memory.worked = if round.kind == SKIPPING { 0 } else { data.len() };
    match round.kind == SKIPPING {
        true => Ok(vec![0.0; WIDTH]),
        false => score_of_all(algorithm, shape, round.own, data, memory),
    }
}

/// Returns the model that the parameters of a round of a training on critical rows describe.
pub fn model_of(algorithm: &Algorithm, shape: &Shape, parameters: &[f64]) -> Option<Model> {
    learner::model_of(algorithm, shape, Parts::of(parameters).ok()?.own)
}

/// The parts of a round's parameters.
struct Parts<'a> {
    kind: f64,
    fraction: f64,
    fraction_before: f64,
    /// The algorithm's parameters at the last anchor.
    before: &'a [f64],
    own: &'a [f64],
}

impl Parts<'_> {
    fn of(parameters: &[f64]) -> Result<Parts<'_>, LearnError> {
        let mut reader = Reader::new(parameters);
        let kind = reader.one()?;
        if kind == WHOLE {
            return Ok(Parts { kind, fraction: 1.0, fraction_before: 1.0, before: &[], own: reader.rest() });
        }
        let (fraction, fraction_before) = (reader.one()?, reader.one()?);
        let count = reader.count()?;
        let before = reader.take(count)?;
        Ok(Parts { kind, fraction, fraction_before, before, own: reader.rest() })
    }
}

impl Cached {
    fn new(data: &Data, shape: &Shape) -> Cached {
        Cached { groups: Groups::new(data, shape.classes > 0), chosen: None }
    }

    /// Returns the rows that these parameters choose, with the mean rows of the other groups.
    fn chosen(
        &mut self,
        algorithm: &Algorithm,
        shape: &Shape,
        parameters: &[f64],
        fraction: f64,
        data: &Data,
    ) -> Result<&Data, LearnError> {
        let key = parameters.iter().fold(fraction.to_bits(), |key, number| base::scramble(key ^ number.to_bits()));
        let chosen = match self.chosen.take() {
            Some((of, chosen)) if of == key => chosen,
            _ => {
                let critical = gradients(algorithm, shape, parameters, &self.groups)?;
                self.groups.stand_in(data, &critical, fraction)
            }
        };
        Ok(&self.chosen.insert((key, chosen)).1)
    }
}

/// Returns the length of the gradient at each group's mean row; of a perceptron that of its last layer, which bounds
/// the others (Katharopoulos and Fleuret, ICML 2018).
fn gradients(
    algorithm: &Algorithm,
    shape: &Shape,
    parameters: &[f64],
    groups: &Groups,
) -> Result<Vec<f64>, LearnError> {
    let means = groups.centroids();
    let slopes = match algorithm.method(shape)? {
        Method::Linear(loss, _) => linear::slopes(loss, parameters, means)?,
        Method::Classes(loss, _) => multiclass::slopes(loss, shape.classes, parameters, means)?,
        Method::Perceptron(options) => return net::slopes(&options.hidden, shape, parameters, means),
        _ => return Err(LearnError::invalid("kind", "learns from all rows")),
    };
    Ok(slopes.iter().zip(groups.lengths()).map(|(slope, length)| slope * (1.0 + length * length).sqrt()).collect())
}
