//! What the group's log holds, and the state that its decided entries make.
//!
//! A write counts only if it comes from the master that has taken the registry over last: a master that does not know
//! yet that another one leads changes nothing. Entries that are applied again change nothing either.

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
    Lead {
        /// The number of times that the registry has been taken over, with this one.
        epoch: u64,
        /// Which master.
        claim: Claim,
    },
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
            // Two masters may have tried it at the same time: the first one counts.
            LogEntry::Lead { epoch, claim } => {
                if epoch == self.epoch + 1 {
                    (self.epoch, self.sequence, self.leader) = (epoch, 0, Some(claim));
                }
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
    use proptest::prelude::*;

    use super::*;

    fn lead(epoch: u64, member: Number) -> LogEntry {
        LogEntry::Lead { epoch, claim: Claim { member, start: 1, info: Vec::new() } }
    }

    fn write(epoch: u64, sequence: u64, key: &str) -> LogEntry {
        LogEntry::Write { epoch, sequence, changes: vec![(key.to_owned(), Some(vec![1]))] }
    }

    #[test]
    fn writes_of_a_replaced_master_count_for_nothing() {
        let mut state = State::default();
        state.apply(write(0, 2, "no master has taken it over"));
        for entry in [lead(1, 1), write(1, 1, "a"), lead(2, 2), write(1, 2, "b")] {
            state.apply(entry);
        }
        assert_eq!(state.entries.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!((state.epoch, state.sequence), (2, 0));
    }

    #[test]
    fn of_two_masters_the_first_one_takes_the_registry_over() {
        let mut state = State::default();
        [lead(1, 1), lead(1, 2)].into_iter().for_each(|entry| state.apply(entry));
        assert_eq!(state.leader.map(|claim| claim.member), Some(1));
    }

    #[test]
    fn a_write_that_is_in_the_log_twice_counts_once_and_in_order() {
        let mut state = State::default();
        let delete = LogEntry::Write { epoch: 1, sequence: 2, changes: vec![("a".to_owned(), None)] };
        for entry in [lead(1, 1), delete.clone(), write(1, 1, "a"), delete, write(1, 1, "a")] {
            state.apply(entry);
        }
        assert!(state.entries.is_empty() && state.sequence == 2);
    }

    /// Logs as masters make them: one claims the epoch after the last one that it knows, and writes in order. Entries
    /// of the past are among them, and none of the future.
    fn entries() -> impl Strategy<Value = Vec<LogEntry>> {
        prop::collection::vec((any::<bool>(), 0u64..3, "[ab]"), 0..30).prop_map(|choices| {
            let mut state = State::default();
            let entry = |(leads, late, key): (bool, u64, String)| {
                let entry = match leads {
                    true => lead((state.epoch + 1).saturating_sub(late), late),
                    false => write(state.epoch, (state.sequence + 1).saturating_sub(late), &key),
                };
                state.apply(entry.clone());
                entry
            };
            choices.into_iter().map(entry).collect()
        })
    }

    proptest! {
        /// Parts of the log make the same state as the whole, also if they overlap.
        #[test]
        fn parts_add_up(entries in entries(), cuts in prop::collection::vec(0usize..30, 2)) {
            let mut whole = State::default();
            entries.iter().cloned().for_each(|entry| whole.apply(entry));
            let (from, to) = (cuts[0].min(entries.len()), cuts[1].min(entries.len()));
            let mut base = Compacted { state: Some(State::default()), entries: Vec::new() };
            base.merge(Compacted::create(&entries[..from.max(to)]));
            let mut rest = Compacted::create(&entries[from.min(to)..from.max(to)]);
            rest.merge(Compacted::create(&entries[from.max(to)..]));
            base.merge(rest);
            prop_assert_eq!(base, Compacted { state: Some(whole), entries: Vec::new() });
        }
    }
}
