//! The linear policy: features of a rung, human-readable weights, and the file of weights.

use serde::{Deserialize, Serialize};

use super::Observation;

/// A feature of a rung. Bitrates are fractions of the highest one, and times are in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name of the feature in the file of weights.
    pub name: &'static str,
    /// Description of the feature for readers of the file.
    pub about: &'static str,
}

/// Number of features.
pub const COUNT: usize = 8;

/// Features of the linear policy, in the order of their weights.
pub const FEATURES: [Feature; COUNT] = [
    Feature { name: "bitrate", about: "the bitrate of the rung" },
    Feature { name: "stall", about: "duration of the stall at the mean bandwidth" },
    Feature { name: "careful_stall", about: "the same at the mean bandwidth less the largest error of predictions" },
    Feature { name: "time", about: "duration of the download at the mean bandwidth; two chunks at most" },
    Feature { name: "time_of_buffer", about: "fraction of the buffer that the download takes; 2 at most" },
    Feature { name: "up", about: "increase of the bitrate against the chunk before" },
    Feature { name: "down", about: "decrease of the bitrate against the chunk before" },
    Feature { name: "bitrate_and_buffer", about: "the bitrate times the filled part of the buffer" },
];

/// Longest stall that counts, in chunks; a longer one counts as this.
const STALL_MAX: f64 = 5.0;

/// Weights of the linear policy, one for each of [`FEATURES`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weights(pub [f64; COUNT]);

/// Reason why a file of weights is invalid.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file is not TOML, or has no table of weights.
    #[error("the file of weights cannot be read")]
    Syntax(#[from] toml::de::Error),
    /// The weight of this feature is missing or is not a number.
    #[error("the weight '{0}' must be a number")]
    Weight(&'static str),
    /// The file has a weight of this name, which is not a feature.
    #[error("there is no feature '{0}'")]
    Unknown(String),
}

#[derive(Deserialize)]
struct File {
    weights: toml::Table,
}

impl Weights {
    /// Parses a file of weights: a table `[weights]` with a number for each feature.
    ///
    /// # Errors
    /// Returns an error if a feature is missing or unknown.
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

    /// Returns the text of the file of weights, with the lines `above` at its beginning and the description of each
    /// feature.
    pub fn write(&self, above: &[String]) -> String {
        let mut text: String = above.iter().map(|line| format!("# {line}\n")).collect();
        text.push_str("\n[weights]\n");
        for (feature, weight) in FEATURES.iter().zip(&self.0) {
            text.push_str(&format!("# {}\n{} = {weight:.3}\n", feature.about, feature.name));
        }
        text
    }

    /// Chooses the rung with the highest score. Among equals, and before the first measurement, it is the lowest.
    pub(super) fn choose(&self, view: &Observation<'_>) -> usize {
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

/// Returns the features of a rung.
fn features(view: &Observation<'_>, rung: usize) -> [f64; COUNT] {
    let highest = view.ladder.last().copied().unwrap_or(1.0).max(1e-9);
    let bitrate = |rung: usize| view.ladder.get(rung).map_or(0.0, |rate| rate / highest);
    let megabits = view.sizes.first().and_then(|sizes| sizes.get(rung)).map_or(0.0, |bytes| bytes * 8e-6);
    let chunk = view.chunk_seconds.max(1e-9);
    let time = |bandwidth: Option<f64>| megabits / bandwidth.unwrap_or(1e-6).max(1e-6) / chunk;
    let buffer = view.buffer / chunk;
    let (mean, robust_mean) = (time(view.measured.mean()), time(view.measured.robust_mean()));
    let change = bitrate(rung) - bitrate(view.last_rung);
    [
        bitrate(rung),
        (mean - buffer).clamp(0.0, STALL_MAX),
        (robust_mean - buffer).clamp(0.0, STALL_MAX),
        mean.min(2.0),
        (mean / buffer.max(1e-3)).min(2.0),
        change.max(0.0),
        (-change).max(0.0),
        bitrate(rung) * (view.buffer / view.buffer_limit.max(1e-9)).min(1.0),
    ]
}
