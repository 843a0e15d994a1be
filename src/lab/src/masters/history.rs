//! Checks that a history of reads and writes of a key is linearizable: that each operation can have happened at one
//! instant between its call and its answer, so that every read returns what was written last.
//!
//! It is the search of Wing and Gong, "Testing and verifying concurrent objects" (1993), with a set of visited states
//! as in Lowe's "Testing for linearizability" (2017). The code does not depend on masters.

use std::collections::{BTreeMap, BTreeSet};

/// The most states of the search that are examined for one key. Histories of campaigns take some thousands; one that
/// takes more is reported as a violation, because no order was found.
const PLACES_MAX: usize = 20_000;

/// An operation of a client on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Key of the operation.
    pub key: String,
    /// What the operation does.
    pub kind: OperationKind,
    /// Step of the run in which the operation was called.
    pub called: u64,
    /// Step of the run in which the operation was answered; `None` if it is unknown whether it has happened.
    pub answered: Option<u64>,
}

/// The kinds of operations, with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Sets the key to this value; with `None`, deletes it.
    Write(Option<u64>),
    /// Has read this value; `None` if the key was absent. A read without an answer is not an operation.
    Read(Option<u64>),
}

/// Returns the first key whose history is not linearizable, with its operations in the order of their calls.
pub fn first_violation(history: &[Operation]) -> Option<(String, Vec<Operation>)> {
    let mut keys: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    history.iter().for_each(|operation| keys.entry(&operation.key).or_default().push(operation));
    let is_violated = |(_, operations): &(&str, Vec<&Operation>)| !is_linearizable(operations);
    let (key, operations) = keys.into_iter().find(is_violated)?;
    let mut operations: Vec<Operation> = operations.into_iter().cloned().collect();
    operations.sort_by_key(|operation| operation.called);
    Some((key.to_owned(), operations))
}

/// Returns whether the operations of one key are linearizable. At first the key is absent.
///
/// A write that may or may not have happened, and that no read returns before the next write, can be removed from any
/// order. So it is placed only before a read that returns its value. Of several ones with the same value the first
/// takes that place, because it can be wherever a later one can.
fn is_linearizable(operations: &[&Operation]) -> bool {
    let mut search = Search::default();
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.called);
    for operation in operations {
        match (&operation.kind, operation.answered) {
            (kind, Some(answered)) => search.answered.push((operation.called, answered, kind.clone())),
            (OperationKind::Write(value), None) => search.open.entry(*value).or_default().push(operation.called),
            (OperationKind::Read(_), None) => {}
        }
    }
    let mut seen = BTreeSet::new();
    let mut open = vec![Place::default()];
    while let Some(place) = open.pop() {
        if place.first == search.answered.len() {
            return true;
        }
        for next in search.after(&place) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if seen.len() > PLACES_MAX {
            return false;
        }
    }
    false
}

/// The operations of one key, as the search needs them.
#[derive(Debug, Default)]
struct Search {
    /// Answered operations with their call and their answer, in the order of their calls.
    answered: Vec<(u64, u64, OperationKind)>,
    /// Calls of writes without an answer, by their values.
    open: BTreeMap<Option<u64>, Vec<u64>>,
}

/// A state of the search: which operations have happened, and the value of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Index of the first answered operation that has not happened.
    first: usize,
    /// Indices after `first` of operations that have happened.
    more: BTreeSet<usize>,
    /// Number of writes without an answer that have happened, by their values.
    used: BTreeMap<Option<u64>, usize>,
    value: Option<u64>,
}

impl Search {
    /// Returns the states after one more answered operation.
    fn after(&self, place: &Place) -> Vec<Place> {
        let left = || (place.first..self.answered.len()).filter(|at| !place.more.contains(at));
        // An operation cannot be next if another one was answered before its call. Those that are called after that
        // answer need not be examined: there are thousands.
        let mut end = u64::MAX;
        for at in left() {
            if self.answered[at].0 > end {
                break;
            }
            end = end.min(self.answered[at].1);
        }
        let next = |at: usize| match self.answered[at].2 {
            OperationKind::Write(value) => Some(place.with(at, value)),
            OperationKind::Read(value) => {
                let used = place.used.get(&value).copied().unwrap_or_default();
                let called = self.open.get(&value).and_then(|calls| calls.get(used))?;
                let mut next = place.with(at, value);
                next.used.insert(value, used + 1);
                (*called <= end).then_some(next)
            }
        };
        let possible = || left().take_while(|at| self.answered[*at].0 <= end);
        // A read of the present value does not exclude any other operation: it is next, and no alternative is tried.
        let free = possible().find(|at| self.answered[*at].2 == OperationKind::Read(place.value));
        match free {
            Some(at) => vec![place.with(at, place.value)],
            None => possible().filter_map(next).collect(),
        }
    }
}

