//! Exponential backoff with jitter: how long a client waits before it tries again.
//!
//! The jitter comes from a seed, so that a run can be repeated; it keeps a thousand clients from trying at the same
//! time.

use std::time::Duration;

/// Delays that double from `first` to `longest`, each shortened at random by up to half.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    tries: u32,
    state: u64,
}

impl Backoff {
    /// Creates a backoff with delays from `first` to `longest`; `seed` decides the jitter.
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Backoff {
        Backoff { first, longest, tries: 0, state: seed }
    }

    /// Returns the next delay.
    pub fn next_wait(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX)).min(self.longest);
        self.tries = self.tries.saturating_add(1);
        whole.mul_f64(1.0 - crate::fraction(crate::split_mix(&mut self.state)) / 2.0)
    }

    /// Starts again with the first delay, after a success.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_limit_and_starts_again() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10), 7);
        for n in 0..100_u32 {
            let whole = Duration::from_millis(100).saturating_mul(1 << n.min(20)).min(Duration::from_secs(10));
            let wait = backoff.next_wait();
            assert!(wait <= whole && wait >= whole / 2, "{n}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(100));
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let waits = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60), seed);
            [(); 4].map(|()| backoff.next_wait())
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }
}
