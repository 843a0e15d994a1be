//! Leases: members promise the leader for a while that they elect no other one.
//!
//! The leader answers clients only while more than half of the members have promised. Its lease counts from when it
//! asked, their promises from when they were asked, so its lease ends first, even if its process was stopped meanwhile.
//! A member that starts waits as long as a promise may last that it has forgotten. Clocks may differ; their rates by a
//! tenth.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use base::Time;

use crate::entry::Number;

/// Maximum number of requests that are remembered until they are answered.
const ROUNDS_MAX: usize = 32;

/// Leases that a member has granted and those that it has.
#[derive(Debug)]
pub(crate) struct Leases {
    own: Number,
    length: Duration,
    /// Member that this one has promised not to replace, and the end of the promise.
    granted: Option<(Number, Time)>,
    /// Time before which no new leader is accepted.
    wait: Time,
    rounds: VecDeque<Round>,
    next_round: u64,
    /// End of this member's own lease.
    until: Time,
    /// Whether more than half of the members of this configuration have granted a lease.
    is_confirmed: bool,
    /// Time at which each other member last granted a lease.
    heard: BTreeMap<Number, Time>,
}

#[derive(Debug)]
struct Round {
    number: u64,
    asked: Time,
    granted_by: BTreeSet<Number>,
}

impl Leases {
    /// Returns the leases of a member that starts. `wait` is the end of promises that it may have forgotten.
    pub(crate) fn new(own: Number, length: Duration, wait: Time) -> Leases {
        let until = Time::EPOCH;
        Leases {
            own,
            length,
            granted: None,
            wait,
            rounds: VecDeque::new(),
            next_round: 1,
            until,
            is_confirmed: false,
            heard: BTreeMap::new(),
        }
    }

    /// Returns the duration of a promise.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Discards requests of an earlier configuration. Promises stay valid.
    pub(crate) fn forget_questions(&mut self) {
        self.rounds.clear();
        self.heard.clear();
        self.is_confirmed = false;
    }

    /// Returns whether the lease is one of this configuration. One of the previous configuration is valid as well,
    /// because more than half of its members and more than half of the current ones have a member in common. One of the
    /// configuration before that is not, so the members are not changed again until this is true.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Returns the member that this one has promised not to replace.
    pub(crate) fn granted_to(&self, now: Time) -> Option<Number> {
        self.granted.filter(|(_, until)| now < *until).map(|(number, _)| number)
    }

    /// Returns whether `candidate` may be elected with the vote of this member.
    pub(crate) fn permits(&self, candidate: Number, now: Time) -> bool {
        match self.granted_to(now) {
            Some(leader) => leader == candidate,
            None => now >= self.wait,
        }
    }

    /// Returns whether this member may have forgotten promises that are still relied on.
    pub(crate) fn is_waiting(&self, now: Time) -> bool {
        now < self.wait
    }

    /// Promises `leader` to elect no other one. Returns false if another member has a promise.
    pub(crate) fn grant(&mut self, leader: Number, now: Time) -> bool {
        let permitted = self.granted_to(now).is_none_or(|other| other == leader);
        if permitted {
            self.granted = Some((leader, now + self.length));
        }
        permitted
    }

    /// Ends the promise to a leader that does not need it any more.
    pub(crate) fn release(&mut self, leader: Number) {
        if self.granted.is_some_and(|(number, _)| number == leader) {
            self.granted = None;
        }
    }

    /// Starts a request for a lease. Returns its number, or `None` if this member has promised another one its vote.
    pub(crate) fn ask(&mut self, now: Time) -> Option<u64> {
        if !self.grant(self.own, now) {
            return None;
        }
        let number = self.next_round;
        self.next_round += 1;
        self.rounds.push_back(Round { number, asked: now, granted_by: BTreeSet::from([self.own]) });
        if self.rounds.len() > ROUNDS_MAX {
            self.rounds.pop_front();
        }
        Some(number)
    }

