//! Grace periods of kills: kill policies and their override (docs/mesos/executors.md).
//!
//! It handles no processes; times are arguments.

use std::time::{Duration, Instant};

use crate::messages::KillPolicy;

/// Grace period if no policy has one.
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(3);

/// Returns the grace period of a kill: that of the KILL call's policy, else that of the task's policy, else the
/// default.
pub(crate) fn grace_of(kill: Option<KillPolicy>, task: Option<KillPolicy>) -> Duration {
    grace_or(kill, task, DEFAULT_GRACE)
}

/// Returns the grace period of a kill like [`grace_of`], with another default.
pub(crate) fn grace_or(kill: Option<KillPolicy>, task: Option<KillPolicy>, default: Duration) -> Duration {
    let grace = |policy: Option<KillPolicy>| policy?.grace_period.map(|period| period.duration());
    grace(kill).or_else(|| grace(task)).unwrap_or(default)
}

/// A kill in progress, with the time at which it is forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Escalation {
    asked_at: Instant,
    /// Time at which the kill is forced; `None` once it was forced.
    force_at: Option<Instant>,
}

impl Escalation {
    /// Starts a kill at `now`.
    pub(crate) fn new(now: Instant, grace: Duration) -> Escalation {
        Escalation { asked_at: now, force_at: Some(later(now, grace)) }
    }

    /// Applies the grace period of a further kill, counted from the first kill. It can only make the forced kill
    /// earlier.
    pub(crate) fn shorten(&mut self, grace: Duration) {
        let force_at = later(self.asked_at, grace);
        self.force_at = self.force_at.map(|before| before.min(force_at));
    }

    /// Returns the time at which [`Escalation::is_due`] must be called.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.force_at
    }

    /// Returns whether the kill must be forced now; `true` once.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.force_at.is_some_and(|at| now >= at);
        if due {
            self.force_at = None;
        }
        due
    }
}

/// Adds a grace period to a time. A policy may have any number of nanoseconds, which the clock may not be able to
/// represent.
fn later(from: Instant, grace: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    from + grace.min(FAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Nanoseconds;

    fn policy(seconds: i64) -> Option<KillPolicy> {
        Some(KillPolicy { grace_period: Some(Nanoseconds { nanoseconds: seconds * 1_000_000_000 }) })
    }

    #[test]
    fn the_policy_that_counts() {
        let seconds = Duration::from_secs;
        assert_eq!(grace_of(policy(1), policy(2)), seconds(1));
        assert_eq!(grace_of(None, policy(2)), seconds(2));
        assert_eq!(grace_of(Some(KillPolicy { grace_period: None }), policy(0)), seconds(0));
        assert_eq!(grace_of(None, None), seconds(3));
        assert_eq!(grace_of(policy(-5), None), seconds(0));
    }

    #[test]
    fn later_kills_only_shorten() {
        let start = crate::clock::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut escalation = Escalation::new(start, Duration::from_secs(10));
        escalation.shorten(Duration::from_secs(60));
        assert_eq!(escalation.wake_at(), Some(at(10)));
        // The grace period is counted from the first kill.
        escalation.shorten(Duration::from_secs(4));
        assert_eq!(escalation.wake_at(), Some(at(4)));
        assert!(!escalation.is_due(at(3)));
        assert!(escalation.is_due(at(5)));
        assert!(!escalation.is_due(at(6)));
        escalation.shorten(Duration::ZERO);
        assert_eq!(escalation.wake_at(), None);
        Escalation::new(start, Duration::MAX);
    }
}
