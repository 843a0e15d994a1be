//! The linear policy: features of a rung, weights that can be read, and their file.

use serde::{Deserialize, Serialize};

use super::View;

/// What is examined. Bitrates are parts of the highest one, times are in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name in the file of weights.
    pub name: &'static str,
    /// What it is, for readers.
    pub about: &'static str,
}

/// How many features there are.
pub const COUNT: usize = 8;

/// The features, in the order of their weights.
pub const FEATURES: [Feature; COUNT] = [
    Feature { name: "bitrate", about: "the bitrate of the rung" },
    Feature { name: "stall", about: "for how long the video would stand, at the mean bandwidth" },
    Feature { name: "careful_stall", about: "the same at the mean bandwidth less the largest error of predictions" },
    Feature { name: "time", about: "how long the download would take, at the mean bandwidth; two chunks at most" },
    Feature { name: "time_of_buffer", about: "the part of the buffer that the download would take; 2 at most" },
    Feature { name: "up", about: "by how much the bitrate is above the one before" },
    Feature { name: "down", about: "by how much it is below" },
    Feature { name: "bitrate_and_buffer", about: "the bitrate times the filled part of the buffer" },
];

/// A stall that is longer counts no more, in chunks.
const STALL_MAX: f64 = 5.0;

/// Weights, one for each of [`FEATURES`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weights(pub [f64; COUNT]);

/// A file of weights cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// It is not TOML, or has no table of weights.
    #[error("the file of weights cannot be read")]
    Syntax(#[from] toml::de::Error),
    /// A weight is missing or no number.
    #[error("the weight '{0}' must be a number")]
    Weight(&'static str),
    /// It has a weight that no feature has.
    #[error("there is no feature '{0}'")]
    Unknown(String),
}

#[derive(Deserialize)]
struct File {
    weights: toml::Table,
}

impl Weights {
    /// Reads a file: a table `[weights]` with a number for each feature.
    ///
    /// # Errors
    /// A feature is missing or unknown.
    pub fn read(text: &str) -> Result<Weights, WeightsError> {
        let File { mut weights } = toml::from_str(text)?;
        let mut all = [0.0; COUNT];
        for (feature, weight) in FEATURES.iter().zip(&mut all) {
            let value = weights.remove(feature.name);
            let number = value.and_then(|value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64)));
            *weight = number.filter(|number| number.is_finite()).ok_or(WeightsError::Weight(feature.name))?;
        }
        match weights.keys().next() {
            Some(name) => Err(WeightsError::Unknown(name.clone())),
            None => Ok(Weights(all)),
        }
    }

    /// The file, with what each feature means and these lines above.
    pub fn write(&self, above: &[String]) -> String {
        let mut text: String = above.iter().map(|line| format!("# {line}\n")).collect();
        text.push_str("\n[weights]\n");
        for (feature, weight) in FEATURES.iter().zip(&self.0) {
            text.push_str(&format!("# {}\n{} = {weight:.3}\n", feature.about, feature.name));
        }
        text
    }

    /// The rung with the highest score; the lowest of equals, and before anything was measured.
    pub(super) fn choose(&self, view: &View<'_>) -> usize {
        if view.measured.mean().is_none() {
            return 0;
        }
        let mut best = (f64::NEG_INFINITY, 0);
        for rung in 0..view.ladder.len() {
            let score: f64 = features(view, rung).iter().zip(&self.0).map(|(feature, weight)| feature * weight).sum();
            if score > best.0 {
                best = (score, rung);
            }
        }
        best.1
    }
}

/// The features of a rung.
fn features(view: &View<'_>, rung: usize) -> [f64; COUNT] {
    let highest = view.ladder.last().copied().unwrap_or(1.0).max(1e-9);
    let bitrate = |rung: usize| view.ladder.get(rung).map_or(0.0, |rate| rate / highest);
    let megabits = view.sizes.first().and_then(|sizes| sizes.get(rung)).map_or(0.0, |bytes| bytes * 8e-6);
    let chunk = view.chunk_seconds.max(1e-9);
    let time = |bandwidth: Option<f64>| megabits / bandwidth.unwrap_or(1e-6).max(1e-6) / chunk;
    let buffer = view.buffer / chunk;
    let (mean, careful) = (time(view.measured.mean()), time(view.measured.careful()));
    let change = bitrate(rung) - bitrate(view.last_rung);
    [
        bitrate(rung),
        (mean - buffer).clamp(0.0, STALL_MAX),
        (careful - buffer).clamp(0.0, STALL_MAX),
        mean.min(2.0),
        (mean / buffer.max(1e-3)).min(2.0),
        change.max(0.0),
        (-change).max(0.0),
        bitrate(rung) * (view.buffer / view.buffer_limit.max(1e-9)).min(1.0),
    ]
}
