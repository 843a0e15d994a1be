//! Mean and deviation of each feature, which make features of different units comparable.

use serde::{Deserialize, Serialize};

use super::data::{Data, Rows};

/// Minimum deviation of a feature that is scaled. Scaling a feature that hardly varies would amplify noise.
const DEVIATION_MIN: f64 = 1e-9;

/// The mean and the deviation by which features are scaled to mean 0 and deviation 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scaling {
    pub(crate) means: Vec<f64>,
    pub(crate) deviations: Vec<f64>,
}

/// Returns the number of numbers that [`moments`] returns for data of this width.
pub(crate) fn moments_width(columns: usize) -> usize {
    1 + 2 * columns
}

/// Returns the number of rows, each feature's sum, and each feature's sum of squares.
pub(crate) fn moments(data: &Data) -> Vec<f64> {
    let columns = data.width();
    let mut moments = vec![0.0; moments_width(columns)];
    moments[0] = data.len() as f64;
    let (sums, squares) = moments[1..].split_at_mut(columns);
    let mut add = |column: usize, value: f64| {
        sums[column] += value;
        squares[column] += value * value;
    };
    match &data.rows {
        Rows::Dense(rows) => rows.indexed_iter().for_each(|((_, column), value)| add(column, *value)),
        Rows::Sparse(rows) => (0..data.len()).flat_map(|r| rows.row(r)).for_each(|(c, v)| add(c, v)),
    }
    moments
}

impl Scaling {
    /// Computes the scaling from the sum of all shards' [`moments`].
    pub(crate) fn from_moments(total: &[f64]) -> Scaling {
        let columns = (total.len() - 1) / 2;
        let rows = total[0].max(1.0);
        let means: Vec<f64> = total[1..=columns].iter().map(|s| s / rows).collect();
        let squares = total[1 + columns..].iter().map(|s| s / rows);
        let deviation = |(square, mean): (f64, &f64)| {
            let deviation = (square - mean * mean).max(0.0).sqrt();
            if deviation > DEVIATION_MIN * (1.0 + mean.abs()) { deviation } else { 1.0 }
        };
        let deviations = squares.zip(&means).map(deviation).collect();
        Scaling { means, deviations }
    }

    /// Returns a scaled row.
    pub(crate) fn apply(&self, row: &[f64]) -> Vec<f64> {
        row.iter().zip(&self.means).zip(&self.deviations).map(|((x, m), d)| (x - m) / d).collect()
    }
}
