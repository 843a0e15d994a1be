//! The address of a server: scheme, host name or IP, and port.

use std::fmt;
use std::str::FromStr;

/// Error for a text that is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not of the form [http[s]://]<host>:<port>[/<path>]")]
pub struct AddressError(String);

/// Whether connections to a server use TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// The TLS settings of this process decide: connections do not use TLS unless they enable it.
    #[default]
    Configured,
    /// Connections do not use TLS.
    Http,
    /// Connections use TLS; the server's certificate is verified unless the settings turn that off.
    Https,
}

/// Address of a server: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Address {
    /// Creates an address with the scheme `Configured`; an IPv6 host has no brackets here.
    pub fn new(host: &str, port: u16) -> Address {
        Address { scheme: Scheme::Configured, host: host.to_owned(), port }
    }

    /// Returns the address with another scheme.
    #[must_use]
    pub fn with_scheme(self, scheme: Scheme) -> Address {
        Address { scheme, ..self }
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host name or IP.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Splits a URL into the address, and the path with query (at least `/`). The scheme may be left out, as in the
    /// `Location` of a follower's redirect.
    ///
    /// # Errors
    /// When there is no host and port, or the scheme is neither http nor https.
    pub fn split_url(url: &str) -> Result<(Address, String), AddressError> {
        let error = || AddressError(url.to_owned());
        let schemes = [("http:", Scheme::Http), ("https:", Scheme::Https)];
        let with = schemes.iter().find_map(|(prefix, scheme)| Some((*scheme, url.strip_prefix(prefix)?)));
        let (scheme, rest) = with.unwrap_or((Scheme::Configured, url));
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, port) = rest[..end].rsplit_once(':').ok_or_else(error)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| error())?;
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(error());
        }
        let path = match &rest[end..] {
            path if path.starts_with('/') => path.to_owned(),
            query => format!("/{query}"),
        };
        Ok((Address::new(host, port).with_scheme(scheme), path))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        match Address::split_url(text)? {
            (address, path) if path == "/" => Ok(address),
            _ => Err(AddressError(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, address, path) in [
            ("//10.0.0.7:5050/api/v1/scheduler?x=1", "10.0.0.7:5050", "/api/v1/scheduler?x=1"),
            ("http://host:1", "host:1", "/"),
            ("host:80/a", "host:80", "/a"),
            ("host:80?a", "host:80", "/?a"),
            ("http://[::1]:5050/", "[::1]:5050", "/"),
            ("https://host:1/x", "host:1", "/x"),
        ] {
            let (found, rest) = Address::split_url(url).unwrap();
            assert_eq!((found.to_string().as_str(), rest.as_str()), (address, path));
        }
        let scheme = |url| Address::split_url(url).unwrap().0.scheme();
        assert_eq!(
            ["http://h:1", "https://h:1", "//h:1"].map(scheme),
            [Scheme::Http, Scheme::Https, Scheme::Configured]
        );
        for broken in ["", "host", "host:x", ":80", "ftp://host:1", "host:99999", "a b:1"] {
            assert!(Address::split_url(broken).is_err(), "{broken}");
        }
        assert!("host:1/path".parse::<Address>().is_err());
    }
}
