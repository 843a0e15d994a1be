//! Scores predictions: precision and recall of each end, and the accuracy.

use serde::Serialize;

use super::End;

/// Counts of predicted and actual ends (a confusion matrix).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Number of predictions, by the actual end and then by the predicted one.
    counts: [[u64; 4]; 4],
}

/// The scores of the predictions of one end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassScore {
    /// End that the scores are for.
    pub end: End,
    /// Number of times that the end occurred.
    pub count: u64,
    /// Fraction of its predictions that were right; `None` if it was never predicted.
    pub precision: Option<f64>,
    /// Fraction of its occurrences that were predicted; `None` if it never occurred.
    pub recall: Option<f64>,
}

impl Score {
    /// Counts a prediction.
    pub fn add(&mut self, predicted: End, end: End) {
        self.counts[end.place()][predicted.place()] += 1;
    }

    /// Returns the number of predictions.
    pub fn count(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Returns the fraction of predictions that were right; `None` without predictions.
    pub fn accuracy(&self) -> Option<f64> {
        let right: u64 = (0..4).map(|at| self.counts[at][at]).sum();
        share(right, self.count())
    }

    /// Returns the accuracy of predicting the most frequent end every time.
    pub fn most_frequent(&self) -> Option<f64> {
        share(self.counts.iter().map(|row| row.iter().sum()).max().unwrap_or(0), self.count())
    }

    /// Returns precision and recall of each end.
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
