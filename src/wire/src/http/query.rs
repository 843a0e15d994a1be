//! Percent-encoding and query strings. It does not know which keys an endpoint reads.

use std::collections::BTreeMap;

/// A text that is not percent-encoded UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not percent-encoded text")]
pub struct QueryError(String);

/// Decodes `%XX`; a `+` stays a plus sign.
///
/// # Errors
/// When a `%` is not followed by two hexadecimal digits, or the result is no UTF-8.
pub fn percent_decode(text: &str) -> Result<String, QueryError> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let error = || QueryError(text.to_owned());
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return Err(error()) };
        rest = tail;
        let digit = |byte: &u8| char::from(*byte).to_digit(16).ok_or_else(error);
        // Two hexadecimal digits are at most 255.
        decoded.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    String::from_utf8(decoded).map_err(|_| error())
}

/// The decoded pairs of a query string. Of a key that occurs twice the last value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads `a=b&c=d`; `;` separates as well, `+` is a space, a key without `=` has an empty value.
    ///
    /// # Errors
    /// When a key or a value is not percent-encoded text.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        let mut pairs = BTreeMap::new();
        for pair in text.split(['&', ';']).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |part: &str| percent_decode(&part.replace('+', " "));
            pairs.insert(decode(key)?, decode(value)?);
        }
        Ok(Query(pairs))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs() {
        let query = Query::parse("path=%2Fa%20b&x=1+2&x=3;flag&=e&&k==v").unwrap();
        assert_eq!(query.get("path"), Some("/a b"));
        assert_eq!(query.get("x"), Some("3"));
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!(query.get(""), Some("e"));
        assert_eq!(query.get("k"), Some("=v"));
        assert_eq!(query.get("nothing"), None);
    }

    #[test]
    fn broken() {
        for text in ["a=%", "a=%2", "a=%zz", "%g0=1", "a=%ff", "a=%+1"] {
            assert!(Query::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// Any text is read or refused, and what is encoded byte by byte comes back.
        #[test]
        fn any_text(text in ".*") {
            let _ = Query::parse(&text);
            let encoded: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
            prop_assert_eq!(percent_decode(&encoded).unwrap(), text);
        }
    }
}
