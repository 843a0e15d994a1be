//! k-means: Lloyd's iterations from centres that k-means++ chooses in a sample.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::algorithm::Shape;
use super::data::Data;
use super::error::LearnError;
use super::learner::{Reader, Round, total};
use super::sample;

/// Number of sampled rows of a shard for each cluster: k-means++ needs some of every cloud.
const SAMPLED_PER_CLUSTER: usize = 4;
const CENTRES_MAX: usize = 4_000_000;

/// Hyperparameters of k-means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KMeansOptions {
    /// Number of clusters. 8 by default.
    pub clusters: usize,
    /// Seed of the first centres.
    pub seed: u64,
}

impl Default for KMeansOptions {
    fn default() -> KMeansOptions {
        KMeansOptions { clusters: 8, seed: 0 }
    }
}

impl KMeansOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        match self.clusters {
            1..=10_000 => Ok(()),
            _ => Err(LearnError::invalid("clusters", "must be between 1 and 10000")),
        }
    }

    pub(crate) fn check_shape(&self, shape: &Shape) -> Result<(), LearnError> {
        if self.clusters > shape.rows {
            return Err(LearnError::invalid("clusters", format!("more than there are rows, {}", shape.rows)));
        }
        if self.clusters.saturating_mul(shape.columns) > CENTRES_MAX {
            return Err(LearnError::invalid("clusters", format!("times columns is more than {CENTRES_MAX}")));
        }
        Ok(())
    }
}

const SAMPLE: f64 = 0.0;
const ASSIGN: f64 = 1.0;

/// Computes a round of one shard: a sample of its rows at first; then, for each cluster, the number and the sum of the
/// rows nearest to its centre, and at the end the sum of squared distances and the number of rows.
pub(crate) fn partial(clusters: usize, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let Some(rows) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let mut reader = Reader::new(parameters);
    if reader.one()? == SAMPLE {
        let wanted = (SAMPLED_PER_CLUSTER * clusters).min(rows.nrows());
        let picked = (0..wanted).map(|i| i * rows.nrows() / wanted);
        return Ok(picked.flat_map(|r| rows.row(r).to_vec()).collect());
    }
    let columns = rows.ncols();
    let centres = reader.take(clusters * columns)?;
    let mut sums = vec![0.0; clusters * (columns + 1) + 2];
    for (row, (cluster, distance)) in rows.rows().into_iter().zip(nearest(rows, centres, clusters)) {
        let place = cluster * (columns + 1);
        sums[place] += 1.0;
        sums[place + 1..].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        sums[clusters * (columns + 1)] += distance;
    }
    sums[clusters * (columns + 1) + 1] = rows.nrows() as f64;
    Ok(sums)
}

/// Returns the squared distances of a shard's rows to their nearest centres.
pub(crate) fn score(clusters: usize, parameters: &[f64], data: &Data) -> Result<Option<[f64; 3]>, LearnError> {
    let Some(rows) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let mut reader = Reader::new(parameters);
    if reader.one()? == SAMPLE {
        return Ok(None);
    }
    let centres = reader.take(clusters * rows.ncols())?;
    let distances = nearest(rows, centres, clusters).into_iter().map(|(_, distance)| distance);
    Ok(Some([distances.sum(), 0.0, rows.nrows() as f64]))
}

/// Returns the model that a round's parameters describe.
pub(crate) fn model_of(clusters: usize, shape: &Shape, parameters: &[f64]) -> Option<ClusterModel> {
    let mut reader = Reader::new(parameters);
    let is_model = reader.one().ok()? != SAMPLE;
    let centres = reader.take(clusters * shape.columns).ok().filter(|_| is_model)?;
    Some(ClusterModel { centres: centres.chunks_exact(shape.columns).map(<[f64]>::to_vec).collect() })
}

