//! Limits how often the rung of an uplink changes: queries compare pictures with a background, and every change of size
//! or quality disturbs it. Measures nothing.

/// Number of periods in a row in which a policy must choose a higher rung before the rung rises, at first.
const WAIT: u32 = 5;
/// Largest number of such periods, after rungs that could not be kept.
const WAIT_MAX: u32 = 160;
/// Number of periods after a fall in which the rung does not fall again: pictures of the higher rung still wait.
const SETTLE: u32 = 3;

/// Delays rises of a rung. It falls at once, and rises by one. If it falls within the time that it waited for the rise,
/// the link did not carry the higher rung, and the next rise takes twice as long.
#[derive(Clone, Debug)]
pub(super) struct Steady {
    wait: u32,
    /// Periods in a row in which a higher rung was chosen, and periods since the last rise.
    above: u32,
    since_rise: u32,
    /// Periods since the last fall.
    since_fall: u32,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady { wait: WAIT, above: 0, since_rise: WAIT_MAX, since_fall: SETTLE }
    }
}

impl Steady {
    /// Returns the next rung, once in a period. `chosen` is the choice of the policy.
    pub(super) fn next(&mut self, rung: usize, chosen: usize) -> usize {
        self.since_rise = self.since_rise.saturating_add(1);
        self.since_fall = self.since_fall.saturating_add(1);
        if chosen < rung {
            if self.since_fall < SETTLE {
                return rung;
            }
            self.since_fall = 0;
            if self.since_rise <= self.wait {
                self.wait = (self.wait * 2).min(WAIT_MAX);
            }
            self.above = 0;
            return chosen;
        }
        self.above = if chosen > rung { self.above + 1 } else { 0 };
        if self.above < self.wait {
            return rung;
        }
        // A rung that was kept for long shows that the link has become better.
        if self.since_rise > 2 * WAIT_MAX {
            self.wait = WAIT;
        }
        (self.above, self.since_rise) = (0, 0);
        rung + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_rise_slowly_and_fall_at_once() {
        let mut steady = Steady::default();
        let rungs: Vec<usize> = (0..12)
            .scan(0, |rung, _| {
                *rung = steady.next(*rung, 5);
                Some(*rung)
            })
            .collect();
        assert_eq!(rungs, [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]);
        assert_eq!(steady.next(2, 1), 1);
        assert_eq!([steady.next(1, 0), steady.next(1, 0), steady.next(1, 0)], [1, 1, 0]);
    }

    #[test]
    fn a_rung_that_the_link_does_not_carry_is_tried_less_and_less() {
        let (mut steady, mut rung, mut changes) = (Steady::default(), 1, 0);
        // The link carries rung 1. The policy always wants more, and notices two periods after a rise that it is wrong.
        let mut above = 0;
        for _ in 0..600 {
            let chosen = if above >= 2 { 1 } else { 5 };
            let next = steady.next(rung, chosen);
            changes += u32::from(next != rung);
            rung = next;
            above = if rung > 1 { above + 1 } else { 0 };
        }
        // 5 + 10 + 20 + 40 + 80 + 160 + 160 periods between rises.
        assert!((12..=16).contains(&changes), "{changes}");
    }
}
