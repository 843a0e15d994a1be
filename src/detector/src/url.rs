//! Parses `zk://[user:password@]host:port,.../path`, and hides its password.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "zk://";

/// An error of parsing a URL of a group. The message contains no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; a ZooKeeper URL is of the form zk://[user:password@]host:port,host:port/path")]
pub struct UrlError(String);

/// The servers of a group, its path, and the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    servers: String,
    credential: Option<String>,
    path: String,
}

impl Url {
    /// Returns the servers, as `host:port,host:port`.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// Returns the path of the group. It starts with `/` and does not end with one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the credential as `user:password`.
    pub(crate) fn credential(&self) -> Option<&str> {
        self.credential.as_deref()
    }
}

/// Formats the URL without user and password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}{}", self.servers, self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let refused = |why: &str| Err(UrlError(why.to_owned()));
        let Some(rest) = text.strip_prefix(SCHEME) else { return refused("it does not begin with zk://") };
        let Some((authority, path)) = rest.split_once('/') else { return refused("the path of the group is missing") };
        let (credential, servers) = match authority.rsplit_once('@') {
            Some((credential, servers)) => (Some(credential.to_owned()), servers),
            None => (None, authority),
        };
        if credential.as_ref().is_some_and(|credential| !credential.contains(':')) {
            return refused("the text before '@' is not of the form user:password");
        }
        if let Some(wrong) = servers.split(',').find(|server| !is_server(server)) {
            // The text after the first '/' may be the rest of a password.
            return match credential.is_none() && path.contains('@') {
                true => refused("the text before the first '/' is not a list of servers, and a password has no '/'"),
                false => Err(UrlError(format!("the server '{wrong}' is not of the form host:port"))),
            };
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return refused("the path of the group is missing");
        }
        if let Some(wrong) = path.split('/').find(|part| !is_name(part)) {
            return Err(UrlError(format!("'{}' cannot be a part of the path", wrong.escape_debug())));
        }
        Ok(Url { servers: servers.to_owned(), credential, path: format!("/{path}") })
    }
}

fn is_server(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let named =
            !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control() || "/@".contains(c));
        named && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

/// Returns whether ZooKeeper accepts this as the name of a node.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && !text.contains(|c: char| c.is_control() || matches!(c, '\u{fff0}'..='\u{ffff}' | '\u{e000}'..='\u{f8ff}'))
}

/// Returns a text that may be shown: such a URL, even one with mistakes, is returned without user and password.
pub fn without_credential(text: &str) -> Cow<'_, str> {
    let Some(rest) = text.trim_start().strip_prefix(SCHEME) else { return Cow::Borrowed(text) };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => Cow::Owned(format!("{SCHEME}{}", &rest[at + 1..])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url: Url = "zk://u:p@s@a:1,b:2/mesos/x/".parse().unwrap();
        assert_eq!((url.servers(), url.path()), ("a:1,b:2", "/mesos/x"));
        assert_eq!(url.credential(), Some("u:p@s"));
        assert_eq!(format!("{url:?} {url}"), "zk://a:1,b:2/mesos/x zk://a:1,b:2/mesos/x");
        let url: Url = "zk://[::1]:2181/m@s".parse().unwrap();
        assert_eq!((url.servers(), url.path(), url.credential()), ("[::1]:2181", "/m@s", None));
    }

    #[test]
    fn refusals_name_the_item_and_the_rule_and_no_password() {
        for (text, message) in [
            ("zk:/a:1/mesos", "does not begin with zk://"),
            ("zk://", "path of the group is missing"),
            ("zk://a:1", "path of the group is missing"),
            ("zk://u:secret@a:1", "path of the group is missing"),
            ("zk://a:1//", "path of the group is missing"),
            ("zk:///mesos", "the server '' is not"),
            ("zk://a/mesos", "the server 'a' is not"),
            ("zk://u:secret@a:1,b:0/mesos", "the server 'b:0' is not"),
            ("zk://a:1,/mesos", "the server '' is not"),
            ("zk://secret@a:1/mesos", "before '@' is not of the form user:password"),
            ("zk://u:sec/ret@a:1/mesos", "a password has no '/'"),
            ("zk://a:1/m//x", "'' cannot be a part of the path"),
            ("zk://a:1/m/../x", "'..' cannot be a part of the path"),
            ("zk://a:1/m\n", "'m\\n' cannot be a part of the path"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("zk://[user:password@]host:port"), "{text}: {error}");
            assert!(!error.contains("sec"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_shown_has_no_password() {
        for (text, shown) in [
            ("zk://u:p@s@a:1,b:2/mesos", "zk://a:1,b:2/mesos"),
            ("zk://u:p@a:1", "zk://a:1"),
            ("zk://a:1/m@s", "zk://a:1/m@s"),
            ("master@10.0.0.1:5050", "master@10.0.0.1:5050"),
            ("file:///etc/mesos/zk", "file:///etc/mesos/zk"),
        ] {
            assert_eq!(without_credential(text), shown);
        }
    }
}
