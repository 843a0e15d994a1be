//! Training data: rows of numbers, dense or sparse, each with a label.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, Slice};

/// A sparse matrix by rows, which stores only numbers other than zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparse {
    /// Start of each row in `columns` and `values`, and the end of the last row.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    width: usize,
}

impl Sparse {
    /// Creates a matrix without rows, of `width` columns.
    pub fn new(width: usize) -> Sparse {
        Sparse { starts: vec![0], columns: Vec::new(), values: Vec::new(), width }
    }

    /// Adds a row of columns and values. Columns beyond the width widen the matrix.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, f64)>) {
        for (column, value) in row {
            self.width = self.width.max(column as usize + 1);
            self.columns.push(column);
            self.values.push(value);
        }
        self.starts.push(self.columns.len());
    }

    /// Returns the columns and values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.starts[row]..self.starts[row + 1];
        self.columns[range.clone()].iter().map(|&c| c as usize).zip(self.values[range].iter().copied())
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn part(&self, from: usize, to: usize) -> Sparse {
        let (start, end) = (self.starts[from], self.starts[to]);
        Sparse {
            starts: self.starts[from..=to].iter().map(|s| s - start).collect(),
            columns: self.columns[start..end].to_vec(),
            values: self.values[start..end].to_vec(),
            width: self.width,
        }
    }
}

/// The features of many examples, one row each.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Matrix with all numbers.
    Dense(Array2<f64>),
    /// Matrix with the numbers other than zero.
    Sparse(Sparse),
}

/// Examples: features and labels. Without labels `labels` is empty.
///
/// For classification a label is the number of a class, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Features of the examples.
    pub rows: Rows,
    /// One label for each row, or none at all.
    pub labels: Vec<f64>,
    /// Number of examples that each row stands for; if empty, each row stands for one.
    pub weights: Vec<f64>,
}

impl Data {
    /// Creates dense examples.
    pub fn dense(rows: Array2<f64>, labels: Vec<f64>) -> Data {
        Data { rows: Rows::Dense(rows), labels, weights: Vec::new() }
    }

