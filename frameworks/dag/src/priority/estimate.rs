//! Estimates over all tasks of a stage from those that ran: count, sum and mean, with confidence intervals. It runs
//! nothing.
//!
//! The tasks that ran are a simple random sample without replacement of a finite population, so an interval shrinks to
//! nothing where all ran (Cochran, "Sampling Techniques", chapters 2 and 6).

use base::student;
use serde::{Deserialize, Serialize};

/// The result of one task for its part of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Number of records.
    pub count: f64,
    /// Sum over the records.
    pub sum: f64,
}

/// An estimate with an interval that contains the true value with the requested probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Estimated value.
    pub value: f64,
    /// Half of the interval's width; infinite if a single task ran, which says nothing of the others.
    pub half: f64,
}

impl Interval {
    /// Returns whether a value lies within the interval, ends included.
    pub fn holds(&self, value: f64) -> bool {
        (value - self.value).abs() <= self.half + 1e-9 * value.abs()
    }

    /// Returns half of the width as a fraction of the estimate; infinite if the estimate is 0.
    pub fn relative(&self) -> f64 {
        if self.half == 0.0 { 0.0 } else { (self.half / self.value).abs() }
    }
}

/// The results of the tasks of a stage that ran. It keeps only sums, so its size does not depend on their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    tasks: u64,
    ran: u64,
    /// Means, and sums of squared deviations and of their product, by Welford's method.
    count: f64,
    sum: f64,
    counts: f64,
    sums: f64,
    both: f64,
}

impl Sampled {
    /// Creates the results of a stage of this many tasks, none of which has run.
    pub fn new(tasks: u64) -> Sampled {
        Sampled { tasks, ..Sampled::default() }
    }

    /// Adds the result of a task. Results that are not finite are ignored, and so are more results than the stage has
    /// tasks.
    pub fn add(&mut self, found: Contribution) {
        if !found.count.is_finite() || !found.sum.is_finite() || self.ran >= self.tasks {
            return;
        }
        self.ran += 1;
        let n = self.ran as f64;
        let (count, sum) = (found.count - self.count, found.sum - self.sum);
        self.count += count / n;
        self.sum += sum / n;
        self.counts += count * (found.count - self.count);
        self.sums += sum * (found.sum - self.sum);
        self.both += count * (found.sum - self.sum);
    }

    /// Returns the number of tasks that have run.
    pub fn ran(&self) -> u64 {
        self.ran
    }

    /// Estimates the number of records of all tasks, with an interval of this confidence, such as 0.95; `None` before a
    /// task has run.
    pub fn count(&self, confidence: f64) -> Option<Interval> {
        self.total(self.count, self.counts, confidence)
    }

    /// Estimates the sum over all tasks.
    pub fn sum(&self, confidence: f64) -> Option<Interval> {
        self.total(self.sum, self.sums, confidence)
    }

    /// Estimates the mean over all records: the ratio of sums to counts, both of which vary from task to task. `None`
    /// without records.
    pub fn mean(&self, confidence: f64) -> Option<Interval> {
        if self.ran == 0 || self.count == 0.0 {
            return None;
        }
        let ratio = self.sum / self.count;
        let squares = self.sums - 2.0 * ratio * self.both + ratio * ratio * self.counts;
        let half = self.half(squares.max(0.0), confidence) / self.count.abs();
        Some(Interval { value: ratio, half })
    }

    fn total(&self, mean: f64, squares: f64, confidence: f64) -> Option<Interval> {
        let tasks = self.tasks as f64;
        (self.ran > 0).then(|| Interval { value: tasks * mean, half: tasks * self.half(squares, confidence) })
    }

    /// Returns half of the interval of a mean over tasks.
    fn half(&self, squares: f64, confidence: f64) -> f64 {
        if self.ran >= self.tasks {
            return 0.0;
        }
        if self.ran < 2 {
            return f64::INFINITY;
        }
        let n = self.ran as f64;
        let unseen = 1.0 - n / self.tasks as f64;
        student(confidence, self.ran - 1) * (squares / (n - 1.0) / n * unseen).sqrt()
    }
}
