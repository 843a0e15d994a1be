//! The result of a wave of tasks, and its explanation in words. It decides nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A finished wave. [`Tuner::waves`](super::Tuner::waves) returns waves in order, for plots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wave {
    /// Number of the wave, from 1.
    pub number: u32,
    /// Size of the wave's tasks, apart from those that explored.
    pub size: u64,
    /// Rate of a task of this size, in units per second: the height of the line through all rates.
    pub rate: f64,
    /// Number of tasks that finished in the wave.
    pub tasks: u32,
    /// Number of the wave's tasks that explored.
    pub explorers: u32,
    /// Number of tasks more than three deviations off, which have little weight.
    pub outliers: u32,
    /// Relative growth of the rate by that of the size: 1 where the fixed cost is everything, negative where tasks are
    /// too large.
    pub slope: f64,
    /// Standard error of the slope; `None` where all tasks were of one size.
    pub error: Option<f64>,
    /// Number of machines of which all executors were slow at once.
    pub contended: u32,
    /// Size of the tasks of the next wave.
    pub next: u64,
}

/// The explanation of a tuner's size, which `Display` writes as a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Present size.
    pub size: u64,
    /// Last wave, if one has finished.
    pub last: Option<Wave>,
    /// Number of earlier runs of the stage, from which the size is remembered.
    pub runs: u32,
    /// Whether the rest of the input is divided evenly among the slots.
    pub balancing: bool,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(wave) = &self.last else {
            return match self.runs {
                0 => write!(f, "tasks get {} units: the size to begin with, no wave has finished", self.size),
                runs => write!(f, "tasks get {} units: found in {runs} earlier runs", self.size),
            };
        };
        write!(f, "wave {}: {} tasks of {} units, {:.0} units/s each", wave.number, wave.tasks, wave.size, wave.rate)?;
        let by = (wave.next as f64 / wave.size.max(1) as f64 - 1.0) * 100.0;
        match wave.error {
            None => write!(f, "; all of one size, so the size stays")?,
            Some(error) if wave.slope.abs() <= error => {
                write!(f, "; larger and smaller tasks are as fast within the noise, the size moves {by:+.0} %")?;
            }
            Some(_) if wave.slope > 0.0 => write!(f, "; larger tasks are faster by unit, the size moves {by:+.0} %")?,
            Some(_) => write!(f, "; smaller tasks are faster by unit, the size moves {by:+.0} %")?,
        }
        if wave.outliers > 0 {
            write!(f, "; {} outliers have little weight", wave.outliers)?;
        }
        if wave.contended > 0 {
            write!(f, "; {} machines are contended and get smaller tasks", wave.contended)?;
        }
        match self.balancing {
            true => write!(f, "; the rest is divided evenly"),
            false => Ok(()),
        }
    }
}
