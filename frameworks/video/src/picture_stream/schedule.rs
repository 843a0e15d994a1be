//! The times at which pictures of each rung are due. Encodes nothing.

use crate::abr::live::RUNGS;

/// Times at which pictures of each rung are due.
#[derive(Debug, Default)]
pub(crate) struct RungSchedule {
    next: [f64; RUNGS.len()],
}

impl RungSchedule {
    /// Returns whether a picture of the rung is due at `now`, in seconds; the next one is due a period later.
    pub(crate) fn take(&mut self, rung: usize, now: f64) -> bool {
        let next = &mut self.next[rung];
        if now < *next {
            return false;
        }
        let every = 1.0 / RUNGS[rung].rate;
        *next = if now - *next > every { now + 0.9 * every } else { *next + every };
        true
    }
}

/// Returns the divisor with which a picture is no wider than `most`.
pub(crate) fn divisor(width: usize, most: usize) -> u32 {
    u32::try_from(width.div_ceil(most.max(1))).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_no_wider_than_their_rung() {
        for (width, most) in [(640, 160), (640, 240), (1920, 960), (100, 960), (641, 320)] {
            assert!(width / divisor(width, most) as usize <= most, "{width} {most}");
        }
    }

    #[test]
    fn each_rung_has_its_rate() {
        let mut schedule = RungSchedule::default();
        for (rung, wanted) in RUNGS.iter().enumerate() {
            let due = (0..1000).filter(|n| schedule.take(rung, 100.0 + f64::from(*n) / 100.0)).count();
            assert!((due as f64 / 10.0 - wanted.rate).abs() < 0.6, "{rung}: {due}");
        }
    }
}
