//! The schedule of reconciliation: when to ask the master about which tasks.
//!
//! After a subscription it asks about every task of the ledger, with growing waits until each is answered: a newly
//! elected master answers nothing about agents that have not reregistered. Later it periodically asks about all tasks,
//! alternately by name and implicitly, which finds tasks that the ledger lacks. It sends nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use base::{Backoff, Time};

/// First wait before tasks without an answer are reconciled again.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait before tasks without an answer are reconciled again.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Interval of repeated kills of tasks that do not end.
const KILLS_EVERY: Duration = Duration::from_secs(30);

/// A reconciliation that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reconciliation {
    /// Reconciliation of these tasks.
    Some(Vec<String>),
    /// Implicit reconciliation: all tasks that the master knows.
    All,
}

#[derive(Debug)]
pub(super) struct Reconciler {
    every: Duration,
    backoff: Backoff,
    /// Reconciled tasks that are not answered yet.
    pending: BTreeSet<String>,
    ask_at: Time,
    kills_at: Time,
    rounds: u32,
}

impl Reconciler {
    pub(super) fn new(every: Duration, seed: u64) -> Reconciler {
        Reconciler {
            every,
            backoff: Backoff::new(FIRST_WAIT, LONGEST_WAIT, seed),
            pending: BTreeSet::new(),
            ask_at: Time::NEVER,
            kills_at: Time::NEVER,
            rounds: 0,
        }
    }

    /// Records that these tasks are being reconciled, at the start of a subscription or of a round.
    pub(super) fn begin(&mut self, tasks: impl Iterator<Item = String>, now: Time) {
        self.pending = tasks.collect();
        self.backoff.reset();
        self.ask_at = if self.pending.is_empty() { now + self.every } else { now + self.backoff.next_wait() };
        self.kills_at = now + KILLS_EVERY;
    }

    /// Pauses the schedule while there is no master to ask.
    pub(super) fn pause(&mut self) {
        self.pending.clear();
        (self.ask_at, self.kills_at) = (Time::NEVER, Time::NEVER);
    }

    /// Records that the master has reported a task.
    pub(super) fn record_answer(&mut self, task_id: &str, now: Time) {
        if self.pending.remove(task_id) && self.pending.is_empty() {
            self.ask_at = now + self.every;
        }
    }

    /// Returns the time of the next reconciliation or repetition of kills; `kills` is true if there are kills to
    /// repeat.
    pub(super) fn next_wake(&self, kills: bool) -> Time {
        if kills { self.ask_at.min(self.kills_at) } else { self.ask_at }
    }

    /// Records that there is no kill to repeat at `now`.
    pub(super) fn no_kills(&mut self, now: Time) {
        if self.kills_at != Time::NEVER {
            self.kills_at = now + KILLS_EVERY;
        }
    }

    /// Returns the reconciliation that is due at `now`, if there is one. `tasks` returns the tasks in the ledger.
    pub(super) fn due(&mut self, tasks: &dyn Fn() -> Vec<String>, now: Time) -> Option<Reconciliation> {
        if now < self.ask_at {
            return None;
        }
        if !self.pending.is_empty() {
            self.ask_at = now + self.backoff.next_wait();
            return Some(Reconciliation::Some(self.pending.iter().cloned().collect()));
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(2) {
            self.ask_at = now + self.every;
            return Some(Reconciliation::All);
        }
        let tasks = tasks();
        self.begin(tasks.iter().cloned(), now);
        (!tasks.is_empty()).then_some(Reconciliation::Some(tasks))
    }

    /// Returns whether kills are due to be repeated.
    pub(super) fn kills_due(&mut self, now: Time) -> bool {
        let due = self.kills_at <= now;
        if due {
            self.kills_at = now + KILLS_EVERY;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(900);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    /// Returns the wait from `from` to the next reconciliation, and its tasks.
    fn next(reconciler: &mut Reconciler, tasks: &[&str], from: Time) -> (Duration, Reconciliation) {
        loop {
            let now = reconciler.ask_at;
            if let Some(reconciliation) = reconciler.due(&|| names(tasks), now) {
                return (now.since(from), reconciliation);
            }
        }
    }

    #[test]
    fn reconciles_tasks_without_updates_ever_more_rarely() {
        let start = Time::from_secs(100);
        let mut reconciler = Reconciler::new(EVERY, 3);
        reconciler.begin(names(&["a", "b"]).into_iter(), start);
        reconciler.record_answer("a", start);
        let mut waits = Vec::new();
        let mut last = start;
        for _ in 0..10 {
            let (wait, reconciliation) = next(&mut reconciler, &["a", "b"], last);
            assert_eq!(reconciliation, Reconciliation::Some(names(&["b"])));
            waits.push(wait);
            last = last + wait;
        }
        assert!(waits[0] <= FIRST_WAIT && waits[9] > LONGEST_WAIT / 3 && waits[9] <= LONGEST_WAIT, "{waits:?}");
        reconciler.record_answer("b", last);
        let (wait, reconciliation) = next(&mut reconciler, &["a", "b"], last);
        assert_eq!((wait, reconciliation), (EVERY, Reconciliation::Some(names(&["a", "b"]))));
    }

    #[test]
    fn in_turn_by_name_and_as_a_whole() {
        let mut last = Time::from_secs(100);
        let mut reconciler = Reconciler::new(EVERY, 3);
        reconciler.begin(std::iter::empty(), last);
        for round in 0..4 {
            let (wait, reconciliation) = next(&mut reconciler, &["a"], last);
            last = last + wait;
            assert_eq!(wait, EVERY);
            match round % 2 {
                0 => assert_eq!(reconciliation, Reconciliation::Some(names(&["a"]))),
                _ => assert_eq!(reconciliation, Reconciliation::All),
            }
            reconciler.record_answer("a", last);
        }
        reconciler.pause();
        assert_eq!(reconciler.next_wake(true), Time::NEVER);
    }
}
