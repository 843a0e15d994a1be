//! The utility of a query, as a function of quality and lag.

use serde::{Deserialize, Serialize};

/// Factor by which quality below the minimum counts more than quality above it. It is tepui's: with the paper's uniform
/// slope the minimum would have no effect when sums are maximized.
const BELOW_MINIMUM: f64 = 4.0;

/// The goals of a query, and their weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goals {
    /// Least quality, 0 to 1.
    pub min_quality: f64,
    /// Largest lag, in seconds.
    pub max_lag: f64,
    /// Weight of quality: the reward for a quality of 1.
    pub quality_weight: f64,
    /// Weight of lag over its goal: the penalty for each second.
    pub lag_weight: f64,
}

/// Fraction of the lag goal that plans use. It is tepui's: a plan that ends at the goal itself misses it whenever a
/// machine is a little slower than promised, and the query then stays there, because lag below the goal earns nothing.
const PLANNED: f64 = 0.6;

impl Default for Goals {
    fn default() -> Goals {
        Goals { min_quality: 0.5, max_lag: 5.0, quality_weight: 1.0, lag_weight: 1.0 }
    }
}

impl Goals {
    /// Returns the goals for planning, with a margin of the lag goal for errors.
    pub fn planned(self) -> Goals {
        Goals { max_lag: self.max_lag * PLANNED, ..self }
    }

    /// Returns the utility of a quality: its weighted distance from the goal.
    pub fn of_quality(&self, quality: f64) -> f64 {
        let over = quality - self.min_quality;
        self.quality_weight * if over < 0.0 { over * BELOW_MINIMUM } else { over }
    }

    /// Returns the utility of a lag: 0 within the goal, and a penalty beyond it.
    pub fn of_lag(&self, lag: f64) -> f64 {
        self.lag_weight * (self.max_lag - lag).min(0.0)
    }

    /// Returns the sum of both utilities.
    pub fn utility(&self, quality: f64, lag: f64) -> f64 {
        self.of_quality(quality) + self.of_lag(lag)
    }
}
