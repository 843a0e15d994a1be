//! What came out of a wave of tasks, and its explanation in words. It decides nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A finished wave. [`Tuner::waves`](super::Tuner::waves) has them in order, for plots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wave {
    /// Its number, from 1.
    pub number: u32,
    /// The size that its tasks had, apart from those that explored.
    pub size: u64,
    /// Units of input that a task of this size processed in a second: the height of the line through all rates.
    pub rate: f64,
    /// Tasks that finished in it.
    pub tasks: u32,
    /// Of them those that explored.
    pub explorers: u32,
    /// Of them those more than three deviations off, which hardly count.
    pub outliers: u32,
    /// By what part the rate grows where the size grows by a part: 1 where the fixed cost is everything, negative
    /// where tasks are too large.
    pub slope: f64,
    /// The standard error of the slope; none where all tasks were of one size.
    pub error: Option<f64>,
    /// Machines of which all executors were slow at once.
    pub contended: u32,
    /// The size of the next wave.
    pub next: u64,
}

/// Says in a sentence what a tuner has done and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The size at present.
    pub size: u64,
    /// The last wave, if one has finished.
    pub last: Option<Wave>,
    /// Runs of the same stage before, from which the size is remembered.
    pub runs: u32,
    /// Whether what is left is shared out evenly over the slots.
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
            write!(f, "; {} outliers hardly count", wave.outliers)?;
        }
        if wave.contended > 0 {
            write!(f, "; {} machines are contended and step back", wave.contended)?;
        }
        match self.balancing {
            true => write!(f, "; what is left is shared out evenly"),
            false => Ok(()),
        }
    }
}
