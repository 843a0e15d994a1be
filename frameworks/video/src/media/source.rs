//! The source of a query's pictures: a file, a camera that the `ffmpeg` program reads, or a camera's uplink.
//!
//! Only the schemes in [`SCHEMES`] are accepted. This module opens nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::auth::basic_header;
use wire::client::Address;
use wire::http::percent_decode;

/// Maximum length of a camera's address, in bytes.
const ADDRESS_MAX: usize = 2048;
/// Replacement for the hidden parts of an address.
const HIDDEN: &str = "***";
/// Accepted forms of an address, for messages.
pub const SCHEMES: &str = "rtsp://, http://, https://, uplink://, /dev/videoN, pipe:PATH or a file";

/// A source of pictures. Its text is the one in a query file; `Display` and `Debug` hide credentials.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A video file.
    File(PathBuf),
    /// A live source.
    Camera(Camera),
}

/// The address of a live source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Camera {
    kind: CameraKind,
    /// Address as it was given; a path for a device or a pipe.
    text: String,
}

/// Protocol or kind of a live source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CameraKind {
    /// RTSP, with the media interleaved in the same TCP connection.
    Rtsp,
    /// HTTP: MJPEG, MPEG-TS, HLS or another format that `ffmpeg` detects.
    Http,
    /// HTTP over TLS.
    Https,
    /// An uplink of this project (`tepui framework video uplink`), with TLS where the environment turns it on.
    Uplink,
    /// A Video4Linux device.
    Device,
    /// A named pipe.
    Pipe,
}

/// Parts of the address of an uplink.
#[derive(Debug)]
pub(super) struct UplinkAddress {
    pub(super) address: Address,
    pub(super) path: String,
    /// Value of the `Authorization` header.
    pub(super) authorization: Option<String>,
}

/// The error of a text that is not a valid source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("source '{shown}': {rule}")]
pub struct SourceError {
    /// Text without credentials.
    shown: String,
    /// Rule that the text breaks.
    rule: String,
}

impl Source {
    /// Returns the path of a file; `None` for a camera.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Source::File(path) => Some(path),
            Source::Camera(_) => None,
        }
    }

    /// Returns the camera; `None` for a file.
    pub fn camera(&self) -> Option<&Camera> {
        match self {
            Source::File(_) => None,
            Source::Camera(camera) => Some(camera),
        }
    }

    /// Resolves a relative path of a file or a pipe against `directory`.
    #[must_use]
    pub fn within(self, directory: &Path) -> Source {
        match self {
            Source::File(path) => Source::File(directory.join(path)),
            Source::Camera(Camera { kind: CameraKind::Pipe, text }) => {
                let text = directory.join(text).to_string_lossy().into_owned();
                Source::Camera(Camera { kind: CameraKind::Pipe, text })
            }
            camera @ Source::Camera(_) => camera,
        }
    }

    /// Returns the text that [`parse`](str::parse) reads, with credentials.
    pub fn text(&self) -> String {
        match self {
            Source::File(path) => path.to_string_lossy().into_owned(),
            Source::Camera(Camera { kind: CameraKind::Pipe, text }) => format!("pipe:{text}"),
            Source::Camera(camera) => camera.text.clone(),
        }
    }
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Source {
        Source::File(path.to_owned())
    }
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Source {
        Source::File(path)
    }
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Source, SourceError> {
        let bad = |rule: String| Err(SourceError { shown: redacted(text), rule });
        if text.is_empty() || text.len() > ADDRESS_MAX {
            return bad(format!("1 to {ADDRESS_MAX} bytes"));
        }
        if text.chars().any(char::is_control) {
            return bad("no control characters".to_owned());
        }
        let camera = |kind, text: &str| Ok(Source::Camera(Camera { kind, text: text.to_owned() }));
        if let Some(path) = text.strip_prefix("pipe:") {
            return if path.is_empty() {
                bad("pipe: is followed by a path".to_owned())
            } else {
                camera(CameraKind::Pipe, path)
            };
        }
        if let Some(number) = text.strip_prefix("/dev/video") {
            let digits = (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
            return if digits { camera(CameraKind::Device, text) } else { bad("/dev/video and a number".to_owned()) };
        }
        let Some((scheme, rest)) = scheme(text) else { return Ok(Source::File(text.into())) };
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "rtsp" => CameraKind::Rtsp,
            "http" => CameraKind::Http,
            "https" => CameraKind::Https,
            "uplink" => CameraKind::Uplink,
            _ => return bad(format!("the scheme '{scheme}' is not accepted: {SCHEMES}")),
        };
        let Some(rest) = rest.strip_prefix("//") else { return bad(format!("'{scheme}:' is followed by //")) };
        if rest.chars().any(char::is_whitespace) {
            return bad("no spaces in an address: write %20".to_owned());
        }
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if host.is_empty() || host.starts_with(':') {
            return bad("there is no host".to_owned());
        }
        let camera = Camera { kind, text: text.to_owned() };
        if kind == CameraKind::Uplink && camera.uplink(None).is_none() {
            return bad(
                "an uplink has the form uplink://[user:password@]host:port, with %XX for special characters".to_owned()
            );
        }
        Ok(Source::Camera(camera))
    }
}

