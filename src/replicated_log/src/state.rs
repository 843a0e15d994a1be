//! Replays the changes of the state store: variables by name, written whole or as differences, and removed.

use std::collections::BTreeMap;

use prost::Message;

use crate::log::{Log, Value};
use crate::messages::{Entry, Operation, OperationType, Stored};
use crate::svndiff::{self, DiffError};

/// Maximum number of variables. A master has one.
const VARIABLES_MAX: usize = 1000;

/// Reasons why a position of the log cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The value is not a change of a state store.
    #[error("it is not an operation of a state store: {0}")]
    Invalid(&'static str),
    /// The position has a difference of a variable that does not exist.
    #[error("it changes '{0}', which no earlier position has written")]
    NoSource(String),
    /// A difference cannot be applied.
    #[error("the difference of '{name}' cannot be applied")]
    Difference {
        /// Name of the variable.
        name: String,
        /// Error of the difference.
        source: DiffError,
    },
    /// There are more variables than a master writes.
    #[error("there are more than {VARIABLES_MAX} variables")]
    TooMany,
    /// The value of the registry cannot be decoded.
    #[error("the registry is invalid")]
    NoRegistry(#[source] protos::DecodeError),
    /// The registry has fields of another version.
    #[error("{other} of the registry's {total} bytes are of fields that Mesos 1.11 does not have: they would be lost")]
    Unknown {
        /// Length of the registry in bytes.
        total: usize,
        /// Number of bytes in unknown fields.
        other: usize,
    },
}

/// A variable of the state store.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) value: Vec<u8>,
    /// Position of the variable's newest change.
    pub(crate) position: u64,
}

/// Applies all positions of a log, in order.
///
/// # Errors
/// The position that cannot be applied, and why.
pub(crate) fn replay(log: Log) -> Result<BTreeMap<String, Variable>, (u64, StateError)> {
    let mut variables = BTreeMap::new();
    for (position, value) in log.values {
        if let Value::Append(bytes) = value {
            apply(&mut variables, position, &bytes).map_err(|error| (position, error))?;
        }
    }
    Ok(variables)
}

fn apply(variables: &mut BTreeMap<String, Variable>, position: u64, bytes: &[u8]) -> Result<(), StateError> {
    let operation = Operation::decode(bytes).map_err(|_| StateError::Invalid("it is malformed"))?;
    match operation.r#type.and_then(|number| OperationType::try_from(number).ok()) {
        Some(OperationType::Snapshot) => {
            let (name, value) = entry(operation.snapshot)?;
            variables.insert(name, Variable { value, position });
        }
        Some(OperationType::Diff) => {
            let (name, diff) = entry(operation.diff)?;
            let Some(variable) = variables.get_mut(&name) else { return Err(StateError::NoSource(name)) };
            let value =
                svndiff::apply(&variable.value, &diff).map_err(|source| StateError::Difference { name, source })?;
            *variable = Variable { value, position };
        }
        Some(OperationType::Expunge) => {
            let name = operation.expunge.and_then(|expunge| expunge.name);
            variables.remove(&name.ok_or(StateError::Invalid("it names no variable"))?);
        }
        None => return Err(StateError::Invalid("its kind is unknown")),
    }
    if variables.len() > VARIABLES_MAX { Err(StateError::TooMany) } else { Ok(()) }
}

/// Returns the name of a variable, and its value or difference.
fn entry(stored: Option<Stored>) -> Result<(String, Vec<u8>), StateError> {
    match stored.and_then(|stored| stored.entry) {
        Some(Entry { name: Some(name), uuid: Some(_), value: Some(value) }) => Ok((name, value)),
        _ => Err(StateError::Invalid("it has no entry")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Expunge;

    fn stored(name: &str, value: &[u8]) -> Option<Stored> {
        let entry = Entry { name: Some(name.to_owned()), uuid: Some(vec![7; 16]), value: Some(value.to_vec()) };
        Some(Stored { entry: Some(entry) })
    }

    fn snapshot(name: &str, value: &[u8]) -> Operation {
        Operation {
            r#type: Some(OperationType::Snapshot as i32),
            snapshot: stored(name, value),
            ..Operation::default()
        }
    }

    fn diff(name: &str, value: &[u8]) -> Operation {
        Operation { r#type: Some(OperationType::Diff as i32), diff: stored(name, value), ..Operation::default() }
    }

    fn replayed(operations: &[Operation]) -> Result<BTreeMap<String, Variable>, String> {
        let values = operations.iter().map(|operation| Value::Append(operation.encode_to_vec()));
        let values: BTreeMap<u64, Value> = (10..).zip(values).chain([(9_999, Value::Nop)]).collect();
        replay(Log { last: 9_999, values }).map_err(|(position, error)| format!("{position}: {error}"))
    }

    #[test]
    fn variables_are_written_changed_and_removed() {
        // Four bytes of the source, then four `d`.
        let change = b"SVN\0\x00\x0c\x08\x03\x04\x04\x04\x84dddd";
        let expunge = Expunge { name: Some("b".to_owned()) };
        let removal =
            Operation { r#type: Some(OperationType::Expunge as i32), expunge: Some(expunge), ..Operation::default() };
        let all = [snapshot("a", b"aaaabbbbcccc"), snapshot("b", b"x"), diff("a", change), removal];
        let variables = replayed(&all).unwrap();
        assert_eq!(variables.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!((variables["a"].value.as_slice(), variables["a"].position), (b"bbbbdddd".as_slice(), 12));
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_position() {
        let refused = |operations: &[Operation]| replayed(operations).err().unwrap();
        assert_eq!(refused(&[diff("a", b"SVN\0")]), "10: it changes 'a', which no earlier position has written");
        assert_eq!(
            refused(&[snapshot("a", b""), diff("a", b"SVN\x02")]),
            "11: the difference of 'a' cannot be applied"
        );
        assert_eq!(
            refused(&[Operation::default()]),
            "10: it is not an operation of a state store: its kind is unknown"
        );
        let empty = Operation { r#type: Some(OperationType::Snapshot as i32), ..Operation::default() };
        assert_eq!(refused(&[empty]), "10: it is not an operation of a state store: it has no entry");
        let many: Vec<Operation> = (0..=VARIABLES_MAX).map(|number| snapshot(&number.to_string(), b"")).collect();
        assert!(refused(&many).ends_with("there are more than 1000 variables"));
    }
}
