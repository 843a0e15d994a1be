//! Which master to try: the one that took us in last, then each that was named, in turn.

use std::str::FromStr;

use wire::client::Address;

/// A text that names no masters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MastersError {
    /// One of the parts is no address.
    #[error("'{0}' is not of the form <host>:<port>; give the master as for example 127.0.0.1:5050")]
    Address(String),
    /// A ZooKeeper URL.
    #[error("'{0}': masters cannot be found through ZooKeeper here; give their addresses, as host:port,host:port")]
    ZooKeeper(String),
}

/// The masters of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Masters {
    named: Vec<Address>,
    /// Which of `named` the next try begins with.
    next: usize,
    /// Who leads, as far as is known.
    leader: Option<Address>,
}

impl FromStr for Masters {
    type Err = MastersError;

    fn from_str(text: &str) -> Result<Masters, MastersError> {
        if text.starts_with("zk://") {
            return Err(MastersError::ZooKeeper(text.to_owned()));
        }
        let part = |part: &str| part.trim().parse().map_err(|_| MastersError::Address(part.to_owned()));
        let named = text.split(',').map(part).collect::<Result<Vec<Address>, _>>()?;
        Ok(Masters { named, next: 0, leader: None })
    }
}

impl Masters {
    /// The masters in the order in which to try them now.
    pub(super) fn in_order(&self) -> Vec<Address> {
        let (before, after) = self.named.split_at(self.next);
        let mut order: Vec<Address> = self.leader.iter().chain(after).chain(before).cloned().collect();
        order.dedup();
        order
    }

    /// This one took us in.
    pub(super) fn found(&mut self, leader: Address) {
        self.leader = Some(leader);
    }

    /// Nobody leads as far as is known; the next try begins with another master.
    pub(super) fn lost(&mut self) {
        if self.leader.take().is_none() {
            self.next = (self.next + 1) % self.named.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(masters: &Masters) -> Vec<String> {
        masters.in_order().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_leader_first_then_each_in_turn() {
        let mut masters: Masters = "a:1, b:2,c:3".parse().unwrap();
        assert_eq!(order(&masters), ["a:1", "b:2", "c:3"]);
        masters.found("x:9".parse().unwrap());
        assert_eq!(order(&masters), ["x:9", "a:1", "b:2", "c:3"]);
        masters.lost();
        assert_eq!(order(&masters), ["a:1", "b:2", "c:3"]);
        masters.lost();
        assert_eq!(order(&masters), ["b:2", "c:3", "a:1"]);
    }

    #[test]
    fn refuses() {
        for text in ["", "a", "a:1,", "a:1,,b:2", "zk://a:1/mesos"] {
            assert!(text.parse::<Masters>().is_err(), "{text}");
        }
    }
}
