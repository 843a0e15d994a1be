//! Which tasks of a stage do not run. It knows no classes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The part of a stage's tasks that does not run, in thousandths; below all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub struct DropRatio(u32);

/// A number is not a share of tasks that can be dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid part of dropped tasks '{0}': must be below 1,000 thousandths")]
pub struct DropError(u32);

impl DropRatio {
    /// All tasks run.
    pub const NONE: DropRatio = DropRatio(0);

    /// This many thousandths of the tasks do not run.
    ///
    /// # Errors
    /// All of them, or more.
    pub fn new(thousandths: u32) -> Result<DropRatio, DropError> {
        match thousandths {
            0..1000 => Ok(DropRatio(thousandths)),
            more => Err(DropError(more)),
        }
    }

    /// Thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// As a part of 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// How many of this many tasks run: at least one, if there is one.
    pub fn kept(self, tasks: u32) -> u32 {
        let kept = (u64::from(tasks) * u64::from(1000 - self.0)).div_ceil(1000);
        // No more than `tasks`.
        kept as u32
    }

    /// The tasks that do not run, by ascending number: each set of that size is as likely, so that those that run are a
    /// sample of all. The same seed gives the same tasks.
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
