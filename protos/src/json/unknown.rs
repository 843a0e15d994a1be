//! Finds keys of a JSON document that its message does not have.
//!
//! Readers ignore them, as Mesos does. In documents that operators write by hand they are mostly mistakes.

use std::collections::BTreeMap;

use super::generated::MESSAGES;
use super::{JsonError, Value};
use crate::schema::{Described, Kind, Label};

/// A key without a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// Path of the object with the key: `limits[0]`; empty for the document itself.
    pub place: String,
    /// Text of the key.
    pub key: String,
    /// Fields of the object's message.
    pub known: &'static [&'static str],
}

/// Returns the first key of a document, as a v0 message, that has no field; `None` if all have one.
///
/// # Errors
/// The text is not JSON.
pub fn unknown_key<M: Described>(text: &[u8]) -> Result<Option<UnknownKey>, JsonError> {
    match Value::parse(text)? {
        Value::Object(object) => Ok(in_message(M::INDEX, &object, "")),
        _ => Ok(None),
    }
}

fn in_message(index: u16, object: &BTreeMap<String, Value>, place: &str) -> Option<UnknownKey> {
    let info = &MESSAGES[usize::from(index)];
    object.iter().find_map(|(key, value)| {
        let Some(order) = info.names.iter().position(|name| name == key) else {
            return Some(UnknownKey { place: place.to_owned(), key: key.clone(), known: info.names });
        };
        let field = info.fields.iter().find(|field| usize::from(field.order) == order)?;
        let path = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        // Keys of a map are arbitrary.
        (field.kind == Kind::Message && field.label != Label::Map)
            .then(|| in_value(field.child, value, &path))
            .flatten()
    })
}

fn in_value(index: u16, value: &Value, place: &str) -> Option<UnknownKey> {
    match value {
        Value::Object(object) => in_message(index, object, place),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(number, item)| in_value(index, item, &format!("{place}[{number}]")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos;

    fn found<M: Described>(text: &str) -> Option<(String, String)> {
        unknown_key::<M>(text.as_bytes()).unwrap().map(|unknown| (unknown.place, unknown.key))
    }

    #[test]
    fn the_first_key_without_a_field_is_found_with_its_place() {
        let some = |place: &str, key: &str| Some((place.to_owned(), key.to_owned()));
        let limits = r#"{"limits": [{"principal": "a", "qps": 1.5, "capacity": null}], "aggregate_default_qps": 1}"#;
        assert_eq!(found::<mesos::RateLimits>(limits), None);
        assert_eq!(found::<mesos::RateLimits>(r#"{"limit": []}"#), some("", "limit"));
        assert_eq!(found::<mesos::RateLimits>(r#"{"limits": [{}, {"qbs": 1}]}"#), some("limits[1]", "qbs"));
        let label = r#"{"labels": {"labels": [{"key": "a", "val": "b"}]}, "name": "t"}"#;
        assert_eq!(found::<mesos::TaskInfo>(label), some("labels.labels[0]", "val"));
        // Keys of maps are arbitrary, and obsolete fields are known.
        assert_eq!(found::<mesos::TaskInfo>(r#"{"limits": {"anything": {"value": 1}}}"#), None);
        assert_eq!(found::<mesos::Resource>(r#"{"name": "cpus", "role": "r", "reservation": {}}"#), None);
        assert!(unknown_key::<mesos::RateLimits>(b"{").is_err());
        let known = unknown_key::<mesos::Credential>(br#"{"secrt": 1}"#).unwrap().unwrap().known;
        assert_eq!(known, ["principal", "secret"]);
    }
}
