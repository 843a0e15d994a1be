//! Joins the replicas of a group to one log: the positions that a quorum has chosen.
//!
//! A value that was chosen is in a majority of all replicas, so among the replicas of any quorum at least one has it. A
//! replica *learns* that a value is chosen after the write, by a message that may be lost. So the log is what any
//! replica has learned, without a gap, and a position that is written but learned nowhere is refused: masters would
//! hold an election on it. The rule of a quorum needs replicas that vote. A recovering replica may have made promises
//! that it has lost, so it is not counted; the positions that it has learned are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::LogError;
use crate::log::{Log, Value};
use crate::messages::Status;
use crate::replica::{Replica, Slot};

/// Joins replicas. `quorum` is the number of them that must vote; `None` for a majority.
///
/// # Errors
/// Too few replicas vote, or a position is missing, not learned, or not the same in all.
pub(crate) fn join(replicas: Vec<Replica>, quorum: Option<usize>) -> Result<Log, LogError> {
    let given = replicas.len();
    check_quorum(&replicas, quorum.unwrap_or(given / 2 + 1))?;
    let all: BTreeSet<u64> = replicas.iter().flat_map(|replica| replica.slots.keys().copied()).collect();
    let values = learned(&replicas)?;
    let first = values.values().filter_map(|(value, _)| match value {
        Value::Truncate(to) => Some(*to),
        _ => None,
    });
    let first = first.max().unwrap_or(0);
    let Some(last) = values.keys().next_back().copied() else { return Err(LogError::Empty { replicas: given }) };
    let is_written =
        |position: u64| replicas.iter().any(|replica| replica.slots.get(&position) == Some(&Slot::Written));
    let mut expected = first;
    for position in all.range(first..).copied() {
        if values.contains_key(&position) && position == expected {
            expected = position.saturating_add(1);
        } else if position == expected && is_written(position) {
            return Err(LogError::Unlearned { position, replicas: given });
        } else if expected <= last {
            return Err(LogError::Hole { position: expected, first, last, replicas: given });
        } else if is_written(position) {
            // A later leader has written after a position that is only promised.
            return Err(LogError::Unlearned { position, replicas: given });
        }
        // The other positions are only promised. No replica of a quorum has a value there, so none is chosen.
    }
    if expected <= last || first > last {
        return Err(LogError::Hole { position: expected, first, last, replicas: given });
    }
    let values = values.into_iter().filter(|(position, _)| *position >= first);
    Ok(Log { last, values: values.map(|(position, (value, _))| (position, value)).collect() })
}

fn check_quorum(replicas: &[Replica], quorum: usize) -> Result<(), LogError> {
    let voting = replicas.iter().filter(|replica| replica.status == Status::Voting).count();
    if voting >= quorum.max(1) {
        return Ok(());
    }
    let others = replicas.iter().filter(|replica| replica.status != Status::Voting);
    let others = others.map(|replica| {
        let state = match replica.status {
            Status::Voting => "voting",
            Status::Recovering => "recovering",
            Status::Starting => "starting",
            Status::Empty => "empty",
        };
        format!("; '{}' is {state}", replica.directory.display())
    });
    Err(LogError::NoQuorum { voting, given: replicas.len(), quorum, others: others.collect() })
}

