//! Reads the flags for ZooKeeper: `zk://` URLs, also from files, and the timeout of a session.

use std::path::Path;
use std::time::Duration;

use detector::{Url, UrlError};

use crate::flags::{FlagError, read_limited};

const TIMEOUT: &str = "zk_session_timeout";
/// Longest timeout of a session; ZooKeeper counts milliseconds in 32 bits.
const SESSION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the value of the flag `name`, or the content of the file that it names by `file:///path` or `/path`.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn text(name: &'static str, given: &str) -> Result<String, FlagError> {
    let from_file = given.strip_prefix("file://").or(given.starts_with('/').then_some(given));
    let text = match from_file {
        Some(path) => {
            read_limited(Path::new(path)).map_err(|source| FlagError::File { name, path: path.to_owned(), source })?
        }
        None => given.to_owned(),
    };
    Ok(text.trim().to_owned())
}

/// Parses a URL of the flag `name`, and checks `--zk_session_timeout`.
///
/// # Errors
/// One of them is invalid. The message contains no password.
pub(crate) fn group(name: &'static str, text: &str, timeout: Duration) -> Result<(Url, Duration), FlagError> {
    let url = text.parse().map_err(|error: UrlError| FlagError::Refused { name, why: error.to_string() })?;
    if timeout.is_zero() || timeout > SESSION_MAX {
        let why = format!("'{}' is not more than 0 and at most 1days", base::format_duration(timeout));
        return Err(FlagError::Refused { name: TIMEOUT, why });
    }
    Ok((url, timeout))
}
