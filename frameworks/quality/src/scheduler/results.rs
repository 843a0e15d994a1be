//! Results of a job so far, which are shown to its user, and persisted.

use serde::{Deserialize, Serialize};

use super::status::Point;
use crate::learn::Score;
use crate::predict::TimeModel;

/// Maximum number of points of a job's history; beyond it, every other point is removed.
const HISTORY_MAX: usize = 600;
/// Maximum number of points that are saved for a restart.
const SAVED_POINTS_MAX: usize = 100;

/// The losses and the cores of a job so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) iteration: Option<u64>,
    pub(super) loss: Option<f64>,
    pub(super) accuracy: Option<f64>,
    pub(super) validation: Option<Score>,
    pub(super) first_loss: Option<f64>,
    /// Normalised loss.
    pub(super) left: Option<f64>,
    /// Seconds from the job's submission to its end; `None` before the end.
    pub(super) seconds: Option<f64>,
    /// Median error of predictions.
    pub(super) error: Option<f64>,
    /// Times of iterations.
    pub(super) time: TimeModel,
    /// Mean share of the rows with which iterations compute, for a job on critical rows.
    pub(super) rows: Option<f64>,
    pub(super) history: Vec<Point>,
    /// Number of iterations between two points of the history; 0 before the first.
    stride: u64,
}

impl Results {
    /// Adds a point to the history.
    pub(super) fn remember(&mut self, point: Point) {
        self.stride = self.stride.max(1);
        if point.iteration.is_multiple_of(self.stride) {
            self.history.push(point);
            self.thin(HISTORY_MAX);
        }
    }

    /// Truncates the history to this many iterations; later ones will be repeated.
    pub(super) fn go_back(&mut self, iterations: u64) {
        while self.history.pop_if(|point| point.iteration >= iterations).is_some() {}
    }

    /// Returns the results to save: the same with fewer points, including the newest.
    pub(super) fn to_save(&self) -> Results {
        let mut saved = self.clone();
        let newest = saved.history.last().copied();
        saved.thin(SAVED_POINTS_MAX);
        saved.history.extend(newest.filter(|n| saved.history.last() != Some(n)));
        saved
    }

    fn thin(&mut self, most: usize) {
        while self.history.len() > most {
            self.stride = self.stride.max(1) * 2;
            let stride = self.stride;
            self.history.retain(|point| point.iteration.is_multiple_of(stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(iteration: u64) -> Point {
        let seconds = iteration as f64;
        Point { seconds, iteration, loss: 1.0, validation_loss: None, normalised: None, cores: 1.0, rows: None }
    }

    #[test]
    fn a_long_history_is_thinned_out_from_its_first_to_its_newest_point() {
        let mut results = Results::default();
        (0..10_001).for_each(|i| results.remember(point(i)));
        assert!((HISTORY_MAX / 2..=HISTORY_MAX).contains(&results.history.len()));
        let mut saved = results.to_save();
        assert!((SAVED_POINTS_MAX / 2..=SAVED_POINTS_MAX + 1).contains(&saved.history.len()));
        for history in [&results.history, &saved.history] {
            assert_eq!(history[0], point(0));
            assert!(history.windows(2).all(|w| w[0].iteration < w[1].iteration));
        }
        assert_eq!(saved.history.last(), results.history.last());
        saved.go_back(101);
        assert!(saved.history.iter().all(|p| p.iteration <= 100));
        // Restored results continue with the same interval.
        (101..20_000).for_each(|i| saved.remember(point(i)));
        assert!(
            saved.history.len() <= HISTORY_MAX && saved.history.windows(2).all(|w| w[0].iteration < w[1].iteration)
        );
    }
}
