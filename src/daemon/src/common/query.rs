//! Parses the parameters of legacy endpoints: numbers of a query, forms of a body.

use wire::http::Query;

/// Parses an integer parameter; `None` if it is missing.
///
/// # Errors
/// The text of the response: the parameter is not an integer.
pub fn number(query: &Query, name: &str) -> Result<Option<i64>, String> {
    match query.get(name) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("Failed to convert '{text}' to number")),
    }
}

/// Parses a body of the form `name=value&...`.
///
/// # Errors
/// The text is not UTF-8, or its percent-encoding is invalid.
pub fn form(body: &[u8]) -> Result<Query, String> {
    let text = std::str::from_utf8(body).map_err(|_| "Unable to decode query string: not UTF-8".to_owned())?;
    Query::parse(text.trim()).map_err(|error| format!("Unable to decode query string: {error}"))
}
