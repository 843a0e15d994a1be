//! The accepted risk of a shortage.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The accepted probability of a shortage, from 0.001 to 0.5.
///
/// For memory it is the fraction of tasks that need more than the proposal at some time of their life. For processors
/// it is the fraction of a task's time in which it would use more.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Risk(f64);

/// The error for a number that is no risk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid risk '{0}': expected a number from 0.001 to 0.5, such as 0.05")]
pub struct InvalidRisk(String);

impl Risk {
    /// Returns the risk as a fraction.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Returns the level of the percentile that must lie within the proposal: 0.95 for a risk of 0.05.
    pub fn level(self) -> f64 {
        1.0 - self.0
    }
}

impl Default for Risk {
    /// Returns a risk of 0.05.
    fn default() -> Risk {
        Risk(0.05)
    }
}

impl TryFrom<f64> for Risk {
    type Error = InvalidRisk;

    fn try_from(share: f64) -> Result<Risk, InvalidRisk> {
        if (0.001..=0.5).contains(&share) { Ok(Risk(share)) } else { Err(InvalidRisk(share.to_string())) }
    }
}

impl From<Risk> for f64 {
    fn from(risk: Risk) -> f64 {
        risk.0
    }
}

impl FromStr for Risk {
    type Err = InvalidRisk;

    fn from_str(text: &str) -> Result<Risk, InvalidRisk> {
        let share: f64 = text.parse().map_err(|_| InvalidRisk(text.to_owned()))?;
        Risk::try_from(share).map_err(|_| InvalidRisk(text.to_owned()))
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
