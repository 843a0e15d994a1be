//! What the group's log holds, and the state that its decided entries make.
//!
//! A write counts only if it comes from the master that has taken the registry over last: a master that does not know
//! yet that another one leads changes nothing.

use std::collections::BTreeMap;

use omnipaxos::storage::{Entry, Snapshot};
use serde::{Deserialize, Serialize};

/// Number of a member of the group: from 1, and never used again.
pub type Number = u64;
/// A change of the registry: the key of an entry, and its new value, or none to delete it.
pub type Change = (String, Option<Vec<u8>>);

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// A master takes the registry over.
    Lead(Claim),
    /// The leading master changes the registry.
    Write {
        /// The number of times that the registry had been taken over.
        epoch: u64,
        /// Number of the write in this epoch, from 1.
        sequence: u64,
        /// All of it, or nothing.
        changes: Vec<Change>,
    },
}

/// The process that takes the registry over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The member whose process it is.
    pub member: Number,
    /// How many times this member has been started.
    pub start: u64,
    /// Its `MasterInfo` as JSON.
    pub info: Vec<u8>,
}

/// What all decided entries together make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How many times the registry has been taken over.
    pub epoch: u64,
    /// Number of the last write in this epoch.
    pub sequence: u64,
    /// The process that took it over last.
    pub leader: Option<Claim>,
    /// The registry's entries.
    pub entries: BTreeMap<String, Vec<u8>>,
}

impl State {
    /// Applies the next decided entry.
    pub fn apply(&mut self, entry: LogEntry) {
        match entry {
            LogEntry::Lead(claim) if self.leader.as_ref() == Some(&claim) => {}
            LogEntry::Lead(claim) => {
                self.epoch += 1;
                self.sequence = 0;
                self.leader = Some(claim);
            }
            // A write may be in the log twice, or come from a master that has been replaced.
            LogEntry::Write { epoch, sequence, changes } => {
                if epoch == self.epoch && sequence == self.sequence + 1 {
                    self.sequence = sequence;
                    self.change(changes);
                }
            }
        }
    }

    fn change(&mut self, changes: Vec<Change>) {
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.entries.insert(key, value)),
                None => drop(self.entries.remove(&key)),
            }
        }
    }
}

/// A part of the log in short: the state that its beginning has made, if it begins there, and entries after that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// None for a part that does not begin with the log.
    pub state: Option<State>,
    /// What follows; empty where there is a state.
    pub entries: Vec<LogEntry>,
}

impl Snapshot<LogEntry> for Compacted {
    fn create(entries: &[LogEntry]) -> Compacted {
        Compacted { state: None, entries: entries.to_vec() }
    }

    fn merge(&mut self, delta: Compacted) {
        if let Some(state) = delta.state {
            *self = Compacted { state: Some(state), entries: Vec::new() };
        }
        match &mut self.state {
            Some(state) => delta.entries.into_iter().for_each(|entry| state.apply(entry)),
            None => self.entries.extend(delta.entries),
        }
    }

    fn use_snapshots() -> bool {
        true
    }
}

impl Entry for LogEntry {
    type Snapshot = Compacted;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(member: Number, start: u64) -> Claim {
        Claim { member, start, info: Vec::new() }
    }

    fn write(epoch: u64, sequence: u64, key: &str) -> LogEntry {
        LogEntry::Write { epoch, sequence, changes: vec![(key.to_owned(), Some(vec![1]))] }
    }

    #[test]
    fn writes_of_a_replaced_master_count_for_nothing() {
        let mut state = State::default();
        state.apply(write(0, 2, "no master has taken it over"));
        for entry in [LogEntry::Lead(claim(1, 7)), write(1, 1, "a"), LogEntry::Lead(claim(2, 8)), write(1, 2, "b")] {
            state.apply(entry);
        }
        assert_eq!(state.entries.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!((state.epoch, state.sequence), (2, 0));
    }

    #[test]
    fn a_write_that_is_in_the_log_twice_counts_once_and_in_order() {
        let mut state = State::default();
        let delete = LogEntry::Write { epoch: 1, sequence: 2, changes: vec![("a".to_owned(), None)] };
        for entry in [LogEntry::Lead(claim(1, 7)), delete.clone(), write(1, 1, "a"), delete, write(1, 1, "a")] {
            state.apply(entry);
        }
        assert!(state.entries.is_empty() && state.sequence == 2);
    }

    #[test]
    fn the_same_claim_again_takes_nothing_over() {
        let mut state = State::default();
        for entry in [LogEntry::Lead(claim(1, 7)), write(1, 1, "a"), LogEntry::Lead(claim(1, 7))] {
            state.apply(entry);
        }
        assert_eq!((state.epoch, state.sequence), (1, 1));
    }

    #[test]
    fn parts_of_the_log_add_up() {
        let entries = [LogEntry::Lead(claim(1, 7)), write(1, 1, "a"), write(1, 2, "b"), write(1, 3, "c")];
        let mut whole = State::default();
        entries.iter().cloned().for_each(|entry| whole.apply(entry));
        let mut delta = Compacted::create(&entries[1..2]);
        delta.merge(Compacted::create(&entries[2..]));
        let mut base = Compacted { state: Some(State::default()), entries: Vec::new() };
        base.merge(Compacted::create(&entries[..1]));
        base.merge(delta);
        assert_eq!(base, Compacted { state: Some(whole), entries: Vec::new() });
    }
}
