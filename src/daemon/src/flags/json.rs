//! Parses flags whose value is a message as JSON. An unknown key is rejected: it is probably misspelt, and its value
//! would have no effect.

use protos::Described;
use protos::json::{Dialect, FromJson, UnknownKey, Value, unknown_key};

use super::FlagError;

/// Parses a flag's value as a message.
///
/// # Errors
/// The text is not JSON, not of this message, or has an unknown key.
pub(crate) fn message<M: FromJson + Described>(name: &'static str, text: &str) -> Result<M, FlagError> {
    read(text).map_err(|why| FlagError::Refused { name, why })
}

/// Parses a part of a flag's value as a message.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn read<M: FromJson + Described>(text: &str) -> Result<M, String> {
    // This comes first, because a misspelt key also causes the error of a missing required field.
    if let Some(UnknownKey { place, key, known }) =
        unknown_key::<M>(text.as_bytes()).map_err(|error| error.to_string())?
    {
        return Err(unknown(&place, &key, known));
    }
    M::from_json(text.as_bytes(), Dialect::V0).map_err(|error| error.to_string())
}

/// Returns the error text for an unknown key.
pub(crate) fn unknown(place: &str, key: &str, known: &[&str]) -> String {
    let place = if place.is_empty() { String::new() } else { format!(" in '{place}'") };
    let near = known.iter().map(|name| (strsim::osa_distance(name, key), name)).min();
    let near = near.filter(|(distance, name)| *distance <= 1 + name.len() / 4);
    let meant = near.map(|(_, name)| format!(", did you mean '{name}'?")).unwrap_or_default();
    format!("the key '{key}'{place} is not known{meant}")
}

/// Checks that an object, which is not a message, has only known keys.
///
/// # Errors
/// The first unknown key.
pub(crate) fn only(value: &Value, place: &str, known: &[&str]) -> Result<(), String> {
    let keys = value.as_object().into_iter().flat_map(|object| object.keys());
    match keys.into_iter().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unknown(place, key, known)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos;

    use super::*;

    #[test]
    fn slips_are_named_before_what_is_missing() {
        let limits = |text: &str| read::<mesos::RateLimits>(text).map(|limits| limits.limits.len());
        assert_eq!(limits(r#"{"limits": [{"principal": "a", "qps": 1}]}"#), Ok(1));
        for (text, why) in [
            (
                r#"{"limits": [{"principal": "a", "qbs": 1}]}"#,
                "the key 'qbs' in 'limits[0]' is not known, did you mean 'qps'?",
            ),
            (
                r#"{"limits": [{"principle": "a"}]}"#,
                "the key 'principle' in 'limits[0]' is not known, did you mean 'principal'?",
            ),
            (r#"{"something": 1}"#, "the key 'something' is not known"),
            (r#"{"limits": [{}]}"#, "Missing required fields: limits[0].principal"),
        ] {
            assert_eq!(limits(text), Err(why.to_owned()));
        }
        assert!(limits("{").is_err() && limits("[]").is_err());
        let value = Value::parse(br#"{"a": 1, "bb": 2}"#).unwrap();
        assert_eq!(only(&value, "x", &["a", "bb"]), Ok(()));
        assert_eq!(
            only(&value, "x", &["a", "bc"]),
            Err("the key 'bb' in 'x' is not known, did you mean 'bc'?".to_owned())
        );
    }
}
