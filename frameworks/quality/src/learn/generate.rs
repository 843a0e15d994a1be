//! Generates data from a seed. Each shard is generated separately, so a worker generates only its own.

use std::collections::BTreeMap;

use ndarray::Array2;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::algorithm::Shape;
use super::data::{Data, Sparse, range};
use super::error::LearnError;
use super::sample::{gamma, generator, index, normal, uniform};

/// The kind of data to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// A label that depends linearly on correlated features, with noise.
    Linear,
    /// Two classes on both sides of a plane, mixed near it.
    Halves,
    /// A class for each of several clouds around random centres.
    Clouds,
    /// Classes that lie around each other in rings, in the first two features.
    Rings,
    /// Friedman's first function: a number, or two classes, that depends on the first five features in a nonlinear way.
    Bumps,
    /// Documents of 60 words, each about a few of several topics (as many as `classes`); features count words.
    Documents,
}

/// The seed and the sizes of generated data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    pub(crate) generator: Generator,
    pub(crate) shape: Shape,
    /// Amount of randomness in the labels; at 1 it is as large as the signal.
    pub(crate) noise: f64,
    pub(crate) seed: u64,
}

/// Generates the rows of shard `shard` of `shards`. `noise` is between 0 (the labels follow from the features) and
/// about 1. With classes 0 the features of `Clouds` are unlabelled.
///
/// # Errors
/// The generator cannot make data of this shape.
pub fn generate(
    kind: Generator,
    shape: Shape,
    noise: f64,
    seed: u64,
    shard: usize,
    shards: usize,
) -> Result<Data, LearnError> {
    generate_rows(kind, shape, noise, seed, range(shape.rows, shard, shards.max(1)))
}

/// Generates a range of rows, from the first of a pair up to but without the second. They may lie beyond those of the
/// shape.
///
/// # Errors
/// The generator cannot make data of this shape.
pub(crate) fn generate_rows(
    kind: Generator,
    shape: Shape,
    noise: f64,
    seed: u64,
    (from, to): (usize, usize),
) -> Result<Data, LearnError> {
    let recipe = Recipe { generator: kind, shape, noise, seed };
    recipe.check()?;
    let world = World::new(&recipe);
    let chance = |row: usize| generator(seed, 1_000 + row as u64);
    if kind == Generator::Documents {
        let mut rows = Sparse::new(shape.columns);
        (from..to).for_each(|row| rows.push(world.document(&recipe, &mut chance(row))));
        return Ok(Data::sparse(rows, Vec::new()));
    }
    let mut rows = Array2::zeros((to - from, shape.columns));
    let mut labels = Vec::with_capacity(to - from);
    // Each row has a random stream of its own, so the division into shards does not change it.
    for (place, mut row) in rows.rows_mut().into_iter().enumerate() {
        labels.push(world.row(&recipe, &mut chance(from + place), row.as_slice_mut().unwrap_or_default()));
    }
    Ok(Data::dense(rows, labels))
}

impl Recipe {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        let classes = self.shape.classes;
        if !(self.noise.is_finite() && (0.0..=100.0).contains(&self.noise)) {
            return Err(LearnError::invalid("noise", "must be between 0 and 100"));
        }
        match self.generator {
            Generator::Halves if classes != 2 => Err(LearnError::invalid("classes", "halves need exactly 2")),
            Generator::Rings if classes < 2 => Err(LearnError::invalid("classes", "rings need at least 2")),
            Generator::Clouds if classes < 1 => Err(LearnError::invalid("classes", "clouds need at least 1")),
            Generator::Bumps if classes != 0 && classes != 2 => {
                Err(LearnError::invalid("classes", "bumps need 0 (a number) or 2"))
            }
            Generator::Bumps if self.shape.columns < 5 => Err(LearnError::invalid("columns", "bumps need at least 5")),
            Generator::Documents if classes < 1 => Err(LearnError::invalid("classes", "documents need at least 1")),
            _ => Ok(()),
        }
    }
}

/// Number of words of a document.
const DOCUMENT_LENGTH: usize = 60;

