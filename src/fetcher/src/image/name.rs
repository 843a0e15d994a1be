//! Names of images.

use std::fmt;

use super::ImageError;

/// Default registry; names without a namespace get one there.
const DOCKER_HUB: &str = "registry-1.docker.io";

/// A valid name of an image: its parts can be parts of paths and URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Registry as `host` or `host:port`, if the name has one.
    pub host: Option<String>,
    /// Repository: `namespace/name`.
    pub repository: String,
    /// Tag or digest.
    pub reference: Reference,
}

/// Reference to one image of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A tag; `latest` if the name has none.
    Tag(String),
    /// A digest: `sha256:...`.
    Digest(String),
}

impl Name {
    /// Parses a name.
    ///
    /// # Errors
    /// If the text is not a valid name.
    pub fn parse(text: &str) -> Result<Name, ImageError> {
        let wrong = || ImageError(format!("'{text}' is not a name of an image"));
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon after the last slash precedes a tag; one before it precedes a port.
        let tag_at = rest.rfind(':').filter(|at| !rest[*at..].contains('/'));
        let (path, tag) = tag_at.map_or((rest, None), |at| (&rest[..at], Some(&rest[at + 1..])));
        let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let (host, repository) = match path.split_once('/') {
            Some((first, rest)) if is_host(first) => (Some(first), rest),
            _ => (None, path),
        };
        let is_word = |word: &str| {
            let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !word.is_empty() && word.len() <= 128 && !word.starts_with('.') && word.chars().all(good)
        };
        let is_good_host = host.is_none_or(|host| host.split(':').count() <= 2 && host.split(':').all(is_word));
        if text.len() > 1024 || !is_good_host || !repository.split('/').all(is_word) {
            return Err(wrong());
        }
        let reference = match (digest, tag) {
            (Some(digest), _) if super::store::hex_of(digest).is_some() => Reference::Digest(digest.to_owned()),
            (Some(_), _) => return Err(wrong()),
            (None, Some(tag)) if !is_word(tag) => return Err(wrong()),
            (None, tag) => Reference::Tag(tag.unwrap_or("latest").to_owned()),
        };
        Ok(Name { host: host.map(str::to_owned), repository: repository.to_owned(), reference })
    }

    /// Returns the tag or the digest.
    pub fn reference(&self) -> &str {
        match &self.reference {
            Reference::Tag(text) | Reference::Digest(text) => text,
        }
    }

    /// Returns the location of the image in a registry at this address: the registry's URL, and the repository there.
    pub(super) fn at(&self, registry: &str) -> (String, String) {
        if let Some(host) = &self.host {
            let plain = host.split(':').next().is_some_and(|host| host == "localhost" || host.starts_with("127."));
            let url = format!("{}://{host}", if plain { "http" } else { "https" });
            return (url, self.repository.clone());
        }
        let url = match registry.contains("://") {
            true => registry.trim_end_matches('/').to_owned(),
            false => format!("https://{}", registry.trim_end_matches('/')),
        };
        let official = url.ends_with(DOCKER_HUB) && !self.repository.contains('/');
        let repository = if official { format!("library/{}", self.repository) } else { self.repository.clone() };
        (url, repository)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}/")?;
        }
        match &self.reference {
            Reference::Tag(tag) => write!(f, "{}:{tag}", self.repository),
            Reference::Digest(digest) => write!(f, "{}@{digest}", self.repository),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let hub = "https://registry-1.docker.io";
        for (text, whole, url, repository) in [
            ("busybox", "busybox:latest", hub, "library/busybox"),
            ("team/app:1.2", "team/app:1.2", hub, "team/app"),
            ("host:5000/a/b:c", "host:5000/a/b:c", "https://host:5000", "a/b"),
            ("127.0.0.1:5000/b", "127.0.0.1:5000/b:latest", "http://127.0.0.1:5000", "b"),
        ] {
            let name = Name::parse(text).unwrap();
            assert_eq!(name.to_string(), whole);
            assert_eq!(name.at(hub), (url.to_owned(), repository.to_owned()));
        }
        let digest = format!("app@sha256:{}", "a".repeat(64));
        assert_eq!(Name::parse(&digest).unwrap().to_string(), digest);
        for text in
            ["", "../x", "a/../b", "a:b:c", "/etc/passwd", "a b", "app@sha256:x", "a//b", "a:", "x:../y", "a/.b"]
        {
            assert!(Name::parse(text).is_err(), "{text}");
        }
    }
}
