//! Decides when a lost source is reconnected. Performs no I/O.

/// First and longest pause, in seconds.
const PAUSES: (f64, f64) = (0.5, 30.0);

/// State of the attempts to reach a source.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Time for which a lost source is retried, in seconds.
    limit: f64,
    attempts: u32,
    since: Option<f64>,
}

impl Retry {
    /// Creates the state for a source that is retried for this many seconds after it was lost.
    pub fn new(limit: f64) -> Retry {
        Retry { limit, attempts: 0, since: None }
    }

    /// Records that the source is lost or was not reached. Returns the seconds until the next attempt, which double up
    /// to half a minute; `None` when the limit is reached.
    pub fn lost(&mut self, now: f64) -> Option<f64> {
        let since = *self.since.get_or_insert(now);
        let left = self.limit - (now - since);
        if left <= 0.0 {
            return None;
        }
        let pause = PAUSES.0 * 2.0_f64.powi(self.attempts.min(16) as i32);
        self.attempts += 1;
        Some(pause.min(PAUSES.1).min(left))
    }

    /// Returns the number of attempts since the source was lost.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Records that a picture has arrived.
    pub fn reached(&mut self) {
        self.attempts = 0;
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_limit_and_end() {
        let mut retry = Retry::new(100.0);
        let (mut now, mut pauses) = (7.0, Vec::new());
        while let Some(pause) = retry.lost(now) {
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 8.5]);
        retry.reached();
        assert_eq!((retry.lost(now), retry.attempts()), (Some(0.5), 1));
        assert_eq!(Retry::new(0.0).lost(1.0), None);
    }
}
