//! Linear models of several classes, with a weight for each feature and class: softmax, or one class against the
//! others.
//!
//! Features are scaled to mean 0 and deviation 1 by rewriting the weights, as in models of two classes.

use ndarray::Array1;
use serde::{Deserialize, Serialize};

use super::algorithm::Shape;
use super::data::Data;
use super::descent::{Descent, Outcome};
use super::error::LearnError;
use super::learner::{Reader, Round, total};
use super::linear::{LinearOptions, unscaled};
use super::scaling::{Scaling, moments, moments_width};

/// Maximum number of weights: 32 MB, which are sent in every round.
const WEIGHTS_MAX: usize = 4_000_000;
const CLASSES_MAX: usize = 10_000;

/// The loss of an example, as a function of the model's output for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Loss {
    /// Cross-entropy of the outputs' softmax.
    Softmax,
    /// Sum over the classes of max(0, 1 - ym)^2, with y = 1 for the label's class and -1 for the others: one squared
    /// hinge for each class against the others.
    SquaredHinge,
}

impl Loss {
    /// Returns the loss, and replaces each output by the loss's derivative by it.
    fn at(self, outputs: &mut [f64], label: usize) -> f64 {
        match self {
            Loss::Softmax => {
                let output = outputs[label];
                let log_sum = softmax(outputs);
                outputs[label] -= 1.0;
                log_sum - output
            }
            Loss::SquaredHinge => {
                let mut loss = 0.0;
                for (class, output) in outputs.iter_mut().enumerate() {
                    let side = if class == label { 1.0 } else { -1.0 };
                    let lack = (1.0 - side * *output).max(0.0);
                    loss += lack * lack;
                    *output = -2.0 * side * lack;
                }
                loss
            }
        }
    }
}

/// Replaces numbers by their softmax; returns the logarithm of the sum of their exponentials.
pub(crate) fn softmax(outputs: &mut [f64]) -> f64 {
    let largest = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    outputs.iter_mut().for_each(|o| *o = (*o - largest).exp());
    let sum: f64 = outputs.iter().sum();
    outputs.iter_mut().for_each(|o| *o /= sum);
    largest + sum.ln()
}

/// Returns the index of the largest number, the first of equals.
pub(crate) fn largest(outputs: &[f64]) -> usize {
    let mut best = 0;
    for (place, output) in outputs.iter().enumerate() {
        if *output > outputs[best] {
            best = place;
        }
    }
    best
}

pub(crate) fn check_shape(shape: &Shape) -> Result<(), LearnError> {
    if shape.classes > CLASSES_MAX || shape.classes.saturating_mul(shape.columns + 1) > WEIGHTS_MAX {
        let rule =
            format!("there are {}; {CLASSES_MAX}, and {WEIGHTS_MAX} times columns, are the limit", shape.classes);
        return Err(LearnError::invalid("classes", rule));
    }
    Ok(())
}

const MOMENTS: f64 = 0.0;
const GRADIENT: f64 = 1.0;

/// Returns the outputs of a shard's rows, class by class; `None` in a round without weights. The parameters are, for
/// each class, its weights and its offset.
fn outputs(classes: usize, parameters: &[f64], data: &Data) -> Result<Option<Vec<Array1<f64>>>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == MOMENTS {
        return Ok(None);
    }
    let class = |_| Ok(data.times(reader.take(data.width())?) + reader.one()?);
    (0..classes).map(class).collect::<Result<Vec<_>, LearnError>>().map(Some)
}

/// Computes a round of one shard: moments at first, then for each class the gradient by weight and by offset; and at
/// the end loss, right, rows.
pub(crate) fn partial(loss: Loss, classes: usize, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let Some(mut slopes) = outputs(classes, parameters, data)? else { return Ok(moments(data)) };
    let width = data.width() + 1;
    let mut sums = vec![0.0; classes * width + 3];
    let end = measure(loss, data, &mut slopes)?;
    if !data.weights.is_empty() {
        let weights = Array1::from(data.weights.clone());
        slopes.iter_mut().for_each(|of_class| *of_class *= &weights);
    }
    for (class, slopes) in slopes.iter().enumerate() {
        let of_class = &mut sums[class * width..(class + 1) * width];
        data.add_weighted(slopes, &mut of_class[..width - 1]);
        of_class[width - 1] = slopes.sum();
    }
    sums[classes * width..].copy_from_slice(&end);
    Ok(sums)
}

/// Returns the length of the loss's derivative by the outputs for each row; the parameters are weights.
pub(crate) fn slopes(loss: Loss, classes: usize, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let Some(mut slopes) = outputs(classes, parameters, data)? else { return Ok(vec![0.0; data.len()]) };
    measure(loss, data, &mut slopes)?;
    Ok((0..data.len()).map(|row| slopes.iter().map(|of_class| of_class[row].powi(2)).sum::<f64>().sqrt()).collect())
}

/// Returns the weighted sum of losses of a shard's rows, the weighted number of correct predictions and the number of
/// examples.
pub(crate) fn score(
    loss: Loss,
    classes: usize,
    parameters: &[f64],
    data: &Data,
) -> Result<Option<[f64; 3]>, LearnError> {
    outputs(classes, parameters, data)?.map(|mut outputs| measure(loss, data, &mut outputs)).transpose()
}

