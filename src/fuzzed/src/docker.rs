//! Checks JSON of Docker: responses of its daemon, and its configuration files with credentials.

use executor::docker::{Listed, PREFIX, address, login, pull_failure};
use serde_json::Value;

use crate::pieces::Pieces;

/// Checks an input whose first line is the name of an image, and whose rest is a response of the daemon or a
/// configuration with credentials.
pub fn docker(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let image = String::from_utf8_lossy(pieces.line()).into_owned();
    let data = pieces.rest();
    let text = String::from_utf8_lossy(data);
    if let Some(header) = login(&text, &image) {
        // The text becomes a header of a request.
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte);
        assert!(header.bytes().all(is_digit) && header.len().is_multiple_of(4));
    }
    let _ = pull_failure(data);
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let listed = Listed::all(&value);
    assert!(listed.iter().all(|container| container.name.starts_with(PREFIX)));
    assert!(listed.len() <= value.as_array().map_or(0, Vec::len));
    let _ = address(&value);
}
