//! Fetches one file: by copying, by a download, or by curl or a Hadoop client.
//!
//! It does not examine the content.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::header::LOCATION;
use ureq::http::{Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::HADOOP_HOME;
use crate::source::Source;
use crate::trust::Trust;

/// Maximum number of redirects of a download.
const REDIRECTS_MAX: u32 = 50;

/// Reason why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// An error of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The source is a directory or a device.
    #[error("it is not a file")]
    NotAFile,
    /// The server cannot be reached.
    #[error("{0}")]
    Http(Box<ureq::Error>),
    /// There are too many redirects.
    #[error("the server has redirected {REDIRECTS_MAX} times")]
    Redirects,
    /// A redirect leads to another scheme.
    #[error("the server has redirected to '{0}', which is not a URL of http or https")]
    Redirect(String),
    /// The server has answered with this status.
    #[error("the server has answered {0}")]
    Status(StatusCode),
    /// The target cannot be created.
    #[error("'{}'", target.display())]
    Create {
        /// Path of the target.
        target: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The download ended early.
    #[error("the download was interrupted")]
    BrokeOff(#[source] io::Error),
    /// curl has failed, with this text on standard error.
    #[error("{0}")]
    Curl(String),
    /// curl cannot be started.
    #[error("its scheme needs curl, which cannot be run")]
    NoCurl(#[source] io::Error),
    /// The Hadoop client failed.
    #[error("'hadoop fs -copyToLocal' has ended with {0}")]
    Hadoop(ExitStatus),
    /// The Hadoop client cannot be started.
    #[error("its scheme needs a Hadoop client, and '{program}' cannot be run")]
    NoHadoop {
        /// Program of the client.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The mode of the file cannot be changed.
    #[error("cannot make it executable")]
    Executable(#[source] io::Error),
}

/// Fetches `source` to the file `target`, whose directory exists.
pub(crate) fn get(source: &Source, target: &Path, stall: Duration, trust: &Trust) -> Result<(), GetError> {
    match source {
        Source::File(path) => copy(path, target),
        Source::Http(url) => download(url, target, stall, trust),
        Source::Ftp(uri) => ask_curl(uri, target, stall),
        Source::Hadoop(uri) => ask_hadoop(uri, target),
    }
}

fn copy(path: &Path, target: &Path) -> Result<(), GetError> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(GetError::NotAFile);
    }
    Ok(std::fs::copy(path, target).map(drop)?)
}

/// Returns an HTTP client that trusts the host's authorities, and fails if a server sends nothing for `stall`.
pub(crate) fn agent(stall: Duration) -> Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).unversioned_rustls_crypto_provider(provider);
    agent_with(tls.build(), REDIRECTS_MAX, stall)
}

fn agent_with(tls: TlsConfig, redirects: u32, stall: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(redirects)
        .timeout_connect(Some(stall))
        .timeout_recv_response(Some(stall))
        .timeout_per_read(Some(stall))
        .tls_config(tls)
        .build()
        .new_agent()
}

/// Requests a URL, and follows redirects. While the hosts are of the cluster, each redirect is checked anew. A host
/// that is not never leads to a host of the cluster.
pub(crate) fn ask(
    url: &str,
    stall: Duration,
    trust: &Trust,
    call: impl Fn(&Agent, &str) -> Result<Response<Body>, ureq::Error>,
) -> Result<Response<Body>, GetError> {
    let failed = |error| GetError::Http(Box::new(error));
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        if !trust.has(&url) {
            return call(&agent(stall), &url).map_err(failed);
        }
        let answer = call(&agent_with(trust.tls(), 0, stall), &url).map_err(failed)?;
        let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        match location.filter(|_| answer.status().is_redirection()) {
            Some(location) => url = joined(&url, location)?,
            None => return Ok(answer),
        }
    }
    Err(GetError::Redirects)
}

/// Returns the URL of a redirect from its `Location`.
fn joined(from: &str, location: &str) -> Result<String, GetError> {
    let begins = |scheme: &str| location.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    if begins("http://") || begins("https://") {
        return Ok(location.to_owned());
    }
    let (scheme, rest) = from.split_once("://").unwrap_or(("https", from));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if location.starts_with("//") {
        return Ok(format!("{scheme}:{location}"));
    }
    if location.starts_with('/') {
        return Ok(format!("{scheme}://{host}{location}"));
    }
    if location.is_empty() || location.starts_with(['?', '#']) || location.contains(':') {
        return Err(GetError::Redirect(location.to_owned()));
    }
    let path = rest[host.len()..].split(['?', '#']).next().unwrap_or_default();
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    Ok(format!("{scheme}://{host}{directory}/{location}"))
}

fn download(url: &str, target: &Path, stall: Duration, trust: &Trust) -> Result<(), GetError> {
    let mut response = ask(url, stall, trust, |agent, url| agent.get(url).call())?;
    if response.status() != 200 {
        return Err(GetError::Status(response.status()));
    }
    let mut file = File::create(target).map_err(|source| GetError::Create { target: target.to_owned(), source })?;
    let copied = io::copy(&mut response.body_mut().as_reader(), &mut file);
    copied.map(drop).map_err(GetError::BrokeOff)
}

/// Returns the command of the host's curl(1), which supports rare protocols.
pub(crate) fn curl(stall: Duration) -> Command {
    let seconds = stall.as_secs().max(1).to_string();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--globoff", "--connect-timeout", &seconds]);
    curl.args(["--speed-limit", "1", "--speed-time", &seconds]);
    curl
}

fn ask_curl(uri: &str, target: &Path, stall: Duration) -> Result<(), GetError> {
    let mut curl = curl(stall);
    curl.arg("--output").arg(target).arg("--").arg(uri);
    match curl.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(GetError::Curl(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(GetError::NoCurl(error)),
    }
}

/// Returns the command of the host's Hadoop client.
pub(crate) fn hadoop() -> Command {
    match std::env::var_os(HADOOP_HOME).filter(|home| !home.is_empty()) {
        Some(home) => Command::new(Path::new(&home).join("bin/hadoop")),
        None => Command::new("hadoop"),
    }
}

/// Copies a URI with the host's Hadoop client.
pub(crate) fn ask_hadoop(uri: &str, target: &Path) -> Result<(), GetError> {
    let mut hadoop = hadoop();
    let ended = hadoop.args(["fs", "-copyToLocal", uri]).arg(target).stdout(io::stderr()).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(GetError::Hadoop(status)),
        Err(source) => Err(GetError::NoHadoop { program: hadoop.get_program().display().to_string(), source }),
    }
}

/// Makes a file executable for everyone.
pub(crate) fn make_executable(path: &Path) -> Result<(), GetError> {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).map_err(GetError::Executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_whole_urls() {
        let from = "https://h:1/a/b?c#d";
        for (location, to) in [
            ("http://x/y", "http://x/y"),
            ("HTTPS://x/y", "HTTPS://x/y"),
            ("//x/y", "https://x/y"),
            ("/y", "https://h:1/y"),
            ("y", "https://h:1/a/y"),
        ] {
            assert_eq!(joined(from, location).unwrap(), to);
        }
        assert_eq!(joined("https://h", "y").unwrap(), "https://h/y");
        for location in ["", "ftp://x/y", "?z"] {
            assert!(joined(from, location).is_err(), "{location}");
        }
    }
}
