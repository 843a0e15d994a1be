//! Entries of the group's log, and the state that its decided entries result in.
//!
//! A write counts only if it comes from the master that took the registry over last. So a master that does not know yet
//! that another one leads changes nothing. Entries that are applied again change nothing either.

use std::collections::BTreeMap;

use omnipaxos::storage::{Entry, Snapshot};
use serde::{Deserialize, Serialize};

/// Number of a member of the group. Numbers start at 1 and are never used again.
pub type Number = u64;
/// A change of the registry: the key of an entry, and its new value, or `None` to delete it.
pub type Change = (String, Option<Vec<u8>>);

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// A master takes the registry over.
    Lead {
        /// Number of takeovers of the registry, including this one.
        epoch: u64,
        /// Process that takes the registry over.
        claim: Claim,
    },
    /// The leading master changes the registry.
    Write {
        /// Number of takeovers of the registry so far.
        epoch: u64,
        /// Number of the write in this epoch, from 1.
        sequence: u64,
        /// Changes, which are applied all or none.
        changes: Vec<Change>,
    },
}

/// The process that takes the registry over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Number of the member that the process belongs to.
    pub member: Number,
    /// Number of starts of this member so far.
    pub start: u64,
    /// `MasterInfo` of the process as JSON.
    pub info: Vec<u8>,
}

/// State that all decided entries result in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Number of takeovers of the registry so far.
    pub epoch: u64,
    /// Number of the last write in this epoch.
    pub sequence: u64,
    /// Process that took the registry over last; `None` before the first takeover.
    pub leader: Option<Claim>,
    /// Entries of the registry by key.
    pub entries: BTreeMap<String, Vec<u8>>,
}

impl State {
    /// Applies the next decided entry.
    pub fn apply(&mut self, entry: LogEntry) {
        match entry {
            // Two masters may have tried to take over at the same time: the first entry counts.
            LogEntry::Lead { epoch, claim } => {
                if epoch == self.epoch + 1 {
                    (self.epoch, self.sequence, self.leader) = (epoch, 0, Some(claim));
                }
            }
            // A write may be in the log twice, or come from a master that was replaced.
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

/// A compacted part of the log: the state after its beginning, if it starts at the beginning of the log, and the
/// entries after that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// State after the compacted entries; `None` for a part that does not start at the beginning of the log.
    pub state: Option<State>,
    /// Entries that follow; empty if there is a state.
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

    /// Generates logs as masters write them: a master claims the epoch after the last one that it knows, and writes in
    /// order. Entries may be of past epochs, but not of future ones.
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
        /// Checks that applying parts of the log results in the same state as applying the whole, also if the parts
        /// overlap.
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
