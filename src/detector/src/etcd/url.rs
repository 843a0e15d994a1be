//! Parses `http[s]://host:port,host:port/prefix`: the members of an etcd cluster, and the prefix of keys.

use std::fmt;
use std::str::FromStr;

use wire::client::{Address, Scheme};

/// Default prefix of keys.
const PREFIX: &str = "/tepui";
/// Maximum length of the prefix in bytes.
const PREFIX_MAX: usize = 256;
/// Maximum number of addresses.
const SERVERS_MAX: usize = 32;

/// An error of parsing a URL of etcd. The message contains no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; a URL of etcd is of the form http://host:port,host:port[/prefix], or the same with https")]
pub struct EtcdUrlError(String);

/// The members of an etcd cluster, and the prefix of a group's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUrl {
    scheme: Scheme,
    servers: Vec<Address>,
    prefix: String,
}

impl EtcdUrl {
    /// Returns the addresses of members; at least one.
    pub fn servers(&self) -> &[Address] {
        &self.servers
    }

    /// Returns whether connections to the members use TLS.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Returns the prefix of keys. It starts with `/` and does not end with one.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls() { "https://" } else { "http://" })?;
        for (at, server) in self.servers.iter().enumerate() {
            write!(f, "{}{server}", if at == 0 { "" } else { "," })?;
        }
        f.write_str(&self.prefix)
    }
}

fn scheme_of(text: &str) -> Option<(Scheme, &str)> {
    let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
    schemes.iter().find_map(|(prefix, scheme)| Some((*scheme, text.strip_prefix(prefix)?)))
}

impl FromStr for EtcdUrl {
    type Err = EtcdUrlError;

    fn from_str(text: &str) -> Result<EtcdUrl, EtcdUrlError> {
        let refused = |why: &str| Err(EtcdUrlError(why.to_owned()));
        if text.contains('@') {
            return refused("it has a user or a password: set these with --etcd_credential");
        }
        let Some((scheme, _)) = scheme_of(text) else {
            return refused("it begins neither with http:// nor with https://");
        };
        let items: Vec<&str> = text.split(',').collect();
        let mut servers = Vec::new();
        let mut prefix = "";
        for (at, item) in items.iter().enumerate() {
            // Each address may have the scheme, as in etcd's own programs.
            let rest = match scheme_of(item.trim()) {
                Some((other, _)) if other != scheme => return refused("it has both http:// and https://"),
                Some((_, rest)) => rest,
                None => item.trim(),
            };
            let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let is_last = at + 1 == items.len();
            if !is_last && !matches!(path, "" | "/") {
                return refused("the prefix follows the last address only");
            }
            prefix = path.trim_end_matches('/');
            let Some(address) = address_of(server) else {
                return Err(EtcdUrlError(format!(
                    "the address '{}' is not of the form host:port",
                    server.escape_debug()
                )));
            };
            let address = address.with_scheme(scheme);
            if servers.contains(&address) {
                return Err(EtcdUrlError(format!("the address '{server}' is named twice")));
            }
            servers.push(address);
        }
        if servers.len() > SERVERS_MAX {
            return Err(EtcdUrlError(format!("it has more than {SERVERS_MAX} addresses")));
        }
        let prefix = if prefix.is_empty() { PREFIX } else { prefix };
        let is_wrong = |part: &str| part.is_empty() || part.contains(|c: char| c.is_control() || c.is_whitespace());
        if prefix.len() > PREFIX_MAX || prefix[1..].split('/').any(is_wrong) {
            return Err(EtcdUrlError(format!("'{}' cannot be the prefix", prefix.escape_debug())));
        }
        Ok(EtcdUrl { scheme, servers, prefix: prefix.to_owned() })
    }
}

fn address_of(text: &str) -> Option<Address> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:[]%".contains(c);
    text.parse::<Address>().ok().filter(|address| address.port() != 0 && text.chars().all(is_host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (text, shown) in [
            ("http://a:2379", "http://a:2379/tepui"),
            ("https://a:1,b:2/x/y/", "https://a:1,b:2/x/y"),
            ("http://a:1/,http://b:2", "http://a:1,b:2/tepui"),
            ("http://a:1, b:2/p", "http://a:1,b:2/p"),
            ("http://[::1]:2379/", "http://[::1]:2379/tepui"),
        ] {
            let url: EtcdUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(url.is_tls(), text.starts_with("https"));
            assert!(url.servers().iter().all(|server| server.scheme() != Scheme::Configured));
        }
    }

    #[test]
    fn refusals_name_the_item_and_the_rule_and_no_password() {
        for (text, message) in [
            ("", "begins neither"),
            ("a:2379", "begins neither"),
            ("etcd://a:2379", "begins neither"),
            ("http://a", "the address 'a' is not of the form host:port"),
            ("http://a:0", "the address 'a:0' is not"),
            ("http://a:1,", "the address '' is not"),
            ("http://a:1,https://b:1", "both http:// and https://"),
            ("http://a:1/x,b:1", "follows the last address only"),
            ("http://a:1,a:1", "'a:1' is named twice"),
            ("http://a:1//x", "'//x' cannot be the prefix"),
            ("http://a:1/a b", "'/a b' cannot be the prefix"),
            ("http://u:secret@a:1", "--etcd_credential"),
        ] {
            let error = text.parse::<EtcdUrl>().unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("http://host:port"), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
