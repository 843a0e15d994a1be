//! What a query is worth: its utility of quality and lag.

use serde::{Deserialize, Serialize};

/// How much worse a step below the minimum quality is than the same step above it is good. Ours: with an even line, as
/// the paper has it, the minimum would change nothing when sums are maximised.
const BELOW_MINIMUM: f64 = 4.0;

/// The goals of a query, and how much they count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goals {
    /// The least quality, 0 to 1.
    pub min_quality: f64,
    /// The most lag, in seconds.
    pub max_lag: f64,
    /// How much quality counts: the reward for a whole 1.
    pub quality_weight: f64,
    /// How much lag over its goal counts: the penalty for a second.
    pub lag_weight: f64,
}

/// The part of a lag goal that plans go up to. Ours: a plan that ends at the goal itself misses it whenever a machine
/// gives a little less than it promised, and the query then stays there, because lag below the goal earns nothing.
const PLANNED: f64 = 0.6;

impl Default for Goals {
    fn default() -> Goals {
        Goals { min_quality: 0.5, max_lag: 5.0, quality_weight: 1.0, lag_weight: 1.0 }
    }
}

impl Goals {
    /// The goals to plan with: some of the lag goal is kept for what goes wrong.
    pub fn planned(self) -> Goals {
        Goals { max_lag: self.max_lag * PLANNED, ..self }
    }

    /// Utility of a quality: its distance from the goal.
    pub fn of_quality(&self, quality: f64) -> f64 {
        let over = quality - self.min_quality;
        self.quality_weight * if over < 0.0 { over * BELOW_MINIMUM } else { over }
    }

    /// Utility of a lag: nothing within the goal, and a penalty beyond it.
    pub fn of_lag(&self, lag: f64) -> f64 {
        self.lag_weight * (self.max_lag - lag).min(0.0)
    }

    /// Utility of both.
    pub fn utility(&self, quality: f64, lag: f64) -> f64 {
        self.of_quality(quality) + self.of_lag(lag)
    }
}
