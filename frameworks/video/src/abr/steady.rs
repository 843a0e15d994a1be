//! Limits how often the rung of an uplink changes: queries compare pictures with a background, and every change of size
//! or quality disturbs it. Measures nothing.

/// Number of periods in a row in which a policy must choose a higher rung before the rung rises. Until the rung has
/// fallen for the first time it is one: the link is not known yet, and neither is the background.
const WAIT: u32 = 5;
/// Largest number of such periods, after rungs that could not be kept.
const WAIT_MAX: u32 = 160;
/// Number of periods after a fall in which the rung does not fall again: pictures of the higher rung still wait.
const SETTLE: u32 = 3;

/// Delays rises of a rung. It falls at once, and rises by one. If it falls within the time that it waited for the rise
/// (at least [`WAIT`]), the link did not carry the higher rung, and the next rise takes twice as long.
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
        Steady { wait: 1, above: 0, since_rise: WAIT_MAX, since_fall: SETTLE }
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
            if self.since_rise <= self.wait.max(WAIT) {
                self.wait = (self.wait * 2).min(WAIT_MAX);
                // A second fall after the same rise does not count.
                self.since_rise = WAIT_MAX;
            }
            self.wait = self.wait.max(WAIT);
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
        let (mut steady, mut rung) = (Steady::default(), 0);
        let mut next = |chosen| {
            rung = steady.next(rung, chosen);
            rung
        };
        // The first rises take a period each.
        assert_eq!([5, 5, 5, 5, 5].map(&mut next), [1, 2, 3, 4, 5]);
        assert_eq!([2, 1, 1, 1].map(&mut next), [2, 2, 2, 1]);
        assert_eq!([5; 11].map(&mut next), [1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]);
        // One period without a higher choice delays the rise.
        assert_eq!([5, 5, 3, 5, 5, 5, 5, 5].map(&mut next), [3, 3, 3, 3, 3, 3, 3, 4]);
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
        // 1, 5, 10, 20, 40, 80, 160 and 160 periods between rises, each with a fall.
        assert!((14..=18).contains(&changes), "{changes}");
    }
}
