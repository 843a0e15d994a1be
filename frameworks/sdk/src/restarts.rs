//! Back-off for tasks that are started again after their end.
//!
//! A task that ends soon after its start waits longer each time; after a long run it starts with the first wait again.
//! This module starts nothing, and reads no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;

/// Waits between the end of a task and its next start. Mesos's long-lived frameworks have the same three parameters
/// (Marathon: 1 s, 1.15, 300 s).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestartPolicy {
    /// First wait.
    pub first: Duration,
    /// Factor by which each further wait is longer; at least 1.
    pub factor: f64,
    /// Longest wait.
    pub longest: Duration,
    /// Length of a run after which the waits start from the first one.
    pub healthy_after: Duration,
}

impl Default for RestartPolicy {
    fn default() -> RestartPolicy {
        RestartPolicy {
            first: Duration::from_secs(1),
            factor: 1.5,
            longest: Duration::from_secs(300),
            healthy_after: Duration::from_secs(60),
        }
    }
}

/// Back-off of tasks by name.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    policy: RestartPolicy,
    waiting: BTreeMap<String, Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    failures: u32,
    until: Time,
}

impl Restarts {
    /// Creates a `Restarts` without tasks, with this policy.
    pub fn new(policy: RestartPolicy) -> Restarts {
        Restarts { policy, waiting: BTreeMap::new() }
    }

    /// Records the end of a task after a run of `ran`. Returns the time at which its next start is due.
    pub fn ended(&mut self, name: &str, ran: Duration, now: Time) -> Time {
        let before = self.waiting.get(name).map_or(0, |w| w.failures);
        let failures = if ran >= self.policy.healthy_after { 0 } else { before };
        let until = now + self.wait(failures);
        self.waiting.insert(name.to_owned(), Waiting { failures: failures.saturating_add(1), until });
        until
    }

    /// Returns whether the task may be started now. A task that never ended may.
    pub fn may_start(&self, name: &str, now: Time) -> bool {
        self.waiting.get(name).is_none_or(|w| w.until <= now)
    }

    /// Returns the number of ends of the task since its last run of `healthy_after` or longer.
    pub fn failures(&self, name: &str) -> u32 {
        self.waiting.get(name).map_or(0, |w| w.failures)
    }

    /// Returns the next time at which a waiting task may be started, for [`Calls::wake_at`](crate::Calls::wake_at).
    pub fn next(&self, now: Time) -> Option<Time> {
        self.waiting.values().map(|w| w.until).filter(|until| *until > now).min()
    }

    /// Removes the back-off of this name.
    pub fn forget(&mut self, name: &str) {
        self.waiting.remove(name);
    }

    fn wait(&self, failures: u32) -> Duration {
        let factor = self.policy.factor.max(1.0).powi(i32::try_from(failures).unwrap_or(i32::MAX));
        let seconds = self.policy.first.as_secs_f64() * factor;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(self.policy.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_limit_and_begin_anew_after_health() {
        let mut restarts = Restarts::default();
        let now = Time::from_secs(100);
        let seconds = |until: Time| until.since(now).as_secs_f64();
        let ill: Vec<f64> = (0..20).map(|_| seconds(restarts.ended("a", Duration::ZERO, now))).collect();
        assert_eq!(ill[..3], [1.0, 1.5, 2.25]);
        assert_eq!(ill[19], 300.0);
        assert_eq!(restarts.failures("a"), 20);
        assert!(!restarts.may_start("a", now) && restarts.may_start("b", now));
        assert_eq!(restarts.next(now), Some(now + Duration::from_secs(300)));
        assert_eq!(seconds(restarts.ended("a", Duration::from_secs(60), now)), 1.0);
        assert!(restarts.may_start("a", now + Duration::from_secs(1)));
        restarts.forget("a");
        assert_eq!(restarts.next(now), None);
    }
}
