//! Inputs of a tuner: its configuration, and finished tasks. It decides nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A task that finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Machine on which the task ran.
    pub machine: &'a str,
    /// Size of the task's input, as [`Tuner::next_size`](super::Tuner::next_size) returned it.
    pub size: u64,
    /// Time from the task's launch until it finished, including its start.
    pub duration: Duration,
}

/// Settings of a [`Tuner`](super::Tuner). Sizes are in units of the input: bytes, lines or records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SizingConfig {
    /// Smallest size, at least 1.
    pub least: u64,
    /// Largest size.
    pub most: u64,
    /// Size at the start.
    pub start: u64,
    /// Distance by which the first wave moves the logarithm of the size.
    pub step: f64,
    /// Distance of an explorer's size from the others', as a logarithm.
    pub explore: f64,
    /// Decay of Adam's mean of slopes. Adam's usual 0.9 is for thousands of steps; a stage has tens of waves.
    pub beta1: f64,
    /// Decay of Adam's mean of squared slopes.
    pub beta2: f64,
    /// Number of parts into which the input of a slot is divided before the first wave has ended. So the first wave
    /// takes no more than this fraction of the input.
    pub first_parts: u32,
}

impl Default for SizingConfig {
    fn default() -> SizingConfig {
        SizingConfig {
            least: 1,
            most: u64::MAX / 4,
            start: super::BLOCK,
            step: 4_f64.ln(),
            explore: 0.35,
            beta1: 0.5,
            beta2: 0.9,
            first_parts: 32,
        }
    }
}

/// A rule that a [`SizingConfig`] breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid '{field}': {rule}")]
pub struct SizingError {
    /// Name of the field.
    pub field: &'static str,
    /// Rule of the field.
    pub rule: &'static str,
}

impl SizingConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// The first field that breaks its rule.
    pub fn validate(&self) -> Result<(), SizingError> {
        let rules = [
            (self.least >= 1, "least", "must be 1 or more"),
            (self.most >= self.least && self.most <= u64::MAX / 4, "most", "must be 'least' or more, below 2^62"),
            ((self.least..=self.most).contains(&self.start), "start", "must be between 'least' and 'most'"),
            ((0.05..=3.0).contains(&self.step), "step", "must be between 0.05 and 3"),
            ((0.05..=1.0).contains(&self.explore), "explore", "must be between 0.05 and 1"),
            ((0.0..1.0).contains(&self.beta1), "beta1", "must be 0 or more, and below 1"),
            ((0.0..1.0).contains(&self.beta2), "beta2", "must be 0 or more, and below 1"),
            ((1..=1000).contains(&self.first_parts), "first_parts", "must be between 1 and 1000"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, field, rule)) => Err(SizingError { field, rule }),
            None => Ok(()),
        }
    }

    /// Returns the configuration with invalid values corrected.
    pub(super) fn sane(self) -> SizingConfig {
        let usual = SizingConfig::default();
        let least = self.least.clamp(1, u64::MAX / 4);
        let most = self.most.clamp(least, u64::MAX / 4);
        let within = |value: f64, low: f64, high: f64, usual: f64| {
            if value.is_finite() { value.clamp(low, high) } else { usual }
        };
        SizingConfig {
            least,
            most,
            start: self.start.clamp(least, most),
            step: within(self.step, 0.05, 3.0, usual.step),
            explore: within(self.explore, 0.05, 1.0, usual.explore),
            beta1: within(self.beta1, 0.0, 0.999, usual.beta1),
            beta2: within(self.beta2, 0.0, 0.9999, usual.beta2),
            first_parts: self.first_parts.clamp(1, 1000),
        }
    }
}