/// Splits a text into its scheme and the rest after the colon. A text with a slash before the colon is a path.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || "+-.,".contains(c);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(good)).then_some((scheme, rest))
}

/// Returns the text without the user information of its authority, and without the values of its query.
fn redacted(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password may contain an unescaped slash: everything up to the last '@' is hidden.
    let (host, path) = match rest.rfind('@') {
        Some(at) if at >= end => return format!("{scheme}://{HIDDEN}@{}", query_hidden(&rest[at + 1..])),
        _ => rest.split_at(end),
    };
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => host.to_owned(),
    };
    format!("{scheme}://{host}{}", query_hidden(path))
}

fn query_hidden(path: &str) -> String {
    match path.find(['?', '#']) {
        Some(at) => format!("{}?{HIDDEN}", &path[..at]),
        None => path.to_owned(),
    }
}

impl Camera {
    /// Returns the protocol or kind of the source.
    pub fn kind(&self) -> CameraKind {
        self.kind
    }

    /// Returns the path of a device or a pipe, or the address of another source, with credentials.
    pub(super) fn secret(&self) -> &str {
        &self.text
    }

    /// Returns the parts of an uplink's address; `None` for another source, or if it has no host and port. The path
    /// requests `most` as the highest rung, unless the address names one.
    pub(super) fn uplink(&self, most: Option<usize>) -> Option<UplinkAddress> {
        if self.kind != CameraKind::Uplink {
            return None;
        }
        let (_, rest) = self.text.split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let (address, path) = Address::split_url(&format!("{host}{path}")).ok()?;
        let authorization = match user {
            None => None,
            Some(user) => {
                let (user, password) = user.split_once(':')?;
                Some(basic_header(&percent_decode(user).ok()?, &percent_decode(password).ok()?))
            }
        };
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let named = query.split('&').any(|pair| pair.split('=').next() == Some("most"));
        let path = match most {
            Some(most) if !named => format!("{path}{}most={most}", if query.is_empty() { "?" } else { "&" }),
            _ => path,
        };
        Some(UplinkAddress { address, path, authorization })
    }

    /// Returns the arguments with which `ffmpeg` opens the source. The address is one argument after `-i`, so that
    /// nothing in it is an option. The protocols that may be opened, also by redirections and playlists, are listed.
    pub(super) fn input(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let web = ["-protocol_whitelist", "http,https,tls,tcp,crypto", "-i", &self.text];
        match self.kind {
            CameraKind::Rtsp => {
                let listed = "rtsp,rtp,tcp";
                words(&["-protocol_whitelist", listed, "-rtsp_transport", "tcp", "-i", &self.text])
            }
            CameraKind::Http | CameraKind::Https => words(&web),
            // An uplink is read without `ffmpeg`.
            CameraKind::Uplink => Vec::new(),
            CameraKind::Device => words(&["-f", "v4l2", "-i", &self.text]),
            CameraKind::Pipe => words(&["-protocol_whitelist", "pipe", "-i", "pipe:0"]),
        }
    }

    /// Returns a message of `ffmpeg` without this camera's credentials.
    pub(super) fn hide(&self, message: &str) -> String {
        let mut message = message.replace(&self.text, &self.to_string());
        let authority = self.text.split_once("://").map_or("", |(_, rest)| rest);
        if let Some((secret, _)) = authority.rsplit_once('@') {
            let parts = std::iter::once(secret).chain(secret.split_once(':').map(|(_, password)| password));
            for part in parts.filter(|part| !part.is_empty()) {
                message = message.replace(part, HIDDEN);
            }
        }
        if let Some((_, query)) = authority.split_once('?')
            && !query.is_empty()
        {
            message = message.replace(query, HIDDEN);
        }
        message
    }
}

impl fmt::Display for Camera {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.text))
    }
}

