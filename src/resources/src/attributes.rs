//! Parses and formats the agent's `--attributes`: `rack:r1;level:10;ports:[1-2]`.

use protos::mesos;
use protos::mesos::value::{Scalar, Text, Type};

use crate::value_text::{Written, read, tight};
use crate::{Amount, ItemSet, Ranges, ValueTextError};

/// An error of parsing the attribute flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// An entry is not `name:value`.
    #[error("Invalid attribute key:value pair '{0}'")]
    Pair(String),
    /// The value of an attribute is malformed.
    #[error("Failed to parse attribute {name} text {text} error {why}")]
    Value {
        /// Name of the attribute.
        name: String,
        /// Value as given.
        text: String,
        /// Error of the value.
        why: ValueTextError,
    },
    /// The value is a set, an inverted range, or a number out of range.
    #[error("Bad type for attribute {name} text {text} type {kind}")]
    Kind {
        /// Name of the attribute.
        name: String,
        /// Value as given.
        text: String,
        /// Name of the type.
        kind: &'static str,
    },
}

/// Parses attributes: a number is a SCALAR, brackets are RANGES, all else is TEXT. A name may occur more than once, and
/// a value may contain `:`. Blanks within values are removed.
///
/// # Errors
/// See [`AttributeError`]; it names the first invalid entry.
pub fn parse_attributes(text: &str) -> Result<Vec<mesos::Attribute>, AttributeError> {
    let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(parse_attribute).collect()
}

fn parse_attribute(entry: &str) -> Result<mesos::Attribute, AttributeError> {
    let pair = entry.split_once(':').filter(|(name, value)| !name.trim().is_empty() && !value.is_empty());
    let (name, text) = pair.ok_or_else(|| AttributeError::Pair(entry.to_owned()))?;
    let (name, text) = (name.trim().to_owned(), text.to_owned());
    let mut attribute = mesos::Attribute { name: name.clone(), ..Default::default() };
    match read(&text) {
        Err(why) => return Err(AttributeError::Value { name, text, why }),
        Ok(Written::Set(_)) => return Err(AttributeError::Kind { name, text, kind: "SET" }),
        Ok(Written::Number(number)) if !number.is_finite() => {
            return Err(AttributeError::Kind { name, text, kind: "SCALAR" });
        }
        Ok(Written::Number(value)) => {
            attribute.set_type(Type::Scalar);
            attribute.scalar = Some(Scalar { value });
        }
        Ok(Written::Ranges(pairs)) if pairs.iter().any(|(begin, end)| begin > end) => {
            return Err(AttributeError::Kind { name, text, kind: "RANGES" });
        }
        Ok(Written::Ranges(pairs)) => {
            attribute.set_type(Type::Ranges);
            attribute.ranges = Some(Ranges::new(pairs).to_proto());
        }
        Ok(Written::Text(value)) => {
            attribute.set_type(Type::Text);
            attribute.text = Some(Text { value });
        }
    }
    Ok(attribute)
}

/// Returns an attribute's value as text, as endpoints show it: `10`, `[1-2, 4-5]`, `r1`. It is empty if the value is
/// missing.
#[must_use]
pub fn attribute_value(attribute: &mesos::Attribute) -> String {
    match attribute.r#type() {
        Type::Scalar => attribute.scalar.as_ref().map(|s| Amount::from_f64(s.value).to_string()),
        Type::Ranges => attribute.ranges.as_ref().map(|r| Ranges::from_proto(r).to_string()),
        Type::Set => attribute.set.as_ref().map(|s| ItemSet::new(&s.item).to_string()),
        Type::Text => attribute.text.as_ref().map(|t| t.value.clone()),
    }
    .unwrap_or_default()
}

/// Formats attributes as the text that [`parse_attributes`] parses.
#[must_use]
pub fn attributes_text(attributes: &[mesos::Attribute]) -> String {
    let value = |a: &mesos::Attribute| match (a.r#type(), &a.ranges) {
        (Type::Ranges, Some(ranges)) => tight(&Ranges::from_proto(ranges)),
        _ => attribute_value(a),
    };
    attributes.iter().map(|a| format!("{}:{}", a.name, value(a))).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, shown) in [
            ("rack:r1;level:10;ports:[1-2]", "rack:r1;level:10;ports:[1-2]"),
            (" rack : r 1 ;\nlevel:1.50\n", "rack:r1;level:1.5"),
            ("url:http://a:80", "url:http://a:80"),
            ("a:1;a:2;a:x", "a:1;a:2;a:x"),
            ("span:[7-9, 1-2,3-4]", "span:[1-4,7-9]"),
            ("", ""),
        ] {
            assert_eq!(attributes_text(&parse_attributes(text).unwrap()), shown, "{text}");
        }
        let types: Vec<_> =
            parse_attributes("a:x;b:3.5;c:[1-5]").unwrap().iter().map(mesos::Attribute::r#type).collect();
        assert_eq!(types, [Type::Text, Type::Scalar, Type::Ranges]);
    }

    #[test]
    fn refuses_with_a_reason() {
        for (text, why) in [
            ("rack", "Invalid attribute key:value pair 'rack'"),
            ("rack:", "Invalid attribute key:value pair 'rack:'"),
            (":r1", "Invalid attribute key:value pair ':r1'"),
            ("a:{x}", "Bad type for attribute a text {x} type SET"),
            ("a:[2-1]", "Bad type for attribute a text [2-1] type RANGES"),
            ("a:1e999", "Bad type for attribute a text 1e999 type SCALAR"),
            ("a:[1", "Failed to parse attribute a text [1 error Mismatched brackets"),
        ] {
            assert_eq!(parse_attributes(text).unwrap_err().to_string(), why, "{text}");
        }
    }
}
