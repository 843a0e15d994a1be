//! Size of an item before it is fetched, for which the cache makes room first.
//!
//! A server that does not report it is not an error: then the item is not cached.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::get;
use crate::source::Source;
use crate::trust::Trust;

/// The size of a source in bytes, or the reason why it is unknown.
pub(crate) fn size(source: &Source, stall: Duration, trust: &Trust) -> Result<u64, String> {
    let told = match source {
        Source::File(path) => of_file(path)?,
        Source::Http(url) => of_http(url, stall, trust)?,
        Source::Ftp(uri) => length(&said(get::curl(stall).args(["--head", "--"]).arg(uri))?),
        Source::Hadoop(uri) => first_number(&said(get::hadoop().args(["fs", "-du", uri]))?),
    };
    told.ok_or_else(|| "it does not say how large it is".to_owned())
}

fn of_file(path: &Path) -> Result<Option<u64>, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    Ok(found.is_file().then_some(found.len()))
}

fn of_http(url: &str, stall: Duration, trust: &Trust) -> Result<Option<u64>, String> {
    let answer = get::ask(url, stall, trust, |agent, url| agent.head(url).call())?;
    if answer.status() != 200 {
        return Err(format!("the server has answered {} to HEAD", answer.status()));
    }
    let told = answer.headers().get("content-length").and_then(|value| value.to_str().ok());
    // As with Mesos: a server without this information may report zero.
    Ok(told.and_then(|text| text.trim().parse().ok()).filter(|bytes| *bytes > 0))
}

/// What a program writes that succeeds.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(words(&output.stdout)) } else { Err(words(&output.stderr)) }
}

/// What curl writes of an FTP server's file.
fn length(head: &str) -> Option<u64> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.find_map(|(_, value)| value.trim().parse().ok())
}

/// What a Hadoop client writes: lines with a size and a path, after whatever it complains about.
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
