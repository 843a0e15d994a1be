//! Data from a seed: each shard is made by itself, so that a worker makes only what it works on.

use ndarray::Array2;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::algorithm::Shape;
use super::data::{Data, range};
use super::error::LearnError;
use super::sample::{generator, normal, uniform};

/// What kind of data to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// A number that depends linearly on correlated features, with noise.
    Linear,
    /// Two classes on both sides of a plane, mixed near it.
    Halves,
    /// A class for each of several clouds around random centres.
    Clouds,
    /// Classes that lie around each other in rings, in the first two features.
    Rings,
}

/// A seed and the sizes of what to make of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    pub(crate) generator: Generator,
    pub(crate) shape: Shape,
    /// How much chance there is in the labels; 1 is as much as there is order.
    pub(crate) noise: f64,
    pub(crate) seed: u64,
}

/// The rows of shard `shard` of `shards` of data of this kind. `noise` is between 0 (the labels follow from the
/// features) and about 1; for classes 0 features of `Clouds` are unlabelled.
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
    Recipe { generator: kind, shape, noise, seed }.check()?;
    let (from, to) = range(shape.rows, shard, shards.max(1));
    let recipe = Recipe { generator: kind, shape, noise, seed };
    let mut rows = Array2::zeros((to - from, shape.columns));
    let mut labels = Vec::with_capacity(to - from);
    let world = World::new(&recipe);
    // Each row has its own stream of chance: how the data is cut into shards does not change it.
    for (place, mut row) in rows.rows_mut().into_iter().enumerate() {
        let mut chance = generator(seed, 1_000 + (from + place) as u64);
        labels.push(world.row(&recipe, &mut chance, row.as_slice_mut().unwrap_or_default()));
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
            Generator::Halves if classes != 2 => Err(LearnError::invalid("classes", "halves are 2")),
            Generator::Rings if classes < 2 => Err(LearnError::invalid("classes", "rings are at least 2")),
            Generator::Clouds if classes < 1 => Err(LearnError::invalid("classes", "clouds are at least 1")),
            _ => Ok(()),
        }
    }
}

/// What all rows have in common.
struct World {
    weights: Vec<f64>,
    centres: Vec<f64>,
}

impl World {
    fn new(recipe: &Recipe) -> World {
        let mut chance = generator(recipe.seed, 0);
        let columns = recipe.shape.columns;
        let weights = (0..columns).map(|_| normal(&mut chance)).collect();
        let centres = match recipe.generator {
            Generator::Clouds => (0..recipe.shape.classes * columns).map(|_| 3.0 * normal(&mut chance)).collect(),
            _ => Vec::new(),
        };
        World { weights, centres }
    }

    /// Fills a row, and gives its label.
    fn row(&self, recipe: &Recipe, chance: &mut Pcg64, row: &mut [f64]) -> f64 {
        match recipe.generator {
            Generator::Linear => self.output(chance, row) + recipe.noise * normal(chance),
            Generator::Halves => {
                let output = self.output(chance, row) / (row.len() as f64).sqrt();
                f64::from(u8::from(output + recipe.noise * normal(chance) > 0.0))
            }
            Generator::Clouds => {
                let class = super::sample::index(chance, recipe.shape.classes);
                let centre = &self.centres[class * row.len()..];
                row.iter_mut().zip(centre).for_each(|(x, c)| *x = c + (1.0 + recipe.noise) * normal(chance));
                class as f64
            }
            Generator::Rings => {
                let class = super::sample::index(chance, recipe.shape.classes);
                let radius = 1.0 + class as f64 + recipe.noise * normal(chance);
                let angle = std::f64::consts::TAU * uniform(chance);
                row.iter_mut().for_each(|x| *x = normal(chance));
                let place = [radius * angle.cos(), radius * angle.sin()];
                row.iter_mut().zip(place).for_each(|(x, p)| *x = p);
                class as f64
            }
        }
    }

    /// Fills a row with features of which each is like its neighbour, and gives a weighted sum of them.
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
