//! The arithmetic of a multi-layer perceptron: outputs, cross-entropy and its gradient for a part of the data.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, Slice};

use super::algorithm::Shape;
use super::data::Data;
use super::error::LearnError;
use super::learner::Reader;
use super::scaling::moments;

pub(crate) const MOMENTS: f64 = 0.0;
pub(crate) const GRADIENT: f64 = 1.0;

/// Returns the width of each layer, from the features to the classes.
pub(crate) fn widths(columns: usize, hidden: &[usize], classes: usize) -> Vec<usize> {
    std::iter::once(columns).chain(hidden.iter().copied()).chain([classes]).collect()
}

/// Returns the number of weights between layers of these widths.
pub(crate) fn weights_count(widths: &[usize]) -> usize {
    widths.windows(2).map(|w| (w[0] + 1) * w[1]).sum()
}

/// The weights of a layer, by input and output, and the offset of each output.
type Layer<'a> = (ArrayView2<'a, f64>, ArrayView1<'a, f64>);

/// Splits a slice of all weights into layers.
fn layers<'a>(widths: &[usize], mut weights: &'a [f64]) -> Vec<Layer<'a>> {
    let mut layers = Vec::with_capacity(widths.len());
    for pair in widths.windows(2) {
        let (matrix, rest) = weights.split_at(pair[0] * pair[1]);
        let (offsets, rest) = rest.split_at(pair[1]);
        weights = rest;
        // The slice has exactly this many numbers.
        if let Ok(matrix) = ArrayView2::from_shape((pair[0], pair[1]), matrix) {
            layers.push((matrix, ArrayView1::from(offsets)));
        }
    }
    layers
}

/// Returns the outputs of each layer for each row; the rows themselves are the first, the classes' probabilities the
/// last.
fn forward(layers: &[Layer<'_>], rows: Array2<f64>) -> Vec<Array2<f64>> {
    let mut outputs = vec![rows];
    for (place, (weights, offsets)) in layers.iter().enumerate() {
        let mut output = outputs[place].dot(weights) + offsets;
        if place + 1 == layers.len() {
            output.rows_mut().into_iter().for_each(softmax);
        } else {
            output.mapv_inplace(f64::tanh);
        }
        outputs.push(output);
    }
    outputs
}

fn softmax(mut row: ndarray::ArrayViewMut1<'_, f64>) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.mapv_inplace(|x| (x - largest).exp());
    let sum = row.sum();
    row.mapv_inplace(|x| x / sum);
}

/// Returns the probability of each class for each scaled row.
pub(crate) fn probabilities(widths: &[usize], weights: &[f64], rows: Array2<f64>) -> Array2<f64> {
    forward(&layers(widths, weights), rows).pop().unwrap_or_default()
}

/// Computes a round of one shard: moments at first, then [gradient, loss, right, rows] over a stripe of the rows.
pub(crate) fn partial(
    hidden: &[usize],
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
) -> Result<Vec<f64>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == MOMENTS {
        return Ok(moments(data));
    }
    let (stripe, stripes) = (reader.count()?, reader.count()?.max(1));
    let (means, deviations) = (reader.take(shape.columns)?, reader.take(shape.columns)?);
    let widths = widths(shape.columns, hidden, shape.classes);
    let weights = reader.take(weights_count(&widths))?;
    let Some(matrix) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let picked = Slice::new(stripe.min(data.len()) as isize, None, stripes as isize);
    let picked = matrix.slice_axis(Axis(0), picked);
    let rows = (&picked - &ArrayView1::from(means)) / ArrayView1::from(deviations);
    let labels: Vec<usize> = (stripe..data.len()).step_by(stripes).map(|r| data.label(r) as usize).collect();
    if labels.iter().any(|l| *l >= shape.classes) {
        return Err(LearnError::invalid("label", format!("must be below {}", shape.classes)));
    }
    let of_rows: Vec<f64> = (stripe..data.len()).step_by(stripes).map(|row| data.weight(row)).collect();
    Ok(gradient(&widths, weights, rows, (&labels, &of_rows)))
}

