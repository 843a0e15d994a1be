//! Learned offer timeout of one framework, from how long it takes to accept and how often it holds offers without using
//! them.

use std::time::Duration;

use super::Adaptive;

/// Smoothed time to acceptance and its mean deviation, in seconds, with the gains of RFC 6298 (1/8 and 1/4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnedTimeout {
    learned: Option<(f64, f64)>,
    /// Factor of the timeout, at most 1. Halved by each offer that was held without use, doubled by each that was used.
    trust: f64,
}

impl Default for LearnedTimeout {
    fn default() -> LearnedTimeout {
        LearnedTimeout { learned: None, trust: 1.0 }
    }
}

/// Least trust, from which used offers raise it again.
const LEAST_TRUST: f64 = 1.0 / 1024.0;

impl LearnedTimeout {
    /// Records that an offer was used after `held`.
    pub(crate) fn used(&mut self, held: Duration) {
        let sample = held.as_secs_f64();
        self.learned = Some(match self.learned {
            None => (sample, sample / 2.0),
            Some((mean, deviation)) => {
                (mean + (sample - mean) / 8.0, deviation + ((sample - mean).abs() - deviation) / 4.0)
            }
        });
        self.trust = (self.trust * 2.0).min(1.0);
    }

    /// Records that an offer was returned unused after `held`. It counts as held only from the shortest timeout on.
    pub(crate) fn unused(&mut self, held: Duration, limits: Option<Adaptive>) {
        if limits.is_some_and(|limits| held >= limits.min) {
            self.trust = (self.trust / 2.0).max(LEAST_TRUST);
        }
    }

    /// Returns the timeout of the next offer.
    pub(crate) fn limit(&self, limits: Adaptive) -> Duration {
        let longest = limits.max.as_secs_f64();
        let usual = self.learned.map_or(longest, |(mean, deviation)| mean + 4.0 * deviation);
        let seconds = (usual.min(longest) * self.trust).max(limits.min.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(limits.max).clamp(limits.min, limits.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Adaptive = Adaptive { min: Duration::from_millis(100), max: Duration::from_secs(64) };

    #[test]
    fn follows_frameworks_that_accept() {
        let mut learned_timeout = LearnedTimeout::default();
        assert_eq!(learned_timeout.limit(LIMITS), LIMITS.max, "nothing is known yet");
        for _ in 0..100 {
            learned_timeout.used(Duration::from_secs(2));
        }
        let limit = learned_timeout.limit(LIMITS).as_secs_f64();
        assert!((2.0..2.1).contains(&limit), "{limit}");
    }

    #[test]
    fn shortens_for_frameworks_that_hold_and_recovers() {
        let mut learned_timeout = LearnedTimeout::default();
        for halved in [32, 16, 8, 4] {
            learned_timeout.unused(Duration::from_secs(9), Some(LIMITS));
            assert_eq!(learned_timeout.limit(LIMITS), Duration::from_secs(halved));
        }
        learned_timeout.unused(Duration::from_millis(99), Some(LIMITS));
        assert_eq!(learned_timeout.limit(LIMITS), Duration::from_secs(4), "a quick no is no holding");
        for _ in 0..50 {
            learned_timeout.unused(Duration::from_secs(9), Some(LIMITS));
        }
        assert_eq!(learned_timeout.limit(LIMITS), LIMITS.min);
        for _ in 0..20 {
            learned_timeout.used(Duration::from_secs(1));
        }
        assert!(learned_timeout.limit(LIMITS) > Duration::from_secs(1));
    }
}
