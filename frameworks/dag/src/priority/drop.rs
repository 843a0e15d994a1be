//! Selects the tasks of a stage that are dropped. It knows no classes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The fraction of a stage's tasks that is dropped, in thousandths; below 1,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub struct DropRatio(u32);

/// The error for a number that is no drop ratio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid part of dropped tasks '{0}': must be below 1,000 thousandths")]
pub struct DropError(u32);

impl DropRatio {
    /// No task is dropped.
    pub const NONE: DropRatio = DropRatio(0);

    /// Creates the ratio for this many thousandths.
    ///
    /// # Errors
    /// The ratio is 1,000 thousandths or more.
    pub fn new(thousandths: u32) -> Result<DropRatio, DropError> {
        match thousandths {
            0..1000 => Ok(DropRatio(thousandths)),
            more => Err(DropError(more)),
        }
    }

    /// Returns the ratio in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// Returns the ratio as a fraction of 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// Returns how many of `tasks` tasks run: at least one, if there is one.
    pub fn kept(self, tasks: u32) -> u32 {
        let kept = (u64::from(tasks) * u64::from(1000 - self.0)).div_ceil(1000);
        // The result is at most `tasks`.
        kept as u32
    }

    /// Returns the numbers of the dropped tasks, ascending. Each set of that size is equally probable, so the tasks
    /// that run are a random sample. The same seed drops the same tasks.
    pub fn dropped(self, tasks: u32, seed: u64) -> Vec<u32> {
        let mut left = tasks - self.kept(tasks);
        let mut state = base::scramble(seed);
        let mut dropped = Vec::with_capacity(left as usize);
        // Selection sampling (Knuth, volume 2, algorithm S).
        for task in 0..tasks {
            state = state.wrapping_add(base::GAMMA);
            let chance = (base::scramble(state) >> 11) as f64 / (1_u64 << 53) as f64;
            if chance * f64::from(tasks - task) < f64::from(left) {
                dropped.push(task);
                left -= 1;
            }
        }
        dropped
    }
}

impl fmt::Display for DropRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / 10.0)
    }
}

impl TryFrom<u32> for DropRatio {
    type Error = DropError;

    fn try_from(thousandths: u32) -> Result<DropRatio, DropError> {
        DropRatio::new(thousandths)
    }
}

impl From<DropRatio> for u32 {
    fn from(ratio: DropRatio) -> u32 {
        ratio.0
    }
}
