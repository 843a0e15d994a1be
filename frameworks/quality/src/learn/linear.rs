//! Linear models: least squares, logistic regression and the support vector machine, which differ in their losses only.
//!
//! Features are scaled to mean 0 and deviation 1 by rewriting the weights, so that sparse data stays sparse.

use serde::{Deserialize, Serialize};

use super::algorithm::{Shape, within};
use super::data::Data;
use super::descent::{Descent, Outcome};
use super::error::LearnError;
use super::learner::{Reader, Round, total};
use super::scaling::{Scaling, moments, moments_width};

/// Hyperparameters of the linear models.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinearOptions {
    /// Weight of the L2 penalty: half the squared length of the weights, times this, is added to the loss. 0.0001 by
    /// default.
    pub l2: f64,
    /// Length of the first step, in units of the gradient; it adapts. 0.5 by default.
    pub learning_rate: f64,
}

impl Default for LinearOptions {
    fn default() -> LinearOptions {
        LinearOptions { l2: 1e-4, learning_rate: 0.5 }
    }
}

impl LinearOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        within("l2", self.l2, 0.0, 1e6)?;
        within("learning_rate", self.learning_rate, 1e-9, 1e6)
    }
}

/// The loss of an example, as a function of the model's output and the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Loss {
    /// Half the squared difference.
    Squared,
    /// ln(1 + e^-ym), with y = -1 or 1.
    Logistic,
    /// max(0, 1 - ym)^2, with y = -1 or 1.
    SquaredHinge,
}

impl Loss {
    /// Returns the loss, and its derivative by the output.
    fn at(self, output: f64, label: f64) -> (f64, f64) {
        let side = 2.0 * label - 1.0;
        match self {
            Loss::Squared => ((output - label).powi(2) / 2.0, output - label),
            Loss::Logistic => {
                let against = -side * output;
                // For a large number ln(1 + e^x) is x, and e^x may overflow.
                let loss = if against > 30.0 { against } else { against.exp().ln_1p() };
                (loss, -side / (1.0 + (-against).exp()))
            }
            Loss::SquaredHinge => {
                let lack = (1.0 - side * output).max(0.0);
                (lack * lack, -2.0 * side * lack)
            }
        }
    }

    fn classifies(self) -> bool {
        self != Loss::Squared
    }
}

const MOMENTS: f64 = 0.0;
const GRADIENT: f64 = 1.0;

/// Computes a round of one shard: moments at first, then gradients as [by weight, by offset, loss, right, rows].
pub(crate) fn partial(loss: Loss, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == MOMENTS {
        return Ok(moments(data));
    }
    let columns = data.width();
    let weights = reader.take(columns)?;
    let offset = reader.one()?;
    let outputs = data.times(weights) + offset;
    let mut sums = vec![0.0; columns + 4];
    let mut slopes = outputs;
    for (row, slope) in slopes.iter_mut().enumerate() {
        let (output, label, weight) = (*slope, data.label(row), data.weight(row));
        let (cost, derivative) = loss.at(output, label);
        *slope = weight * derivative;
        sums[columns] += *slope;
        sums[columns + 1] += weight * cost;
        sums[columns + 2] += weight * f64::from(u8::from((output > 0.0) == (label > 0.5)));
    }
    sums[columns + 3] = data.examples();
    data.add_weighted(&slopes, &mut sums[..columns]);
    Ok(sums)
}

/// Returns the absolute value of the loss's derivative by the output for each row; the parameters are weights.
pub(crate) fn slopes(loss: Loss, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let mut reader = Reader::new(parameters);
    reader.one()?;
    let outputs = data.times(reader.take(data.width())?) + reader.one()?;
    Ok(outputs.iter().enumerate().map(|(row, output)| loss.at(*output, data.label(row)).1.abs()).collect())
}

/// Returns the loss of a shard's rows, and the number of right answers.
pub(crate) fn score(loss: Loss, parameters: &[f64], data: &Data) -> Result<Option<[f64; 3]>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == MOMENTS {
        return Ok(None);
    }
    let weights = reader.take(data.width())?;
    let outputs = data.times(weights) + reader.one()?;
    let mut sums = [0.0, 0.0, data.len() as f64];
    for (row, output) in outputs.iter().enumerate() {
        let label = data.label(row);
        sums[0] += loss.at(*output, label).0;
        sums[1] += f64::from(u8::from((*output > 0.0) == (label > 0.5)));
    }
    Ok(Some(sums))
}

