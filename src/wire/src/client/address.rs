//! Where a server is: host name or IP, and port.

use std::fmt;
use std::str::FromStr;

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not of the form [http://]<host>:<port>[/<path>]")]
pub struct AddressError(String);

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// An address from its parts; an IPv6 host has no brackets here.
    pub fn new(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    /// Host name or IP.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address in a URL, and the path with query behind it (at least `/`). The scheme may be left out, as in the
    /// `Location` of a follower's redirect.
    ///
    /// # Errors
    /// When there is no host and port, or the scheme is not http.
    pub fn split_url(url: &str) -> Result<(Address, String), AddressError> {
        let error = || AddressError(url.to_owned());
        let rest = url.strip_prefix("http:").unwrap_or(url);
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
        Ok((Address::new(host, port), path))
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
        ] {
            let (found, rest) = Address::split_url(url).unwrap();
            assert_eq!((found.to_string().as_str(), rest.as_str()), (address, path));
        }
        for broken in ["", "host", "host:x", ":80", "https://host:1", "host:99999", "a b:1"] {
            assert!(Address::split_url(broken).is_err(), "{broken}");
        }
        assert!("host:1/path".parse::<Address>().is_err());
    }
}