/// Returns the length of the gradient of the last layer's weights for each row.
pub(crate) fn slopes(hidden: &[usize], shape: &Shape, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let mut reader = Reader::new(parameters);
    reader.take(3)?;
    let (means, deviations) = (reader.take(shape.columns)?, reader.take(shape.columns)?);
    let widths = widths(shape.columns, hidden, shape.classes);
    let weights = reader.take(weights_count(&widths))?;
    let Some(matrix) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let rows = (&matrix - &ArrayView1::from(means)) / ArrayView1::from(deviations);
    let mut outputs = forward(&layers(&widths, weights), rows);
    let (Some(probabilities), Some(inputs)) = (outputs.pop(), outputs.pop()) else { return Ok(Vec::new()) };
    let length = |(row, (of_row, input)): (usize, (ArrayView1<'_, f64>, ArrayView1<'_, f64>))| {
        let label = data.label(row) as usize;
        let off = of_row.iter().enumerate().map(|(class, p)| (p - f64::from(u8::from(class == label))).powi(2));
        (off.sum::<f64>() * (1.0 + input.dot(&input))).sqrt()
    };
    Ok(probabilities.rows().into_iter().zip(inputs.rows()).enumerate().map(length).collect())
}

/// Returns the cross-entropy of a shard's rows, and the number of right answers; `None` in the middle of an iteration.
pub(crate) fn score(
    hidden: &[usize],
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
) -> Result<Option<[f64; 3]>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == MOMENTS || reader.count()? > 0 {
        return Ok(None);
    }
    reader.one()?;
    let (means, deviations) = (reader.take(shape.columns)?, reader.take(shape.columns)?);
    let widths = widths(shape.columns, hidden, shape.classes);
    let weights = reader.take(weights_count(&widths))?;
    let Some(matrix) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let rows = (&matrix - &ArrayView1::from(means)) / ArrayView1::from(deviations);
    let mut sums = [0.0, 0.0, data.len() as f64];
    for (row, probabilities) in probabilities(&widths, weights, rows).rows().into_iter().enumerate() {
        let label = data.label(row) as usize;
        let Some(probability) = probabilities.get(label) else {
            return Err(LearnError::invalid("label", format!("must be below {}", shape.classes)));
        };
        sums[0] -= probability.max(f64::MIN_POSITIVE).ln();
        let best = probabilities.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(class, _)| class);
        sums[1] += f64::from(u8::from(best == Some(label)));
    }
    Ok(Some(sums))
}

fn gradient(widths: &[usize], weights: &[f64], rows: Array2<f64>, (labels, of_rows): (&[usize], &[f64])) -> Vec<f64> {
    let layers = layers(widths, weights);
    let outputs = forward(&layers, rows);
    let mut sums = vec![0.0; weights.len() + 3];
    let mut end = weights.len();
    let mut slopes = outputs[layers.len()].clone();
    for (row, (&label, &weight)) in labels.iter().zip(of_rows).enumerate() {
        let mut row = slopes.row_mut(row);
        sums[end] -= weight * row[label].max(f64::MIN_POSITIVE).ln();
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(class, _)| class);
        sums[end + 1] += weight * f64::from(u8::from(best == Some(label)));
        row[label] -= 1.0;
        row.mapv_inplace(|slope| weight * slope);
    }
    if outputs[layers.len()].iter().any(|p| p.is_nan()) {
        sums[end] = f64::NAN;
    }
    sums[end + 2] = of_rows.iter().sum();
    for (place, (matrix, offsets)) in layers.iter().enumerate().rev() {
        let start = end - matrix.len() - offsets.len();
        let by_weight: Array2<f64> = outputs[place].t().dot(&slopes);
        let by_offset: Array1<f64> = slopes.sum_axis(Axis(0));
        let target = sums[start..end].iter_mut();
        target.zip(by_weight.iter().chain(&by_offset)).for_each(|(sum, part)| *sum = *part);
        end = start;
        if place > 0 {
            slopes = slopes.dot(&matrix.t());
            slopes.zip_mut_with(&outputs[place], |slope, output| *slope *= 1.0 - output * output);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let widths = widths(3, &[4, 5], 3);
        let count = weights_count(&widths);
        let mut generator = crate::learn::sample::generator(1, 2);
        let weights: Vec<f64> = (0..count).map(|_| crate::learn::sample::normal(&mut generator) * 0.5).collect();
        let rows = Array2::from_shape_fn((7, 3), |_| crate::learn::sample::normal(&mut generator));
        let labels = [0, 1, 2, 0, 1, 2, 2];
        let exact = gradient(&widths, &weights, rows.clone(), (&labels, &[1.0; 7]));
        for place in 0..count {
            let shifted = |by: f64| {
                let mut moved = weights.clone();
                moved[place] += by;
                gradient(&widths, &moved, rows.clone(), (&labels, &[1.0; 7]))[count]
            };
            let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!((slope - exact[place]).abs() < 1e-6, "{place}: {slope} and {}", exact[place]);
        }
    }
}