impl Place {
    fn with(&self, at: usize, value: Option<u64>) -> Place {
        let mut next = Place { value, ..self.clone() };
        next.more.insert(at);
        while next.more.remove(&next.first) {
            next.first += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operation(kind: OperationKind, called: u64, answered: u64) -> Operation {
        let answered = (answered > 0).then_some(answered);
        Operation { key: "k".to_owned(), kind, called, answered }
    }

    fn write(value: u64, called: u64, answered: u64) -> Operation {
        operation(OperationKind::Write(Some(value)), called, answered)
    }

    fn delete(called: u64, answered: u64) -> Operation {
        operation(OperationKind::Write(None), called, answered)
    }

    fn read(value: u64, called: u64, answered: u64) -> Operation {
        operation(OperationKind::Read((value > 0).then_some(value)), called, answered)
    }

    fn holds(history: &[Operation]) -> bool {
        first_violation(history).is_none()
    }

    #[test]
    fn what_happened_in_some_order_is_linearizable() {
        assert!(holds(&[]));
        assert!(holds(&[read(0, 1, 2), write(1, 3, 4), read(1, 5, 6), delete(7, 8), read(0, 9, 10)]));
        // Two concurrent writes can happen in both orders.
        assert!(holds(&[write(1, 1, 9), write(2, 2, 8), read(1, 10, 11)]));
        assert!(holds(&[write(1, 1, 9), write(2, 2, 8), read(2, 10, 11)]));
        // A read returns a write that has not been answered, and a concurrent read does not.
        assert!(holds(&[write(1, 1, 9), read(1, 2, 4), read(0, 2, 5)]));
    }

    #[test]
    fn an_old_value_is_refused() {
        assert!(!holds(&[write(1, 1, 2), read(0, 3, 4)]), "an acknowledged write is lost");
        assert!(!holds(&[write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)]), "a stale read");
        assert!(!holds(&[write(1, 1, 9), read(1, 2, 3), read(0, 4, 5)]), "what was read is gone again");
        assert!(!holds(&[write(1, 1, 2), delete(3, 4), read(1, 5, 6)]), "what was deleted is back");
        assert!(!holds(&[read(7, 1, 2)]), "nothing has written it");
        assert!(!holds(&[read(1, 1, 2), write(1, 3, 4)]), "it was read before it was written");
    }

    #[test]
    fn two_reads_see_one_order() {
        let writes = [write(1, 1, 20), write(2, 1, 20)];
        let with = |reads: [Operation; 2]| holds(&[&writes[..], &reads[..]].concat());
        assert!(with([read(1, 2, 3), read(2, 4, 5)]) && with([read(2, 2, 3), read(1, 4, 5)]));
        let reads = [read(1, 2, 3), read(2, 4, 5), read(1, 6, 7)];
        assert!(!holds(&[&writes[..], &reads[..]].concat()), "a value comes back that was replaced");
    }

    #[test]
    fn a_write_without_an_answer_happens_once_or_never() {
        assert!(holds(&[write(1, 1, 2), write(2, 3, 0), read(1, 5, 6)]));
        assert!(holds(&[write(1, 1, 2), write(2, 3, 0), read(1, 5, 6), read(2, 7, 8)]), "it happens late");
        assert!(!holds(&[write(1, 1, 2), write(2, 3, 0), read(2, 5, 6), read(1, 7, 8)]), "it is undone");
        let twice = [write(2, 1, 0), read(2, 2, 3), write(3, 4, 5), read(3, 6, 7), read(2, 8, 9)];
        assert!(!holds(&twice), "it happens twice");
        assert!(!holds(&[read(2, 1, 2), write(2, 3, 0)]), "it happens before it was called");
        assert!(holds(&[write(1, 1, 2), delete(3, 0), read(0, 5, 6)]));
        assert!(!holds(&[write(1, 1, 2), delete(3, 0), read(0, 5, 6), read(1, 7, 8)]));
    }

    #[test]
    fn keys_are_apart_and_the_wrong_one_is_named() {
        let mut history = vec![write(1, 1, 2), read(1, 3, 4)];
        history.extend([write(2, 5, 6), read(1, 7, 8)].map(|one| Operation { key: "l".to_owned(), ..one }));
        let (key, operations) = first_violation(&history).unwrap();
        assert_eq!((key.as_str(), operations.len()), ("l", 2));
    }

    /// Returns whether some order of all answered operations and some of the others is valid, which is the definition.
    fn holds_by_trial(history: &[Operation], value: Option<u64>, left: &BTreeSet<usize>) -> bool {
        if left.iter().all(|at| history[*at].answered.is_none()) {
            return true;
        }
        let first_answer = left.iter().filter_map(|at| history[*at].answered).min().unwrap_or(u64::MAX);
        left.iter().filter(|at| history[**at].called <= first_answer).any(|at| {
            let mut rest = left.clone();
            rest.remove(at);
            match history[*at].kind {
                OperationKind::Write(next) => holds_by_trial(history, next, &rest),
                OperationKind::Read(seen) => seen == value && holds_by_trial(history, value, &rest),
            }
        })
    }

    fn histories() -> impl Strategy<Value = Vec<Operation>> {
        let one = (0u8..3, 0u64..3, 1u64..12, 0u64..6);
        prop::collection::vec(one, 0..7).prop_map(|choices| {
            let made = choices.into_iter().enumerate().map(|(n, (kind, value, called, length))| {
                // Makes all instants different.
                let (called, length) = (called * 20 + n as u64, length * 20);
                let answered = if length == 0 { 0 } else { called + length + 7 };
                match kind {
                    0 => write(value + 1, called, answered),
                    1 => delete(called, answered),
                    _ => read(value, called, answered.max(called + 7)),
                }
            });
            made.collect()
        })
    }

    proptest! {
        /// The search gives the same answer as a trial of all orders.
        #[test]
        fn the_search_is_complete(history in histories()) {
            let all = (0..history.len()).collect();
            prop_assert_eq!(holds(&history), holds_by_trial(&history, None, &all));
        }
    }
}