/// Returns the nearest centre of each row, and the squared distance to it.
fn nearest(rows: ArrayView2<'_, f64>, centres: &[f64], clusters: usize) -> Vec<(usize, f64)> {
    let columns = rows.ncols();
    let centre = |c: usize| ArrayView1::from(&centres[c * columns..(c + 1) * columns]);
    // |x - c|^2 = |x|^2 - 2 xc + |c|^2, and |x|^2 is the same for every centre.
    let matrix = Array2::from_shape_fn((columns, clusters), |(j, c)| centres[c * columns + j]);
    let lengths: Vec<f64> = (0..clusters).map(|c| centre(c).dot(&centre(c))).collect();
    let products = rows.dot(&matrix);
    let pick = |(row, products): (ArrayView1<'_, f64>, ArrayView1<'_, f64>)| {
        let far = |c: usize| lengths[c] - 2.0 * products[c];
        let best = (0..clusters).min_by(|a, b| far(*a).total_cmp(&far(*b))).unwrap_or(0);
        let exact: f64 = row.iter().zip(centre(best)).map(|(x, c)| (x - c) * (x - c)).sum();
        (best, exact)
    };
    rows.axis_iter(Axis(0)).zip(products.axis_iter(Axis(0))).map(pick).collect()
}

/// The state of a k-means training.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KMeans {
    options: KMeansOptions,
    columns: usize,
    /// Centres, row by row; empty before the sample has arrived.
    centres: Vec<f64>,
    iteration: u64,
}

impl KMeans {
    pub(crate) fn new(options: KMeansOptions, shape: Shape) -> KMeans {
        KMeans { options, columns: shape.columns, centres: Vec::new(), iteration: 0 }
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        if self.centres.is_empty() {
            return vec![SAMPLE];
        }
        std::iter::once(ASSIGN).chain(self.centres.iter().copied()).collect()
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        let (clusters, columns) = (self.options.clusters, self.columns);
        if self.centres.is_empty() {
            let sample: Vec<f64> = partials.iter().flatten().copied().collect();
            self.centres = plus_plus(&sample, columns, clusters, self.options.seed);
            return Ok(Round::Inner);
        }
        let sums = total(partials, clusters * (columns + 1) + 2)?;
        let (groups, rest) = sums.split_at(clusters * (columns + 1));
        let loss = rest[0] / rest[1].max(1.0);
        if !loss.is_finite() {
            return Err(LearnError::NotANumber { iteration: self.iteration, halvings: 0 });
        }
        for (group, centre) in groups.chunks_exact(columns + 1).zip(self.centres.chunks_exact_mut(columns)) {
            // A centre without nearest rows stays where it is.
            if group[0] > 0.0 {
                centre.iter_mut().zip(&group[1..]).for_each(|(c, sum)| *c = sum / group[0]);
            }
        }
        self.iteration += 1;
        Ok(Round::Iteration { iteration: self.iteration - 1, loss, accuracy: None, retried: false })
    }

    pub(crate) fn model(&self) -> Option<ClusterModel> {
        let centres = self.centres.chunks_exact(self.columns).map(<[f64]>::to_vec).collect();
        (self.iteration > 0).then_some(ClusterModel { centres })
    }
}

/// Chooses centres by k-means++ (Arthur and Vassilvitskii, 2007): each further centre is drawn by its squared distance
/// to those chosen so far. A sample with fewer different rows than clusters gives some centre twice.
fn plus_plus(sample: &[f64], columns: usize, clusters: usize, seed: u64) -> Vec<f64> {
    let mut chance = sample::generator(seed, 0);
    let rows: Vec<&[f64]> = sample.chunks_exact(columns).collect();
    let Some(mut newest) = rows.get(sample::index(&mut chance, rows.len())).copied() else {
        return vec![0.0; clusters * columns];
    };
    let mut centres = newest.to_vec();
    let mut distances = vec![f64::INFINITY; rows.len()];
    while centres.len() < clusters * columns {
        for (distance, row) in distances.iter_mut().zip(&rows) {
            let to_newest = row.iter().zip(newest).map(|(x, c)| (x - c) * (x - c)).sum();
            *distance = distance.min(to_newest);
        }
        let at = sample::uniform(&mut chance) * distances.iter().sum::<f64>();
        newest = rows[sample::place(distances.iter().copied(), at)];
        centres.extend(newest);
    }
    centres
}

/// A trained k-means model: the centres of clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterModel {
    /// One row for each cluster.
    pub centres: Vec<Vec<f64>>,
}

impl ClusterModel {
    /// Returns the number of the cluster whose centre is nearest.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let distance = |centre: &Vec<f64>| centre.iter().zip(row).map(|(c, x)| (c - x) * (c - x)).sum::<f64>();
        let distances = self.centres.iter().map(distance).enumerate();
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(cluster, _)| cluster as f64)
    }
}