/// Returns the model that a round's parameters describe.
pub(crate) fn model_of(loss: Loss, shape: &Shape, parameters: &[f64]) -> Option<LinearModel> {
    let mut reader = Reader::new(parameters);
    let is_model = reader.one().ok()? != MOMENTS;
    let weights = reader.take(shape.columns).ok().filter(|_| is_model)?.to_vec();
    Some(LinearModel { weights, offset: reader.one().ok()?, classifies: loss.classifies() })
}

/// The state of the training of a linear model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Linear {
    loss: Loss,
    options: LinearOptions,
    columns: usize,
    scaling: Option<Scaling>,
    /// Descent over the weights of the scaled features and the offset.
    descent: Descent,
}

impl Linear {
    pub(crate) fn new(loss: Loss, options: LinearOptions, shape: Shape) -> Linear {
        let descent = Descent::new(vec![0.0; shape.columns + 1], options.learning_rate);
        Linear { loss, options, columns: shape.columns, scaling: None, descent }
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        let Some(scaling) = &self.scaling else { return vec![MOMENTS] };
        let mut parameters = vec![GRADIENT];
        parameters.extend(unscaled(self.descent.point(), scaling));
        parameters
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        let Some(scaling) = &self.scaling else {
            self.scaling = Some(Scaling::from_moments(&total(partials, moments_width(self.columns))?));
            return Ok(Round::Inner);
        };
        let d = self.columns;
        let sums = total(partials, d + 4)?;
        let rows = sums[d + 3].max(1.0);
        let point = self.descent.point();
        let mut gradient: Vec<f64> = (0..d)
            .map(|j| (sums[j] - scaling.means[j] * sums[d]) / scaling.deviations[j] / rows + self.options.l2 * point[j])
            .collect();
        gradient.push(sums[d] / rows);
        let penalty = self.options.l2 / 2.0 * point[..d].iter().map(|w| w * w).sum::<f64>();
        let accuracy = self.loss.classifies().then(|| sums[d + 2] / rows);
        let outcome = self.descent.advance(sums[d + 1] / rows + penalty, gradient, accuracy)?;
        let Outcome { iteration, loss, accuracy, retried } = outcome;
        Ok(Round::Iteration { iteration, loss, accuracy, retried })
    }

    pub(crate) fn descent(&mut self) -> &mut Descent {
        &mut self.descent
    }

    pub(crate) fn model(&self) -> Option<LinearModel> {
        let mut weights = unscaled(self.descent.best()?, self.scaling.as_ref()?);
        let offset = weights.pop()?;
        Some(LinearModel { weights, offset, classifies: self.loss.classifies() })
    }
}

/// Converts weights of scaled features to weights of the original features; the offset is the last.
pub(crate) fn unscaled(point: &[f64], scaling: &Scaling) -> Vec<f64> {
    let columns = scaling.means.len();
    let mut weights: Vec<f64> = point[..columns].iter().zip(&scaling.deviations).map(|(w, d)| w / d).collect();
    let shift: f64 = weights.iter().zip(&scaling.means).map(|(w, m)| w * m).sum();
    weights.push(point[columns] - shift);
    weights
}

/// A trained linear model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearModel {
    /// One weight for each feature.
    pub weights: Vec<f64>,
    /// Number that is added to the weighted sum.
    pub offset: f64,
    /// Whether the output's sign names one of two classes.
    pub classifies: bool,
}

impl LinearModel {
    /// Returns the predicted number, or the class: 0 or 1. Missing features count as zero.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let output = self.output(row);
        if self.classifies { f64::from(u8::from(output > 0.0)) } else { output }
    }

    /// Returns the probabilities of both classes as of logistic loss; `None` if the model does not classify.
    pub(crate) fn probabilities(&self, row: &[f64]) -> Option<Vec<f64>> {
        let second = 1.0 / (1.0 + (-self.output(row)).exp());
        self.classifies.then(|| vec![1.0 - second, second])
    }

    fn output(&self, row: &[f64]) -> f64 {
        self.offset + self.weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()
    }
}
