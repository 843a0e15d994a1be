//! Percent-encoding and query strings. It does not know which keys an endpoint reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// Error for a text that is not percent-encoded UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not percent-encoded text")]
pub struct QueryError(String);

/// Decodes `%XX`; a `+` stays a plus sign.
///
/// # Errors
/// When a `%` is not followed by two hexadecimal digits, or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, QueryError> {
    let error = || QueryError(text.to_owned());
    // The library does not reject a `%` without digits.
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return Err(error());
    }
    percent_decode_str(text).decode_utf8().map(Cow::into_owned).map_err(|_| error())
}

/// Decoded keys and values of a query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Parses `a=b&c=d`. `;` separates as well, `+` is a space, a key without `=` has an empty value.
    ///
    /// # Errors
    /// When a key or a value is not percent-encoded text.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in text.split(['&', ';']).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |part: &str| percent_decode(&part.replace('+', " "));
            pairs.entry(decode(key)?).or_default().push(decode(value)?);
        }
        Ok(Query(pairs))
    }

    /// Returns the value of a key; of several the last.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).last().map(String::as_str)
    }

    /// Returns all values of a key, in order.
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns an iterator over all keys and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(key, values)| (key.as_str(), values.as_slice()))
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
        assert_eq!(query.all("x"), ["1 2", "3"]);
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
        /// Any text is parsed or rejected, and a text that is encoded byte by byte is decoded to itself.
        #[test]
        fn any_text(text in ".*") {
            let _ = Query::parse(&text);
            let encoded: String = text.bytes().map(|b| format!("%{b:02x}")).collect();
            prop_assert_eq!(percent_decode(&encoded).unwrap(), text);
        }
    }
}
