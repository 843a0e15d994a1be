//! Limits how many lines of one kind are written in a period, and counts the lines that are left out.

use std::time::{Duration, Instant};

/// The period of all limits.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);

/// A counter of the lines of one kind in the current period.
#[derive(Debug)]
pub(crate) struct Window {
    began: Instant,
    written: u32,
    left_out: u64,
    /// Number of lines that were left out in earlier periods and have not been reported.
    earlier: u64,
}

impl Window {
    /// Creates a window whose first period begins at `now`.
    pub(crate) fn new(now: Instant) -> Window {
        Window { began: now, written: 0, left_out: 0, earlier: 0 }
    }

    /// Returns whether another line may be written; otherwise counts it as left out.
    pub(crate) fn admits(&mut self, now: Instant, max: u32) -> bool {
        if now.duration_since(self.began) >= PERIOD {
            *self = Window { earlier: self.earlier + self.left_out, ..Window::new(now) };
        }
        if self.written < max {
            self.written += 1;
            return true;
        }
        self.left_out += 1;
        false
    }

    /// Returns how many lines were left out in past periods, and resets that number.
    pub(crate) fn take_left_out(&mut self, now: Instant) -> Option<u64> {
        if self.left_out > 0 && now.duration_since(self.began) >= PERIOD {
            *self = Window { earlier: self.earlier + self.left_out, ..Window::new(now) };
        }
        Some(std::mem::take(&mut self.earlier)).filter(|count| *count > 0)
    }

    /// Returns how many lines were left out so far, also in the current period, and begins another period.
    pub(crate) fn end(&mut self, now: Instant) -> Option<u64> {
        let left_out = self.left_out + self.earlier;
        *self = Window::new(now);
        Some(left_out).filter(|count| *count > 0)
    }

    /// Returns whether left-out lines have not been reported yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.left_out + self.earlier > 0
    }
}

/// Returns the current instant, for windows.
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
        assert!(window.admits(later, 1) && !window.admits(later, 1));
        assert_eq!((window.take_left_out(later), window.is_waiting()), (Some(3), true));
        assert_eq!((window.take_left_out(later + PERIOD), window.is_waiting()), (Some(1), false));
        assert!(!window.admits(later + PERIOD, 0));
        assert_eq!((window.end(later + PERIOD), window.end(later)), (Some(1), None));
    }
}