/// Draws shares that add up to one from a Dirichlet distribution. The smaller `evenness`, the fewer shares are large.
fn shares(chance: &mut Pcg64, count: usize, evenness: f64) -> Vec<f64> {
    let weights: Vec<f64> = (0..count).map(|_| gamma(chance, evenness) + 1e-9).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

fn running_sum(shares: Vec<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |share| {
        sum += share;
        sum
    };
    shares.into_iter().map(add).collect()
}

/// The parameters that all rows have in common.
struct World {
    weights: Vec<f64>,
    /// Centres of clouds, or words of topics, concatenated.
    centres: Vec<f64>,
}

impl World {
    fn new(recipe: &Recipe) -> World {
        let mut chance = generator(recipe.seed, 0);
        let columns = recipe.shape.columns;
        let weights = (0..columns).map(|_| normal(&mut chance)).collect();
        let centres = match recipe.generator {
            Generator::Clouds => (0..recipe.shape.classes * columns).map(|_| 3.0 * normal(&mut chance)).collect(),
            // The words of each topic, as the running sum of their probabilities.
            Generator::Documents => {
                let topics = (0..recipe.shape.classes).map(|_| shares(&mut chance, columns, 0.1));
                topics.flat_map(running_sum).collect()
            }
            _ => Vec::new(),
        };
        World { weights, centres }
    }

    /// Fills a row, and returns its label.
    fn row(&self, recipe: &Recipe, chance: &mut Pcg64, row: &mut [f64]) -> f64 {
        match recipe.generator {
            Generator::Linear => self.output(chance, row) + recipe.noise * normal(chance),
            Generator::Halves => {
                let output = self.output(chance, row) / (row.len() as f64).sqrt();
                f64::from(u8::from(output + recipe.noise * normal(chance) > 0.0))
            }
            Generator::Clouds => {
                let class = index(chance, recipe.shape.classes);
                let centre = &self.centres[class * row.len()..];
                row.iter_mut().zip(centre).for_each(|(x, c)| *x = c + (1.0 + recipe.noise) * normal(chance));
                class as f64
            }
            Generator::Rings => {
                let class = index(chance, recipe.shape.classes);
                let radius = 1.0 + class as f64 + recipe.noise * normal(chance);
                let angle = std::f64::consts::TAU * uniform(chance);
                row.iter_mut().for_each(|x| *x = normal(chance));
                let place = [radius * angle.cos(), radius * angle.sin()];
                row.iter_mut().zip(place).for_each(|(x, p)| *x = p);
                class as f64
            }
            Generator::Bumps => {
                row.iter_mut().for_each(|x| *x = uniform(chance));
                let curved = 10.0 * (std::f64::consts::PI * row[0] * row[1]).sin() + 20.0 * (row[2] - 0.5).powi(2);
                let output = curved + 10.0 * row[3] + 5.0 * row[4] + recipe.noise * normal(chance);
                // About half of all rows lie above this threshold.
                if recipe.shape.classes == 2 { f64::from(u8::from(output > 14.4)) } else { output }
            }
            Generator::Documents => 0.0,
        }
    }

    /// Draws the words of a document, each with its count.
    fn document(&self, recipe: &Recipe, chance: &mut Pcg64) -> BTreeMap<u32, f64> {
        let columns = recipe.shape.columns;
        let mix = shares(chance, recipe.shape.classes, 0.2);
        let mut counts = BTreeMap::new();
        for _ in 0..DOCUMENT_LENGTH {
            let topic = super::sample::place(mix.iter().copied(), uniform(chance));
            let words = &self.centres[topic * columns..(topic + 1) * columns];
            let at = uniform(chance);
            let word = words.partition_point(|sum| *sum <= at).min(columns - 1);
            *counts.entry(word as u32).or_insert(0.0) += 1.0;
        }
        counts
    }

    /// Fills a row with features of which each is similar to its neighbour, and returns a weighted sum of them.
    fn output(&self, chance: &mut Pcg64, row: &mut [f64]) -> f64 {
        const LIKENESS: f64 = 0.6;
        let fresh = (1.0 - LIKENESS * LIKENESS).sqrt();
        let mut last = normal(chance);
        for x in row.iter_mut() {
            last = LIKENESS * last + fresh * normal(chance);
            *x = last;
        }
        1.0 + self.weights.iter().zip(row.iter()).map(|(w, x)| w * x).sum::<f64>()
    }
}
