//! Meaning of a URI: the location of its content, and its file name in the sandbox.
//!
//! Nothing is opened here.

use std::path::{Component, Path, PathBuf};

use protos::mesos::command_info::Uri;

/// Reason why a URI cannot be fetched, whatever its location has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The URI has a character that is not permitted in a task's URI.
    #[error("the URI contains {0}")]
    Character(&'static str),
    /// The URI names a host but no path.
    #[error("the URI has no path")]
    NoPath,
    /// The path ends with a slash, so that the file has no name.
    #[error("the URI does not name a file")]
    NoName,
    /// The path is relative, and there is no directory for relative paths.
    #[error("the path is relative, and --frameworks_home is not set")]
    Relative,
    /// The URI is a file of another host.
    #[error("files of the host '{0}' cannot be fetched")]
    OtherHost(String),
    /// The name in the sandbox is empty, or leads out of the sandbox.
    #[error("the output file '{0}' is not a path inside the sandbox")]
    OutputFile(String),
}

/// Location of the content of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path on this host.
    File(PathBuf),
    /// A URL with `http://` or `https://`.
    Http(String),
    /// A URL with `ftp://` or `ftps://`.
    Ftp(String),
    /// Any other URI, which a Hadoop client fetches.
    Hadoop(String),
}

impl Source {
    /// Parses a URI; a relative path is below `frameworks_home`.
    ///
    /// # Errors
    /// If the URI has no valid location.
    pub fn parse(uri: &str, frameworks_home: &str) -> Result<Source, SourceError> {
        let Some((scheme, rest)) = uri.split_once("://") else {
            return if uri.starts_with('/') {
                Ok(Source::File(uri.into()))
            } else if frameworks_home.is_empty() {
                Err(SourceError::Relative)
            } else {
                Ok(Source::File(Path::new(frameworks_home).join(uri)))
            };
        };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => match rest.split_once('/') {
                Some(("" | "localhost", path)) => Ok(Source::File(format!("/{path}").into())),
                Some((host, _)) => Err(SourceError::OtherHost(host.to_owned())),
                None => Err(SourceError::NoPath),
            },
            "http" | "https" => Ok(Source::Http(uri.to_owned())),
            "ftp" | "ftps" => Ok(Source::Ftp(uri.to_owned())),
            _ => Ok(Source::Hadoop(uri.to_owned())),
        }
    }
}

/// Checks a URI of a task, so that an invalid one is rejected before anything is fetched.
///
/// # Errors
/// The first rule that it breaks (AGT-62).
pub fn check(uri: &Uri) -> Result<(), SourceError> {
    for (character, words) in [('\\', "a backslash"), ('\'', "a single quote"), ('\0', "a NUL character")] {
        if uri.value.contains(character) {
            return Err(SourceError::Character(words));
        }
    }
    if let Some((_, rest)) = uri.value.split_once("://")
        && !rest.contains('/')
    {
        return Err(SourceError::NoPath);
    }
    file_name(uri).map(drop)
}

/// Returns the path in the sandbox: the URI's `output_file`, or the last segment of its path.
///
/// # Errors
/// The name is empty or leads out of the sandbox.
pub(crate) fn file_name(uri: &Uri) -> Result<PathBuf, SourceError> {
    let name = match &uri.output_file {
        Some(name) => name.as_str(),
        None => uri.value.rsplit('/').next().unwrap_or_default(),
    };
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match (&uri.output_file, name.is_empty() || name == "." || name.ends_with('/') || !inside) {
        (_, false) => Ok(name.into()),
        (Some(name), true) => Err(SourceError::OutputFile(name.clone())),
        (None, true) => Err(SourceError::NoName),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(value: &str, output: Option<&str>) -> Uri {
        Uri { value: value.into(), output_file: output.map(str::to_owned), ..Uri::default() }
    }

    #[test]
    fn sources() {
        let parse = |text: &str| Source::parse(text, "");
        let file = |path: &str| Ok(Source::File(path.into()));
        assert_eq!(parse("/a/b"), file("/a/b"));
        assert_eq!(parse("file:///a/b"), file("/a/b"));
        assert_eq!(parse("file://localhost/a/b"), file("/a/b"));
        assert_eq!(parse("file://elsewhere/a"), Err(SourceError::OtherHost("elsewhere".into())));
        assert_eq!(parse("a/b"), Err(SourceError::Relative));
        assert_eq!(Source::parse("a/b", "/home"), file("/home/a/b"));
        assert_eq!(parse("HTTP://h/x"), Ok(Source::Http("HTTP://h/x".into())));
        assert_eq!(parse("ftps://h/x"), Ok(Source::Ftp("ftps://h/x".into())));
        assert_eq!(parse("hdfs://h/x"), Ok(Source::Hadoop("hdfs://h/x".into())));
    }

    #[test]
    fn names() {
        let name = |value: &str, output: Option<&str>| file_name(&uri(value, output));
        assert_eq!(name("http://h/a/b.tgz", None), Ok("b.tgz".into()));
        assert_eq!(name("http://h/a/b.tgz", Some("c/d")), Ok("c/d".into()));
        assert_eq!(name("http://h/a/", None), Err(SourceError::NoName));
        assert_eq!(name("http://h/..", None), Err(SourceError::NoName));
        for bad in ["", "/abs", "../x", "a/../../x", ".", "a/"] {
            assert_eq!(name("http://h/x", Some(bad)), Err(SourceError::OutputFile(bad.into())), "{bad}");
        }
    }

    #[test]
    fn uris_of_tasks() {
        assert_eq!(check(&uri("http://h/x", None)), Ok(()));
        assert_eq!(check(&uri("http://h", None)), Err(SourceError::NoPath));
        assert_eq!(check(&uri("/a\\b", None)), Err(SourceError::Character("a backslash")));
        assert_eq!(check(&uri("/a'b", None)), Err(SourceError::Character("a single quote")));
        assert_eq!(check(&uri("/a\0b", None)), Err(SourceError::Character("a NUL character")));
    }
}