    /// Records that a member has granted a lease.
    pub(crate) fn granted(&mut self, by: Number, round: u64, majority: usize, now: Time) {
        self.heard.insert(by, now);
        let Some(at) = self.rounds.iter().position(|known| known.number == round) else { return };
        self.rounds[at].granted_by.insert(by);
        if self.rounds[at].granted_by.len() >= majority {
            let until = self.rounds[at].asked + self.length.mul_f64(0.9);
            self.until = self.until.max(until);
            self.is_confirmed = true;
            self.rounds.drain(..=at);
        }
    }

    /// Returns the end of this member's lease.
    pub(crate) fn until(&self) -> Time {
        self.until
    }

    /// Returns the members that have granted a lease within its length.
    pub(crate) fn answering(&self, now: Time) -> BTreeSet<Number> {
        let recent = self.heard.iter().filter(|(_, heard)| now.since(**heard) < self.length);
        recent.map(|(number, _)| *number).collect()
    }

    /// Ends the own lease.
    pub(crate) fn end(&mut self) {
        self.until = Time::EPOCH;
        self.rounds.clear();
        self.release(self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_millis(1000);

    fn at(millis: u64) -> Time {
        Time::from_epoch(Duration::from_millis(millis))
    }

    #[test]
    fn a_lease_counts_from_the_question_and_needs_a_majority() {
        let mut leases = Leases::new(1, LENGTH, at(0));
        let (first, second) = (leases.ask(at(100)).unwrap(), leases.ask(at(200)).unwrap());
        leases.granted(2, second, 3, at(300));
        leases.granted(2, second, 3, at(300));
        assert_eq!(leases.until(), at(0), "one member twice is not two members");
        leases.granted(3, second, 3, at(300));
        assert_eq!(leases.until(), at(1100));
        leases.granted(2, first, 2, at(300));
        assert_eq!(leases.until(), at(1100), "earlier questions do not count any more");
        assert_eq!(leases.answering(at(1299)), BTreeSet::from([2, 3]));
        assert!(leases.answering(at(1300)).is_empty());
    }

    #[test]
    fn a_lease_is_confirmed_in_each_configuration() {
        let mut leases = Leases::new(1, LENGTH, at(0));
        let round = leases.ask(at(0)).unwrap();
        leases.granted(2, round, 2, at(1));
        assert!(leases.is_confirmed());
        let late = leases.ask(at(2)).unwrap();
        leases.forget_questions();
        leases.granted(2, late, 2, at(3));
        assert!(!leases.is_confirmed() && leases.until() == at(900));
        let round = leases.ask(at(10)).unwrap();
        leases.granted(2, round, 2, at(11));
        assert!(leases.is_confirmed() && leases.until() == at(910));
    }

    #[test]
    fn a_promise_holds_for_one_member() {
        let mut leases = Leases::new(2, LENGTH, at(0));
        assert!(leases.grant(1, at(0)) && !leases.grant(3, at(999)) && leases.ask(at(999)).is_none());
        assert!(leases.permits(1, at(999)) && !leases.permits(3, at(999)) && leases.permits(3, at(1000)));
        leases.release(3);
        assert_eq!(leases.granted_to(at(10)), Some(1));
        leases.release(1);
        assert!(leases.permits(3, at(10)));
    }

    #[test]
    fn a_member_that_has_started_waits() {
        let mut leases = Leases::new(2, LENGTH, at(1000));
        assert!(!leases.permits(3, at(999)) && leases.is_waiting(at(999)));
        assert!(leases.permits(3, at(1000)) && !leases.is_waiting(at(1000)));
        assert!(leases.grant(1, at(500)), "the leader of before is not a new one");
        assert!(leases.permits(1, at(500)));
    }

    #[test]
    fn a_lease_that_is_given_up_is_over_for_both() {
        let mut leases = Leases::new(1, LENGTH, at(0));
        let round = leases.ask(at(0)).unwrap();
        leases.granted(2, round, 2, at(300));
        assert!(leases.until() > at(0) && !leases.permits(2, at(10)));
        leases.end();
        assert!(leases.until() <= at(0) && leases.permits(2, at(10)));
    }
}
