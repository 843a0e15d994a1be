//! Sizes that do not change, and one interface for them and the tuner. It measures nothing.

use serde::{Deserialize, Serialize};

use super::{Sample, Tuner};

/// Block size of HDFS, and so the usual size of a task of Spark: 128 MiB.
pub const BLOCK: u64 = 128 << 20;

/// Default number of chunks for each slot with [`Rule::Chunks`].
const CHUNKS: u32 = 8;

/// A rule for one size of all tasks of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// This many units, given by the user or found by a search.
    Size(u64),
    /// [`BLOCK`] units: 128 MiB.
    Block,
    /// One task for each slot.
    PerSlot,
    /// This many equal chunks for each slot, as arrays of HyperQueue are usually divided.
    Chunks(u32),
}

impl Default for Rule {
    fn default() -> Rule {
        Rule::Chunks(CHUNKS)
    }
}

/// A size that does not change while the stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixed {
    size: u64,
}

impl Fixed {
    /// Computes the size of a rule, for a stage with `input` units of input on this many slots. Never 0.
    pub fn new(rule: Rule, input: u64, slots: u32) -> Fixed {
        let parts = |chunks: u32| input.div_ceil((u64::from(slots.max(1)) * u64::from(chunks.max(1))).max(1));
        let size = match rule {
            Rule::Size(size) => size,
            Rule::Block => BLOCK,
            Rule::PerSlot => parts(1),
            Rule::Chunks(chunks) => parts(chunks),
        };
        Fixed { size: size.max(1) }
    }

    /// Returns the size in units.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// The source of the sizes of a stage's tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizing {
    /// The size is tuned while the stage runs.
    Tuned(Box<Tuner>),
    /// All tasks have the same size.
    Fixed(Fixed),
}

impl Sizing {
    /// Returns the size of the next task on this machine, at least 1. Less may be left for the last task.
    pub fn next_size(&mut self, machine: &str) -> u64 {
        match self {
            Sizing::Tuned(tuner) => tuner.next_size(machine),
            Sizing::Fixed(fixed) => fixed.size,
        }
    }

    /// Sets how much input is not handed out yet, and how many tasks can run at once.
    pub fn set_left(&mut self, units: u64, slots: u32) {
        if let Sizing::Tuned(tuner) = self {
            tuner.set_left(units, slots);
        }
    }

    /// Records a task that has finished.
    pub fn finished(&mut self, sample: Sample<'_>) {
        if let Sizing::Tuned(tuner) = self {
            tuner.finished(sample);
        }
    }

    /// Records that a task failed, or was never launched.
    pub fn lost(&mut self, machine: &str, size: u64) {
        if let Sizing::Tuned(tuner) = self {
            tuner.lost(machine, size);
        }
    }
}
