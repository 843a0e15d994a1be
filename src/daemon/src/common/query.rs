//! Reading parameters of legacy endpoints: numbers of a query, forms of a body.

use wire::http::Query;

/// Reads an integer parameter.
///
/// # Errors
/// The parser's words, for the answer.
pub fn number(query: &Query, name: &str) -> Result<Option<i64>, String> {
    match query.get(name) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("Failed to convert '{text}' to number")),
    }
}

/// Reads a body of the form `name=value&...`.
///
/// # Errors
/// A text that is not percent-encoded as it should be.
pub fn form(body: &[u8]) -> Result<Query, String> {
    let text = std::str::from_utf8(body).map_err(|_| "Unable to decode query string: not UTF-8".to_owned())?;
    Query::parse(text.trim()).map_err(|error| format!("Unable to decode query string: {error}"))
}