/// Returns the weighted sum of losses, the weighted number of correct predictions and the number of examples, and
/// replaces `outputs` by the derivatives of the loss.
fn measure(loss: Loss, data: &Data, outputs: &mut [Array1<f64>]) -> Result<[f64; 3], LearnError> {
    let mut sums = [0.0, 0.0, data.examples()];
    for row in 0..data.len() {
        let mut of_row: Vec<f64> = outputs.iter().map(|of_class| of_class[row]).collect();
        let label = data.label(row) as usize;
        if label >= of_row.len() {
            return Err(LearnError::invalid("label", format!("must be below {}", of_row.len())));
        }
        let weight = data.weight(row);
        sums[1] += weight * f64::from(u8::from(largest(&of_row) == label));
        sums[0] += weight * loss.at(&mut of_row, label);
        outputs.iter_mut().zip(of_row).for_each(|(of_class, slope)| of_class[row] = slope);
    }
    Ok(sums)
}

/// Returns the model that a round's parameters describe.
pub(crate) fn model_of(shape: &Shape, parameters: &[f64]) -> Option<ClassesModel> {
    let rest = parameters.split_first().filter(|(first, _)| **first != MOMENTS)?.1;
    (rest.len() == shape.classes * (shape.columns + 1)).then(|| ClassesModel::of(rest, shape.columns + 1))
}

/// The state of the training of a linear model of several classes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Classes {
    loss: Loss,
    options: LinearOptions,
    columns: usize,
    classes: usize,
    scaling: Option<Scaling>,
    /// Descent over the weights of the scaled features and the offset of each class.
    descent: Descent,
}

impl Classes {
    pub(crate) fn new(loss: Loss, options: LinearOptions, shape: Shape) -> Classes {
        let Shape { columns, classes, .. } = shape;
        let descent = Descent::new(vec![0.0; classes * (columns + 1)], options.learning_rate);
        Classes { loss, options, columns, classes, scaling: None, descent }
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        let Some(scaling) = &self.scaling else { return vec![MOMENTS] };
        std::iter::once(GRADIENT).chain(self.unscaled(self.descent.point(), scaling)).collect()
    }

    fn unscaled(&self, point: &[f64], scaling: &Scaling) -> Vec<f64> {
        point.chunks_exact(self.columns + 1).flat_map(|of_class| unscaled(of_class, scaling)).collect()
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        let Some(scaling) = &self.scaling else {
            self.scaling = Some(Scaling::from_moments(&total(partials, moments_width(self.columns))?));
            return Ok(Round::Inner);
        };
        let (columns, count) = (self.columns, self.classes * (self.columns + 1));
        let sums = total(partials, count + 3)?;
        let rows = sums[count + 2].max(1.0);
        let point = self.descent.point();
        let (mut gradient, mut penalty) = (Vec::with_capacity(count), 0.0);
        for (of_class, weights) in sums[..count].chunks_exact(columns + 1).zip(point.chunks_exact(columns + 1)) {
            let by_offset = of_class[columns];
            gradient.extend((0..columns).map(|j| {
                let by_weight = (of_class[j] - scaling.means[j] * by_offset) / scaling.deviations[j];
                by_weight / rows + self.options.l2 * weights[j]
            }));
            gradient.push(by_offset / rows);
            penalty += self.options.l2 / 2.0 * weights[..columns].iter().map(|w| w * w).sum::<f64>();
        }
        let accuracy = Some(sums[count + 1] / rows);
        let Outcome { iteration, loss, accuracy, retried } =
            self.descent.advance(sums[count] / rows + penalty, gradient, accuracy)?;
        Ok(Round::Iteration { iteration, loss, accuracy, retried })
    }

    pub(crate) fn descent(&mut self) -> &mut Descent {
        &mut self.descent
    }

    pub(crate) fn model(&self) -> Option<ClassesModel> {
        let point = self.unscaled(self.descent.best()?, self.scaling.as_ref()?);
        Some(ClassesModel::of(&point, self.columns + 1))
    }
}

/// A trained linear model of several classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassesModel {
    /// One weight for each feature, for each class.
    pub weights: Vec<Vec<f64>>,
    /// Offset of each class.
    pub offsets: Vec<f64>,
}

impl ClassesModel {
    fn of(point: &[f64], width: usize) -> ClassesModel {
        let of_class = point.chunks_exact(width);
        let weights = of_class.clone().map(|weights| weights[..width - 1].to_vec()).collect();
        ClassesModel { weights, offsets: of_class.map(|weights| weights[width - 1]).collect() }
    }

    fn outputs(&self, row: &[f64]) -> Vec<f64> {
        let output =
            |(weights, offset): (&Vec<f64>, &f64)| offset + weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
        self.weights.iter().zip(&self.offsets).map(output).collect()
    }

    /// Returns the class with the largest output. Missing features count as zero.
    pub fn predict(&self, row: &[f64]) -> usize {
        largest(&self.outputs(row))
    }

    /// Returns the probability of each class, if the loss was that of softmax.
    pub fn probabilities(&self, row: &[f64]) -> Vec<f64> {
        let mut outputs = self.outputs(row);
        softmax(&mut outputs);
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::sample::{generator, normal};

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let mut chance = generator(1, 2);
        let rows = ndarray::Array2::from_shape_fn((9, 2), |_| normal(&mut chance));
        let data = Data::dense(rows, vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 2.0, 2.0, 1.0]);
        let mut parameters = vec![GRADIENT];
        parameters.extend((0..9).map(|_| normal(&mut chance)));
        for loss in [Loss::Softmax, Loss::SquaredHinge] {
            let exact = partial(loss, 3, &parameters, &data).unwrap();
            for place in 0..9 {
                let shifted = |by: f64| {
                    let mut moved = parameters.clone();
                    moved[1 + place] += by;
                    partial(loss, 3, &moved, &data).unwrap()[9]
                };
                let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                assert!((slope - exact[place]).abs() < 1e-5, "{loss:?} {place}: {slope} and {}", exact[place]);
            }
        }
    }
}
