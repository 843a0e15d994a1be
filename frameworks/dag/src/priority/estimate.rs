//! Estimates over all tasks of a stage from those that ran: count, sum and mean, with intervals. It runs nothing.
//!
//! The tasks that ran are a simple random sample without replacement of a finite population, so an interval shrinks to
//! nothing where all ran (Cochran, "Sampling Techniques", chapters 2 and 6).

use base::student;
use serde::{Deserialize, Serialize};

/// What one task found in its part of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Records.
    pub count: f64,
    /// The sum over its records.
    pub sum: f64,
}

/// An estimate, and an interval that holds the truth with the requested probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Half of the interval's width; infinite where one task alone says nothing of the others.
    pub half: f64,
}

impl Interval {
    /// Whether a value lies within it, ends included.
    pub fn holds(&self, value: f64) -> bool {
        (value - self.value).abs() <= self.half + 1e-9 * value.abs()
    }

    /// Half of the width as a part of the estimate; infinite if that is 0.
    pub fn relative(&self) -> f64 {
        if self.half == 0.0 { 0.0 } else { (self.half / self.value).abs() }
    }
}

/// What the tasks of a stage that ran have found. It keeps sums only, so it takes the same room for any number.
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
    /// A stage of this many tasks, none of which has run.
    pub fn new(tasks: u64) -> Sampled {
        Sampled { tasks, ..Sampled::default() }
    }

    /// A task has run. What is not a number is left out, and so are more tasks than the stage has.
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

    /// Tasks that have run.
    pub fn ran(&self) -> u64 {
        self.ran
    }

    /// Records of all tasks, within an interval of this confidence, such as 0.95; none before a task has run.
    pub fn count(&self, confidence: f64) -> Option<Interval> {
        self.total(self.count, self.counts, confidence)
    }

    /// The sum over all tasks.
    pub fn sum(&self, confidence: f64) -> Option<Interval> {
        self.total(self.sum, self.sums, confidence)
    }

    /// The mean over all records: sums over counts, of which both vary from task to task. None without records.
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

    /// Half of the interval of a mean over tasks.
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
