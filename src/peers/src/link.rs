//! Order of messages between two processes.
//!
//! The library's protocol tolerates lost messages, but not old ones that arrive late: over a former connection, or from
//! or for a former process of a member. These are discarded here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of addresses that are remembered. Only members know the group's identity, so other addresses are few.
const LINKS_MAX: usize = 64;

/// State of the messages exchanged with the process at an address.
#[derive(Debug, Default)]
struct Link {
    /// Number of the disk of the process there; 0 before its first message.
    disk: u64,
    start: u64,
    received: u64,
    sent: u64,
}

/// Numbers that identify a message, its sender and its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// Number of the sender's disk.
    pub disk: u64,
    /// Number of times that a process was started with this disk.
    pub start: u64,
    /// `start` of the receiver as far as the sender knows it, or 0.
    pub to: u64,
    /// Number of the message among the sender's messages to this address, from 1.
    pub number: u64,
}

/// State of all addresses that this process exchanges messages with.
#[derive(Debug)]
pub(crate) struct Links {
    disk: u64,
    start: u64,
    links: BTreeMap<String, Link>,
}

impl Links {
    pub(crate) fn new(disk: u64, start: u64) -> Links {
        Links { disk, start, links: BTreeMap::new() }
    }

    /// Returns the link to an address, or `None` if there are too many.
    fn link(&mut self, address: &str) -> Option<&mut Link> {
        if self.links.len() >= LINKS_MAX && !self.links.contains_key(address) {
            return None;
        }
        Some(self.links.entry(address.to_owned()).or_default())
    }

    /// Returns the numbers of the next message to an address.
    pub(crate) fn next(&mut self, address: &str) -> Option<Numbers> {
        let (disk, start) = (self.disk, self.start);
        let link = self.link(address)?;
        link.sent += 1;
        Some(Numbers { disk, start, to: link.start, number: link.sent })
    }

    /// Returns the numbers of a message to a master outside of the group.
    pub(crate) fn unnumbered(&self) -> Numbers {
        Numbers { disk: self.disk, start: self.start, to: 0, number: 0 }
    }

    /// Records that another process is at an address. Messages that are sent from now on are for that one.
    pub(crate) fn meet(&mut self, address: &str, numbers: Numbers) {
        let Some(link) = self.link(address) else { return };
        if link.disk != numbers.disk || link.start < numbers.start {
            (link.disk, link.start, link.received) = (numbers.disk, numbers.start, 0);
        }
    }

    /// Returns whether a message from an address is in order and for this process.
    pub(crate) fn admit(&mut self, address: &str, numbers: Numbers) -> bool {
        if numbers.to != 0 && numbers.to != self.start {
            // The message is for a former process of this member, but shows that the sender is a new process. Otherwise
            // two processes that start at the same time, and receive what the former process of the other has sent,
            // would discard all messages of each other.
            if self.links.get(address).is_some_and(|link| link.disk == numbers.disk) {
                self.meet(address, numbers);
            }
            return false;
        }
        self.meet(address, numbers);
        let Some(link) = self.link(address) else { return false };
        let comes_in_order = link.start == numbers.start && numbers.number > link.received;
        if comes_in_order {
            link.received = numbers.number;
        }
        comes_in_order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_left_out() {
        let (mut one, mut other) = (Links::new(1, 1), Links::new(2, 7));
        let mut from_one = || one.next("b").unwrap();
        let (first, second, third) = (from_one(), from_one(), from_one());
        assert!(other.admit("a", first) && other.admit("a", third));
        assert!(!other.admit("a", second) && !other.admit("a", third), "later ones were received");
        let answer = other.next("a").unwrap();
        assert_eq!(answer, Numbers { disk: 2, start: 7, to: 1, number: 1 });
        assert!(one.admit("b", answer));
        // The next process of the same member.
        let mut again = Links::new(1, 2);
        let (late, new) = (one.next("b").unwrap(), again.next("b").unwrap());
        assert!(other.admit("a", new) && !other.admit("a", late));
        // This answer is for the former process.
        let answer = other.next("a").unwrap();
        assert!(again.admit("b", answer) && !one.admit("b", answer));
        // Another disk starts with new numbers.
        let mut empty = Links::new(3, 1);
        assert!(other.admit("a", empty.next("b").unwrap()));
        assert!(empty.admit("b", other.next("a").unwrap()));
    }

    #[test]
    fn two_that_start_at_the_same_time_find_each_other() {
        let (mut one, mut other) = (Links::new(1, 1), Links::new(2, 1));
        // The messages of both arrive at the processes that follow them.
        let (from_one, from_other) = (one.next("b").unwrap(), other.next("a").unwrap());
        let (mut one, mut other) = (Links::new(1, 2), Links::new(2, 2));
        assert!(one.admit("b", from_other) && other.admit("a", from_one));
        // Each takes the other for its former process.
        assert!(!other.admit("a", one.next("b").unwrap()), "it is for the process before");
        assert!(one.admit("b", other.next("a").unwrap()));
        assert!(other.admit("a", one.next("b").unwrap()));
    }

    #[test]
    fn few_are_remembered() {
        let mut links = Links::new(1, 1);
        let known = (0..1000).filter(|number| links.next(&number.to_string()).is_some()).count();
        assert_eq!(known, LINKS_MAX);
        assert!(!links.admit("x", Numbers { disk: 7, start: 1, to: 0, number: 1 }));
        assert!(links.admit("0", Numbers { disk: 7, start: 1, to: 0, number: 1 }));
    }
}