    /// Creates sparse examples.
    pub fn sparse(rows: Sparse, labels: Vec<f64>) -> Data {
        Data { rows: Rows::Sparse(rows), labels, weights: Vec::new() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Dense(rows) => rows.nrows(),
            Rows::Sparse(rows) => rows.rows(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of features of an example.
    pub fn width(&self) -> usize {
        match &self.rows {
            Rows::Dense(rows) => rows.ncols(),
            Rows::Sparse(rows) => rows.width,
        }
    }

    /// Returns the number of bytes that the numbers take.
    pub fn bytes(&self) -> u64 {
        let rows = match &self.rows {
            Rows::Dense(rows) => 8 * rows.len(),
            Rows::Sparse(rows) => 12 * rows.values.len() + 8 * rows.starts.len(),
        };
        (rows + 8 * self.labels.len()) as u64
    }

    /// Iterates over the features of each row.
    pub fn rows(&self) -> impl Iterator<Item = Vec<f64>> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// Returns the features of a row.
    pub(crate) fn row(&self, row: usize) -> Vec<f64> {
        match &self.rows {
            Rows::Dense(rows) => rows.row(row).to_vec(),
            Rows::Sparse(rows) => {
                let mut dense = vec![0.0; rows.width];
                rows.row(row).for_each(|(column, value)| dense[column] = value);
                dense
            }
        }
    }

    /// Returns the product of a row with a vector of one number for each feature.
    pub(crate) fn dot(&self, row: usize, vector: &[f64]) -> f64 {
        match &self.rows {
            Rows::Dense(rows) => rows.row(row).iter().zip(vector).map(|(x, v)| x * v).sum(),
            Rows::Sparse(rows) => rows.row(row).map(|(column, x)| x * vector[column]).sum(),
        }
    }

    /// Returns the number of examples that a row stands for.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// Returns the number of examples that all rows stand for.
    pub(crate) fn examples(&self) -> f64 {
        if self.weights.is_empty() { self.len() as f64 } else { self.weights.iter().sum() }
    }

    /// Returns these rows followed by others of the same width and kind.
    pub(crate) fn followed_by(&self, others: &Data) -> Data {
        let rows = match (&self.rows, &others.rows) {
            (Rows::Dense(first), Rows::Dense(then)) => {
                let mut rows = first.clone();
                // Both matrices have the same number of columns.
                rows.append(Axis(0), then.view()).map_or_else(|_| self.rows.clone(), |()| Rows::Dense(rows))
            }
            _ => {
                let mut rows = Sparse::new(self.width());
                for data in [self, others] {
                    for row in 0..data.len() {
                        match &data.rows {
                            Rows::Sparse(sparse) => rows.push(sparse.row(row).map(|(c, v)| (c as u32, v))),
                            Rows::Dense(_) => rows.push((0..).zip(data.row(row))),
                        }
                    }
                }
                Rows::Sparse(rows)
            }
        };
        let labels = [&self.labels[..], &others.labels].concat();
        let weights = [self, others].into_iter().flat_map(|data| (0..data.len()).map(|row| data.weight(row)));
        Data { rows, labels, weights: weights.collect() }
    }

    /// Returns the features as a dense matrix.
    pub(crate) fn to_dense(&self) -> Array2<f64> {
        match &self.rows {
            Rows::Dense(rows) => rows.clone(),
            Rows::Sparse(rows) => {
                let mut dense = Array2::zeros((rows.rows(), rows.width));
                for row in 0..rows.rows() {
                    for (column, value) in rows.row(row) {
                        dense[[row, column]] = value;
                    }
                }
                dense
            }
        }
    }

    /// Converts the examples to dense ones of at most `width` columns.
    pub(crate) fn densified(self, width: usize) -> Data {
        let Data { rows, labels, weights } = self;
        let rows = match rows {
            Rows::Dense(rows) => rows,
            Rows::Sparse(mut sparse) => {
                sparse.width = sparse.width.max(width);
                Data::sparse(sparse, Vec::new()).to_dense()
            }
        };
        Data { rows: Rows::Dense(rows), labels, weights }
    }

    /// Returns the examples of shard `shard` of `shards`, which are consecutive rows. Shards differ by one row at most.
    pub fn shard(&self, shard: usize, shards: usize) -> Data {
        let (from, to) = range(self.len(), shard, shards);
        let rows = match &self.rows {
            Rows::Dense(rows) => Rows::Dense(rows.slice_axis(Axis(0), Slice::from(from..to)).to_owned()),
            Rows::Sparse(rows) => Rows::Sparse(rows.part(from, to)),
        };
        let part = |numbers: &[f64]| if numbers.is_empty() { Vec::new() } else { numbers[from..to].to_vec() };
        Data { rows, labels: part(&self.labels), weights: part(&self.weights) }
    }

    /// Returns these rows, in this order.
    pub(crate) fn pick(&self, picked: &[usize]) -> Data {
        let rows = match &self.rows {
            Rows::Dense(rows) => Rows::Dense(rows.select(Axis(0), picked)),
            Rows::Sparse(rows) => {
                let mut part = Sparse::new(rows.width);
                picked.iter().for_each(|r| part.push(rows.row(*r).map(|(column, value)| (column as u32, value))));
                Rows::Sparse(part)
            }
        };
        let of = |numbers: &[f64]| {
            if numbers.is_empty() { Vec::new() } else { picked.iter().map(|row| numbers[*row]).collect() }
        };
        Data { rows, labels: of(&self.labels), weights: of(&self.weights) }
    }

    /// Returns the label of a row; 0 without labels.
    pub(crate) fn label(&self, row: usize) -> f64 {
        self.labels.get(row).copied().unwrap_or(0.0)
    }

    /// Returns the product with a vector of one number for each feature. Missing features count as zero.
    pub(crate) fn times(&self, vector: &[f64]) -> Array1<f64> {
        match &self.rows {
            Rows::Dense(rows) => rows.dot(&ArrayView1::from(&vector[..rows.ncols()])),
            Rows::Sparse(rows) => {
                (0..rows.rows()).map(|r| rows.row(r).map(|(c, v)| v * vector[c]).sum::<f64>()).collect()
            }
        }
    }

    /// Adds the rows, each times its number in `factors`, to `sum`.
    pub(crate) fn add_weighted(&self, factors: &Array1<f64>, sum: &mut [f64]) {
        match &self.rows {
            Rows::Dense(rows) => {
                for (total, part) in sum.iter_mut().zip(rows.t().dot(factors)) {
                    *total += part;
                }
            }
            Rows::Sparse(rows) => {
                for (row, factor) in factors.iter().enumerate() {
                    for (column, value) in rows.row(row) {
                        sum[column] += factor * value;
                    }
                }
            }
        }
    }

    /// Returns the dense features; `None` for sparse data.
    pub(crate) fn matrix(&self) -> Option<ArrayView2<'_, f64>> {
        match &self.rows {
            Rows::Dense(rows) => Some(rows.view()),
            Rows::Sparse(_) => None,
        }
    }
}

/// Returns the range of rows, out of `rows`, that belong to shard `shard` of `shards`: the first, and the one after the
/// last.
pub(crate) fn range(rows: usize, shard: usize, shards: usize) -> (usize, usize) {
    (rows * shard / shards, rows * (shard + 1) / shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Data, Data) {
        let dense = ndarray::array![[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]];
        let mut sparse = Sparse::new(3);
        sparse.push([(0, 1.0), (2, 2.0)]);
        sparse.push([(1, 3.0)]);
        sparse.push([(0, 4.0)]);
        let labels = vec![1.0, 2.0, 3.0];
        (Data::dense(dense, labels.clone()), Data::sparse(sparse, labels))
    }

    #[test]
    fn sparse_and_dense_are_the_same_numbers() {
        let (dense, sparse) = both();
        assert_eq!(sparse.to_dense(), dense.to_dense());
        let vector = [1.0, 10.0, 100.0];
        assert_eq!(dense.times(&vector), sparse.times(&vector));
        let factors = Array1::from(vec![1.0, 2.0, 3.0]);
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        dense.add_weighted(&factors, &mut a);
        sparse.add_weighted(&factors, &mut b);
        assert_eq!(a, b);
        assert_eq!(a, [13.0, 6.0, 2.0]);
    }

    #[test]
    fn shards_are_all_rows_once() {
        let (dense, sparse) = both();
        for data in [dense, sparse] {
            for shards in 1..6 {
                let parts: Vec<Data> = (0..shards).map(|s| data.shard(s, shards)).collect();
                let labels: Vec<f64> = parts.iter().flat_map(|p| p.labels.clone()).collect();
                assert_eq!(labels, data.labels);
                let rows: usize = parts.iter().map(Data::len).sum();
                assert_eq!(rows, data.len());
                let first = parts.iter().flat_map(|p| p.to_dense().column(0).to_vec()).collect::<Vec<_>>();
                assert_eq!(first, data.to_dense().column(0).to_vec());
            }
        }
    }
}
