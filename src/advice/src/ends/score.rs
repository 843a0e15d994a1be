//! How good predictions were: precision and recall of each end, and the share that is right.

use serde::Serialize;

use super::End;

/// Predictions against ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// By the end, and then by the prediction.
    counts: [[u64; 4]; 4],
}

/// How good the predictions of one end were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassScore {
    /// The end.
    pub end: End,
    /// How often it came.
    pub count: u64,
    /// Of those that were predicted, the share that came; none if it was never predicted.
    pub precision: Option<f64>,
    /// Of those that came, the share that was predicted; none if it never came.
    pub recall: Option<f64>,
}

impl Score {
    /// Counts a prediction.
    pub fn add(&mut self, predicted: End, end: End) {
        self.counts[end.place()][predicted.place()] += 1;
    }

    /// Number of predictions.
    pub fn count(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// The share of predictions that were right; none without predictions.
    pub fn accuracy(&self) -> Option<f64> {
        let right: u64 = (0..4).map(|at| self.counts[at][at]).sum();
        share(right, self.count())
    }

    /// The share that comes from predicting the most frequent end every time.
    pub fn most_frequent(&self) -> Option<f64> {
        share(self.counts.iter().map(|row| row.iter().sum()).max().unwrap_or(0), self.count())
    }

    /// Precision and recall of each end.
    pub fn classes(&self) -> [ClassScore; 4] {
        End::ALL.map(|end| {
            let at = end.place();
            let count = self.counts[at].iter().sum();
            let predicted = self.counts.iter().map(|row| row[at]).sum();
            let right = self.counts[at][at];
            ClassScore { end, count, precision: share(right, predicted), recall: share(right, count) }
        })
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
