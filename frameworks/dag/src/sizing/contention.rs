//! Distinguishes contention from size: a machine of which all executors are slow at once gets smaller tasks. It chooses
//! no sizes.

use serde::{Deserialize, Serialize};

use super::fit::median;

/// Factor by which a contended machine's tasks shrink after each wave.
const BACK: f64 = 0.7;

/// Smallest fraction of the size that a contended machine's tasks get.
const FURTHEST: f64 = 0.25;

/// Factor by which the tasks grow again after each wave without contention.
const RETURN: f64 = 1.3;

/// Fraction of a deviation that is attributed to the machine's own speed after a wave.
const LEARN: f64 = 0.3;

/// Least slowdown of all tasks of a contended machine against its usual speed; it must also exceed twice the noise.
const SLOWER: f64 = 0.22;

/// A task that was handed out and has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    pub size: u64,
    pub wave: u32,
    pub explores: bool,
}

/// The speed and the contention of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Usual speed relative to the mean of all machines, as a logarithm.
    speed: f64,
    /// Fraction of the size that the machine's tasks get.
    part: f64,
    /// Whether the machine was contended in the last wave.
    contended: bool,
    pub(super) running: Vec<Running>,
    /// Number of exploring tasks that the machine has had.
    pub(super) explored: u32,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { speed: 0.0, part: 1.0, contended: false, running: Vec::new(), explored: 0 }
    }
}

impl Machine {
    /// Returns the fraction of the size that the machine's tasks get: 1 without contention.
    pub fn part(&self) -> f64 {
        self.part
    }

    /// Returns the usual speed relative to the mean of all machines, as a logarithm.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Returns whether all executors of the machine were slow at once in the last wave.
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Returns whether an exploring task, whose size differs from the others, runs on the machine.
    pub fn is_exploring(&self) -> bool {
        self.running.iter().any(|task| task.explores)
    }

    /// Judges a wave. `above` is how far the logarithm of each task's rate exceeds the one that size and usual speed
    /// explain; `noise` is that of all tasks. Returns whether the machine is contended.
    ///
    /// A single slow task is a straggler. Contention takes at least two, and all of them.
    pub fn judge(&mut self, above: &mut [f64], noise: f64) -> bool {
        if above.is_empty() {
            return self.contended;
        }
        let threshold = SLOWER.max(2.0 * noise);
        self.contended = above.len() >= 2 && above.iter().all(|deviation| *deviation < -threshold);
        self.part = match self.contended {
            true => (self.part * BACK).max(FURTHEST),
            false => (self.part * RETURN).min(1.0),
        };
        // Lasting slowness becomes the machine's usual speed: smaller tasks do not help against a neighbour that stays.
        self.speed = (self.speed + LEARN * median(above)).clamp(-5.0, 5.0);
        self.contended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_executors_slow_at_once_is_contention_and_one_is_not() {
        let mut machine = Machine::default();
        assert!(!machine.judge(&mut [-1.5, 0.02, -0.03], 0.05));
        assert!(!machine.judge(&mut [-1.5], 0.05));
        assert_eq!(machine.part(), 1.0);
        assert!(machine.judge(&mut [-0.6, -0.5, -0.7], 0.05));
        assert!(machine.part() < 0.71);
        // The machine is as slow as before, but by now that is its usual speed.
        let usual = machine.speed();
        assert!(usual < -0.1);
        assert!(!machine.judge(&mut [0.0, 0.1], 0.05));
        assert!(machine.part() > 0.9);
    }

    #[test]
    fn lasting_slowness_becomes_the_usual_speed() {
        let mut machine = Machine::default();
        for _ in 0..20 {
            let above = -0.8 - machine.speed();
            machine.judge(&mut [above, above], 0.05);
        }
        assert!(!machine.is_contended() && machine.part() == 1.0, "{machine:?}");
    }
}
