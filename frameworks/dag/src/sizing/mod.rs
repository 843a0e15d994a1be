//! Chooses how much input each task of a stage gets (after Libra, SoCC 2019). It does not read the input.
//!
//! A task has a fixed cost (its start) and a cost that grows with its input, faster once the input exceeds the memory.
//! So the time of a stage over the size of its tasks is a U-shaped curve, with a different minimum for each stage. A
//! [`Tuner`] searches for it while the stage runs: it maximises the rate of processing, in units of input a second.
//!
//! 1. A wave is about as many finished tasks as half of the slots. In each wave one executor of a machine explores: it
//!    gets a somewhat larger or smaller task than the others ([`Tuner::next_size`]).
//! 2. At a wave's end a robust straight line through the logarithms of rates over sizes gives a slope
//!    ([`fit`](mod@fit)). Stragglers have little weight, and a slope within its own error counts as none.
//! 3. Adam moves the logarithm of the size up the slope ([`adam`]).
//! 4. A machine of which all executors are slow at once is contended ([`contention`]): its tasks get smaller for a
//!    while, and are excluded from the slope.
//! 5. The last wave is balanced: no task gets more than its slot's part of what is left.
//!
//! [`Memory`] keeps the result, by stage, for the next run. [`Sizing`] has the tuner and the fixed sizes that it is
//! compared with behind one interface.

pub mod adam;
pub mod contention;
pub mod fit;
mod fixed;
mod memory;
mod sample;
mod tuner;
mod wave;

#[cfg(test)]
mod tests;

pub use fixed::{BLOCK, Fixed, Rule, Sizing};
pub use memory::{EarlierRuns, Memory};
pub use sample::{Sample, SizingConfig, SizingError};
pub use tuner::Tuner;
pub use wave::{Explanation, Wave};
