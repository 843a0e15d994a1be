//! Classifies an object as a kind of vehicle or a person, with the perceptron of the framework `quality`, trained on
//! generated scenes.
//!
//! The classifier is any [`Classify`]; this module only prepares the picture for it.

use std::sync::OnceLock;

use ndarray::Array2;
use quality::learn::{LearnError, Perceptron, PerceptronOptions};

use super::softmax::{Classify, Softmax};
use crate::frame::{Frame, Rect};
use crate::random::SplitMix64;
use crate::scene::{Kind, Renderer, SceneOptions, Truth};

/// Columns and rows of the grid to which an object is sampled.
const GRID: (usize, usize) = (10, 16);

/// Number of passes over the examples; the number of steps in each follows.
const ITERATIONS: u64 = 40;
const STEPS: u32 = 4;

/// The perceptron as a classifier of pictures.
struct Net(Perceptron);

impl Classify for Net {
    fn probabilities(&self, features: &[f32]) -> Vec<f32> {
        let row: Vec<f64> = features.iter().map(|f| f64::from(*f)).collect();
        self.0.probabilities(&row).into_iter().map(|p| p as f32).collect()
    }
}

/// A classifier of the kind of an object.
pub struct KindReader {
    model: Box<dyn Classify>,
}

impl std::fmt::Debug for KindReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KindReader")
    }
}

impl KindReader {
    /// Creates a reader with a trained classifier whose classes are numbered as [`Kind::ALL`].
    pub fn with(model: Box<dyn Classify>) -> KindReader {
        KindReader { model }
    }

    /// Returns the process-wide reader, which is trained at the first call.
    pub fn get() -> &'static KindReader {
        static READER: OnceLock<KindReader> = OnceLock::new();
        READER.get_or_init(|| {
            let examples = KindReader::examples(5);
            match KindReader::train(&examples) {
                Ok(reader) => reader,
                // Only rules about sizes can reject the examples, which are always the same.
                Err(_) => KindReader::with(Box::new(Softmax::train(&examples, Kind::ALL.len(), 12, 5))),
            }
        })
    }

    /// Creates a reader whose perceptron is trained on these examples.
    ///
    /// # Errors
    /// Returns an error if the examples break a rule of the perceptron.
    pub fn train(examples: &[(Vec<f32>, usize)]) -> Result<KindReader, LearnError> {
        let width = examples.first().map_or(0, |(features, _)| features.len());
        let value = |(row, column): (usize, usize)| f64::from(examples[row].0.get(column).copied().unwrap_or(0.0));
        let rows = Array2::from_shape_fn((examples.len(), width), value);
        let labels: Vec<usize> = examples.iter().map(|(_, class)| *class).collect();
        let options = PerceptronOptions { hidden: vec![16], steps: STEPS, seed: 5, ..Default::default() };
        let trained = Perceptron::train(rows, &labels, Kind::ALL.len(), &options, ITERATIONS)?;
        Ok(KindReader::with(Box::new(Net(trained))))
    }

    /// Returns features and classes for training: objects of generated scenes, with slightly displaced boxes.
    pub fn examples(seed: u64) -> Vec<(Vec<f32>, usize)> {
        let mut rng = SplitMix64::new(seed);
        let mut examples = Vec::new();
        for scene in 0..3 {
            let options = SceneOptions {
                seed: seed * 1000 + scene,
                width: 320,
                height: 180,
                people_per_minute: 20.0,
                vehicles_per_minute: 120.0,
                ..Default::default()
            };
            let Ok(truth) = Truth::plan(&options) else { continue };
            let renderer = Renderer::new(truth);
            for number in (0..500).step_by(20) {
                let frame = renderer.frame(number);
                let seconds = number as f64 / options.fps;
                for (object, place) in renderer.truth().visible(seconds) {
                    let whole = place.y > 0.01 && place.y + place.h < 0.99;
                    if !whole {
                        continue;
                    }
                    let mut off = |by: f32| rng.between(-1.0, 1.0) as f32 * by;
                    let place = place.moved(off(0.008), off(0.012));
                    let place = Rect { w: place.w * (1.0 + off(0.08)), h: place.h * (1.0 + off(0.08)), ..place };
                    let class = Kind::ALL.iter().position(|k| *k == object.kind).unwrap_or(0);
                    examples.push((features(&frame, &place), class));
                }
            }
        }
        examples
    }

    /// Returns the kind of the object in this box, and its probability.
    pub fn read(&self, frame: &Frame, place: &Rect) -> (Kind, f32) {
        let (class, probability) = self.model.best(&features(frame, place));
        (Kind::ALL.get(class).copied().unwrap_or(Kind::Car), probability)
    }
}

/// Returns the brightness in a grid over the box, relative to its mean, and the size of the box.
fn features(frame: &Frame, place: &Rect) -> Vec<f32> {
    let (columns, rows) = GRID;
    let (w, h) = (frame.width() as f32, frame.height() as f32);
    let mut grid = Vec::with_capacity(columns * rows + 2);
    for row in 0..rows {
        for column in 0..columns {
            let x = (place.x + place.w * (column as f32 + 0.5) / columns as f32) * w;
            let y = (place.y + place.h * (row as f32 + 0.5) / rows as f32) * h;
            let (x, y) = ((x.max(0.0) as usize).min(frame.width() - 1), (y.max(0.0) as usize).min(frame.height() - 1));
            grid.push(f32::from(frame.y[y * frame.width() + x]) / 255.0);
        }
    }
    let mean = grid.iter().sum::<f32>() / grid.len() as f32;
    grid.iter_mut().for_each(|v| *v -= mean);
    grid.push(place.w * 10.0);
    grid.push(place.h * 4.0);
    grid
}
