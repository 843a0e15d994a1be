//! Determines the size of an item before it is fetched, for which the cache reserves space first.
//!
//! A server that does not report it is not an error: then the item is not cached.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ureq::http::StatusCode;

use crate::get::{self, GetError};
use crate::source::{Source, SourceError};
use crate::trust::Trust;

/// Reason why a size is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SizeError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Get(#[from] GetError),
    #[error("the server has answered {0} to HEAD")]
    Status(StatusCode),
    /// A program has failed, with this text on standard error.
    #[error("{0}")]
    Program(String),
    #[error("the server does not return its size")]
    Unknown,
}

/// Returns the size of a source in bytes.
pub(crate) fn size(source: &Source, stall: Duration, trust: &Trust) -> Result<u64, SizeError> {
    let size = match source {
        Source::File(path) => of_file(path)?,
        Source::Http(url) => of_http(url, stall, trust)?,
        Source::Ftp(uri) => length(&output(get::curl(stall).args(["--head", "--"]).arg(uri))?),
        Source::Hadoop(uri) => first_number(&output(get::hadoop().args(["fs", "-du", uri]))?),
    };
    size.ok_or(SizeError::Unknown)
}

fn of_file(path: &Path) -> Result<Option<u64>, SizeError> {
    let found = std::fs::metadata(path)?;
    Ok(found.is_file().then_some(found.len()))
}

fn of_http(url: &str, stall: Duration, trust: &Trust) -> Result<Option<u64>, SizeError> {
    let answer = get::ask(url, stall, trust, |agent, url| agent.head(url).call())?;
    if answer.status() != 200 {
        return Err(SizeError::Status(answer.status()));
    }
    let length = answer.headers().get("content-length").and_then(|value| value.to_str().ok());
    // As in Mesos, zero counts as unknown: a server without this information may report it.
    Ok(length.and_then(|text| text.trim().parse().ok()).filter(|bytes| *bytes > 0))
}

/// Returns the output of a program, which must succeed.
fn output(command: &mut Command) -> Result<String, SizeError> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(SizeError::Program(text(&output.stderr))) }
}

/// Returns the size of an FTP server's file from curl's output.
fn length(head: &str) -> Option<u64> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.find_map(|(_, value)| value.trim().parse().ok())
}

/// Returns the size in a Hadoop client's output: lines with a size and a path, after any warnings.
fn first_number(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_ascii_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_programs() {
        assert_eq!(length("Last-Modified: x\r\nContent-Length: 12\r\nAccept-ranges: bytes\r\n"), Some(12));
        assert_eq!(length("Accept-ranges: bytes\r\n"), None);
        assert_eq!(first_number("WARN: something\n1048576  3145728  hdfs://n/f\n"), Some(1_048_576));
        assert_eq!(first_number("nothing"), None);
    }
}