impl fmt::Debug for Camera {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Camera({self})")
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Camera(camera) => write!(f, "{camera}"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Source, SourceError> {
        text.parse()
    }

    #[test]
    fn schemes_that_are_accepted() {
        for (text, kind) in [
            ("rtsp://host/a", CameraKind::Rtsp),
            ("HTTP://host:80/a?b", CameraKind::Http),
            ("https://user:word@host", CameraKind::Https),
            ("uplink://host:8090", CameraKind::Uplink),
            ("uplink://user:a%3Ab@[::1]:8090/?policy=rate", CameraKind::Uplink),
            ("/dev/video0", CameraKind::Device),
            ("pipe:/tmp/fifo", CameraKind::Pipe),
        ] {
            let source = parsed(text).expect(text);
            assert_eq!(source.camera().map(Camera::kind), Some(kind));
            assert_eq!(parsed(&source.text()), Ok(source));
        }
        for text in ["street.mp4", "/a/b:c.mp4", "./concat:x"] {
            assert_eq!(parsed(text), Ok(Source::File(text.into())));
        }
    }

    #[test]
    fn other_protocols_and_malformed_addresses_are_refused() {
        for (text, says) in [
            ("file:/etc/passwd", "'file' is not accepted"),
            ("concat:a.mp4|b.mp4", "'concat' is not accepted"),
            ("subfile,,start,0,end,9,,:a.mp4", "not accepted"),
            ("crypto+file:a", "not accepted"),
            ("data:image/png;base64,AAAA", "not accepted"),
            ("rtmp://host/a", "not accepted"),
            ("http:host", "followed by //"),
            ("uplink://host", "host:port"),
            ("uplink://user@host:1", "host:port"),
            ("uplink://host:99999", "host:port"),
            ("http:///a", "no host"),
            ("http://host/a b", "no spaces"),
            ("http://host/a\n-f", "control"),
            ("/dev/video", "a number"),
            ("/dev/video0 -f lavfi", "a number"),
            ("pipe:", "a path"),
            ("", "1 to"),
        ] {
            let error = parsed(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_is_one_argument_after_the_list_of_protocols() {
        let source = parsed("http://host/-vf?x=-i").expect("parses");
        let arguments = source.camera().expect("a camera").input();
        assert_eq!(arguments, ["-protocol_whitelist", "http,https,tls,tcp,crypto", "-i", "http://host/-vf?x=-i"]);
        let device = parsed("/dev/video12").expect("parses");
        let arguments = device.camera().expect("a camera").input();
        // Format, size and rate are left to the device, which may not support a requested one.
        assert_eq!(arguments, ["-f", "v4l2", "-i", "/dev/video12"]);
        for text in ["rtsp://h", "http://h", "https://h", "pipe:a"] {
            let arguments = parsed(text).expect(text).camera().expect("a camera").input();
            assert!(!arguments[1].contains("file") && !arguments[1].contains("concat"), "{arguments:?}");
        }
    }

    #[test]
    fn parts_of_an_uplinks_address() {
        let most = |text, most| parsed(text).expect(text).camera().expect("a camera").uplink(most).expect("an uplink");
        let uplink = |text| most(text, None);
        let plain = uplink("uplink://host:8090");
        assert_eq!(
            (plain.address.to_string(), plain.path.as_str(), plain.authorization),
            ("host:8090".into(), "/", None)
        );
        let whole = uplink("uplink://me:a%3Ab@[::1]:8090/?policy=rate");
        assert_eq!((whole.address.host(), whole.path.as_str()), ("::1", "/?policy=rate"));
        assert_eq!(whole.authorization, Some(basic_header("me", "a:b")));
        for (text, path) in [
            ("uplink://host:1", "/?most=3"),
            ("uplink://host:1/?policy=rate", "/?policy=rate&most=3"),
            ("uplink://host:1/?most=5", "/?most=5"),
            ("uplink://host:1/?policy=rate&most=5", "/?policy=rate&most=5"),
        ] {
            assert_eq!(most(text, Some(3)).path, path);
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        for text in [
            "rtsp://user:hunter2@host:554/a",
            "uplink://user:hunter2@host:554/a",
            "rtsp://user:hunt/hunter2@host/a",
            "http://host/video?password=hunter2",
            "http://hunter2@host/x#hunter2",
            "file://user:hunter2@host/",
            "http://user:hunter2@host/a b",
        ] {
            let shown = match parsed(text) {
                Ok(source) => format!("{source} {source:?} {}", source.camera().expect("a camera").hide(text)),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("hunter2"), "{text}: {shown}");
        }
        let source = parsed("rtsp://user:hunter2@host/a").expect("parses");
        let hidden = source.camera().expect("a camera").hide("401 for user:hunter2 at rtsp://user:hunter2@host/a");
        assert_eq!(hidden, "401 for *** at rtsp://***@host/a");
    }
}
