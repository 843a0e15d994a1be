//! Flags whose value is a message as JSON. A key that the message does not have is refused: it is a slip, and what it should say would
//! not be in force.

use protos::Described;
use protos::json::{Dialect, FromJson, UnknownKey, Value, unknown_key};

use super::{FlagError, nearest};

/// Reads a flag's value.
///
/// # Errors
/// No JSON, not this message, or a key that it does not have.
pub(crate) fn message<M: FromJson + Described>(name: &'static str, text: &str) -> Result<M, FlagError> {
    read(text).map_err(|why| FlagError::Refused { name, why })
}

/// The same for a part of a value.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read<M: FromJson + Described>(text: &str) -> Result<M, String> {
    let message = M::from_json(text.as_bytes(), Dialect::V0).map_err(|error| error.to_string())?;
    match unknown_key::<M>(text.as_bytes()).map_err(|error| error.to_string())? {
        Some(UnknownKey { place, key, known }) => Err(unknown(&place, &key, known)),
        None => Ok(message),
    }
}

/// The words for a key that is not known.
pub(crate) fn unknown(place: &str, key: &str, known: &[&str]) -> String {
    let place = if place.is_empty() { String::new() } else { format!(" in '{place}'") };
    let meant = nearest(key, known.iter().copied()).map(|name| format!(", did you mean '{name}'?")).unwrap_or_default();
    format!("the key '{key}'{place} is not known{meant}")
}

/// Checks that an object, which is no message, has no other keys.
///
/// # Errors
/// The first key that it should not have.
pub(crate) fn only(value: &Value, place: &str, known: &[&str]) -> Result<(), String> {
    let keys = value.as_object().into_iter().flat_map(|object| object.keys());
    match keys.into_iter().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unknown(place, key, known)),
        None => Ok(()),
    }
}
