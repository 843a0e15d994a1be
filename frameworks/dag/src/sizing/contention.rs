//! Tells contention from size: a machine of which all executors are slow at once steps back. It chooses no sizes.

use serde::{Deserialize, Serialize};

use super::fit::median;

/// A machine steps back to this part of the size at once, and again as long as it is contended.
const BACK: f64 = 0.7;

/// It steps back no further than to this part.
const FURTHEST: f64 = 0.25;

/// After each wave without contention it returns by this factor.
const RETURN: f64 = 1.3;

/// The part of a deviation that counts as the machine's own speed after a wave.
const LEARN: f64 = 0.3;

/// A machine is contended if all its tasks are slower than its usual by this part at least, and by twice the noise.
const SLOWER: f64 = 0.22;

/// A task that was handed out and has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    pub size: u64,
    pub wave: u32,
    pub explores: bool,
}

/// What is known of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// How much faster it usually is than the mean, as a logarithm.
    speed: f64,
    /// The part of the size that its tasks get.
    part: f64,
    /// Whether it was contended in the last wave.
    contended: bool,
    pub(super) running: Vec<Running>,
    /// Explorers that it has had.
    pub(super) explored: u32,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { speed: 0.0, part: 1.0, contended: false, running: Vec::new(), explored: 0 }
    }
}

impl Machine {
    /// The part of the size that its tasks get: 1 without contention.
    pub fn part(&self) -> f64 {
        self.part
    }

    /// How much faster it usually is than the mean, as a logarithm.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Whether all its executors were slow at once in the last wave.
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Whether a task of another size than the machine's others runs there.
    pub fn is_exploring(&self) -> bool {
        self.running.iter().any(|task| task.explores)
    }

    /// Looks at a wave: how far the logarithm of each task's rate is above what size and usual speed explain, with
    /// the noise of all tasks. Returns whether the machine is contended.
    ///
    /// One slow task is a straggler. Contention takes two, and all of them.
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
        // What lasts becomes the machine's usual speed: smaller tasks do not help against a neighbour that stays.
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
        // Slow as before, but by now that is its speed.
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