/// Returns the values that any replica has learned, with its directory. A tombstone is not a value: its position was
/// truncated, so the log starts after it.
fn learned(replicas: &[Replica]) -> Result<BTreeMap<u64, (Value, &Path)>, LogError> {
    let mut values: BTreeMap<u64, (Value, &Path)> = BTreeMap::new();
    for replica in replicas {
        for (position, slot) in &replica.slots {
            let Slot::Learned(value) = slot else { continue };
            if *value == Value::Tombstone {
                continue;
            }
            match values.get(position) {
                Some((known, one)) if known != value => {
                    let (one, other) = ((*one).to_owned(), replica.directory.clone());
                    return Err(LogError::Differs { position: *position, one, other });
                }
                Some(_) => {}
                None => drop(values.insert(*position, (value.clone(), &replica.directory))),
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    //! Invariants, checked by proptest: a log joins to the same values whatever part of its learned messages each
    //! replica has missed, as long as one has each; and a lost position is always detected.

    use proptest::prelude::*;

    use super::*;

    fn replica(name: &str, slots: &[(u64, Slot)]) -> Replica {
        Replica {
            directory: name.into(),
            identity: (0, 0),
            status: Status::Voting,
            slots: slots.iter().cloned().collect(),
            torn: Vec::new(),
        }
    }

    fn append(byte: u8) -> Slot {
        Slot::Learned(Value::Append(vec![byte]))
    }

    fn truncate(to: u64) -> Slot {
        Slot::Learned(Value::Truncate(to))
    }

    fn error(replicas: Vec<Replica>, quorum: Option<usize>) -> String {
        join(replicas, quorum).unwrap_err().to_string()
    }

    #[test]
    fn the_log_is_what_any_replica_has_learned() {
        let nop = || (0, Slot::Learned(Value::Nop));
        let one = replica("a", &[nop(), (1, append(1)), (2, Slot::Written), (3, append(3))]);
        let two = replica("b", &[nop(), (1, Slot::Written), (2, append(2))]);
        let log = join(vec![one, two], Some(2)).unwrap();
        assert_eq!((log.last, log.values.len()), (3, 4));
        assert_eq!(log.values[&2], Value::Append(vec![2]));
    }

    #[test]
    fn a_log_begins_where_it_was_truncated() {
        let old = replica("a", &[(0, Slot::Learned(Value::Nop)), (1, append(1)), (2, append(2))]);
        let new = replica("b", &[(2, append(2)), (3, truncate(2))]);
        let log = join(vec![old, new], None).unwrap();
        assert_eq!(log.values.keys().copied().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn what_is_not_learned_or_missing_is_refused() {
        let one = || (0, append(0));
        assert_eq!(
            error(vec![replica("a", &[one(), (1, Slot::Written)])], None),
            "position 1 is written but not learned: the masters ended while they wrote it, and only an election decides \
             whether it counts"
        );
        assert_eq!(
            error(vec![replica("a", &[one(), (2, append(2))])], None),
            "position 1 is missing: the log goes from position 0 to 2"
        );
        let pair = || vec![replica("a", &[(1, append(1))]), replica("b", &[(2, append(2))])];
        assert_eq!(
            error(pair(), None),
            "position 0 is missing in each of the 2 replicas: the log goes from position 0 to 2"
        );
        assert_eq!(
            error(vec![replica("a", &[one(), (5, truncate(9))])], None),
            "position 9 is missing: the log goes from position 9 to 5"
        );
        let promised = |more: &[(u64, Slot)]| replica("a", &[&[one(), (1, Slot::Promised)], more].concat());
        assert_eq!(join(vec![promised(&[])], None).unwrap().last, 0, "nothing is written there");
        assert!(error(vec![promised(&[(2, Slot::Written)])], None).starts_with("position 2 is written but not"));
        assert!(error(vec![promised(&[(2, append(2))])], None).starts_with("position 1 is missing"));
        let none = error(vec![replica("a", &[(0, Slot::Promised)])], None);
        assert_eq!(none, "no position is learned: no master has led with this log");
    }

    #[test]
    fn replicas_of_different_groups_are_refused() {
        let differ = vec![replica("a", &[(0, append(1))]), replica("b", &[(0, append(2))])];
        assert_eq!(
            error(differ, None),
            "position 0 differs between 'a' and 'b': they are of different groups, or one is damaged"
        );
        let tombstone = || replica("a", &[(0, Slot::Learned(Value::Tombstone))]);
        let log = join(vec![tombstone(), replica("b", &[(0, append(2)), (1, append(3))])], None).unwrap();
        assert_eq!(log.values[&0], Value::Append(vec![2]));
        assert!(error(vec![tombstone(), replica("b", &[(1, append(3))])], None).starts_with("position 0 is missing"));
    }

    #[test]
    fn a_quorum_is_of_replicas_that_vote() {
        let one = || replica("a", &[(0, append(0))]);
        let recovering = || Replica { status: Status::Recovering, ..replica("b", &[(0, append(0))]) };
        let expected = "1 of 2 replicas can vote, but a quorum needs 2: what the masters have written last may be in the \
                        others; 'b' is recovering";
        assert_eq!(error(vec![one(), recovering()], None), expected);
        assert!(error(vec![one()], Some(2)).starts_with("1 of 1 replicas can vote, but a quorum needs 2"));
        assert!(error(vec![recovering()], Some(0)).starts_with("0 of 1 replicas can vote"));
        assert_eq!(join(vec![one(), one(), recovering()], None).unwrap().last, 0);
    }

    proptest! {
        #[test]
        fn any_replica_that_has_learned_a_position_is_enough(
            holders in prop::collection::vec((0..3usize, any::<[bool; 3]>()), 1..20),
            lost in any::<prop::sample::Index>(),
        ) {
            let length = holders.len();
            let mut slots: [Vec<(u64, Slot)>; 3] = Default::default();
            for (position, (holder, also)) in holders.iter().enumerate() {
                for (number, slots) in slots.iter_mut().enumerate() {
                    let knows = *holder == number || also[number];
                    let slot = if knows { append(position as u8) } else { Slot::Written };
                    slots.push((position as u64, slot));
                }
            }
            let replicas = |slots: &[Vec<(u64, Slot)>; 3]| {
                slots.iter().zip(["a", "b", "c"]).map(|(slots, name)| replica(name, slots)).collect::<Vec<_>>()
            };
            let log = join(replicas(&slots), None).unwrap();
            prop_assert_eq!(log.last, length as u64 - 1);
            for (position, value) in &log.values {
                prop_assert_eq!(value, &Value::Append(vec![*position as u8]));
            }
            let lost = lost.index(length);
            for slots in &mut slots {
                slots.retain(|(position, _)| *position != lost as u64);
            }
            // Without the last position the log ends before it; any other gap is an error.
            match join(replicas(&slots), None) {
                Ok(log) => prop_assert!(lost == length - 1 && log.last + 1 == lost as u64),
                Err(LogError::Hole { position, .. }) => prop_assert_eq!(position, lost as u64),
                Err(error) => prop_assert!(matches!(error, LogError::Empty { .. }) && length == 1, "{}", error),
            }
        }
    }
}
