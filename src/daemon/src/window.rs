//! Limits how many lines of one kind are written in a period, and counts the lines that are left out.

use std::time::{Duration, Instant};

/// The period of all limits.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// The lines of one kind in the present period.
#[derive(Debug)]
pub(crate) struct Window {
    began: Instant,
    written: u32,
    left_out: u64,
}

impl Window {
    /// A window whose first period begins now.
    pub(crate) fn new(now: Instant) -> Window {
        Window { began: now, written: 0, left_out: 0 }
    }

    /// Whether another line may be written; otherwise it is counted.
    pub(crate) fn admits(&mut self, now: Instant, max: u32) -> bool {
        // The count of a period that is over stays until it is taken: a new period begins then.
        if self.left_out == 0 && now.duration_since(self.began) >= PERIOD {
            *self = Window::new(now);
        }
        if self.written < max {
            self.written += 1;
            return true;
        }
        self.left_out += 1;
        false
    }

    /// Returns how many lines were left out, if the period is over, and begins another one.
    pub(crate) fn take_left_out(&mut self, now: Instant) -> Option<u64> {
        if self.left_out == 0 || now.duration_since(self.began) < PERIOD {
            return None;
        }
        let left_out = self.left_out;
        *self = Window::new(now);
        Some(left_out)
    }

    /// Returns how many lines were left out so far, also if the period is not over, and begins another one.
    pub(crate) fn end(&mut self, now: Instant) -> Option<u64> {
        let left_out = self.left_out;
        *self = Window::new(now);
        Some(left_out).filter(|count| *count > 0)
    }

    /// When [`Window::take_left_out`] has something to return; none if no line was left out.
    pub(crate) fn is_waiting(&self) -> bool {
        self.left_out > 0
    }
}

/// The present instant, for windows.
#[allow(clippy::disallowed_methods, reason = "limits of lines are not decisions of a core")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_above_the_limit_are_counted_until_the_period_is_over() {
        let start = instant();
        let mut window = Window::new(start);
        let admitted = (0..5).filter(|_| window.admits(start, 2)).count();
        assert_eq!((admitted, window.take_left_out(start)), (2, None));
        let later = start + PERIOD;
        // Nothing is written before the count is.
        assert!(!window.admits(later, 2));
        assert_eq!(window.take_left_out(later), Some(4));
        assert!(window.admits(later, 2) && !window.is_waiting());
        assert_eq!(window.take_left_out(later + PERIOD), None);
        assert!(window.admits(later + PERIOD, 1));
    }
}
