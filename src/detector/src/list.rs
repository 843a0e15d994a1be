//! The addresses of a cluster's masters, as in `--master=h1:5050,h2:5050,h3:5050`.

use std::fmt;
use std::str::FromStr;

use wire::client::Address;

/// Maximum number of masters of a list.
const MASTERS_MAX: usize = 16;

/// An error of parsing a list of masters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A part of the text is not an address.
    #[error("'{0}' is not of the form <host>:<port>; give the masters as for example h1:5050,h2:5050,h3:5050")]
    Address(String),
    /// A master occurs more than once in the list.
    #[error("'{0}' is listed more than once; list each master once")]
    Repeated(Address),
    /// The list is empty or too long.
    #[error("the list has {0} masters: expected 1 to {MASTERS_MAX}")]
    Length(usize),
}

/// A list of 1 to 16 addresses of masters, each of them once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterList(Vec<Address>);

impl MasterList {
    /// Creates a list of these masters.
    ///
    /// # Errors
    /// There are none or too many, or one occurs more than once.
    pub fn new(masters: Vec<Address>) -> Result<MasterList, ListError> {
        if !(1..=MASTERS_MAX).contains(&masters.len()) {
            return Err(ListError::Length(masters.len()));
        }
        let is_before = |at: usize| masters[..at].iter().any(|other| is_same(other, &masters[at]));
        match (1..masters.len()).find(|at| is_before(*at)) {
            Some(at) => Err(ListError::Repeated(masters[at].clone())),
            None => Ok(MasterList(masters)),
        }
    }

    /// Returns the masters, in the order in which they were given.
    pub fn masters(&self) -> &[Address] {
        &self.0
    }
}

/// Returns whether two addresses have the same host, by its name, and the same port.
pub(crate) fn is_same(one: &Address, other: &Address) -> bool {
    one.host().eq_ignore_ascii_case(other.host()) && one.port() == other.port()
}

impl FromStr for MasterList {
    type Err = ListError;

    fn from_str(text: &str) -> Result<MasterList, ListError> {
        let address = |part: &str| {
            let part = part.trim();
            part.parse::<Address>()
                .ok()
                .filter(|found| found.port() != 0 && !found.host().contains(['@', '/']))
                .ok_or_else(|| ListError::Address(shown(part).to_owned()))
        };
        MasterList::new(text.split(',').map(address).collect::<Result<_, _>>()?)
    }
}

/// Returns the part of an invalid address that may be shown: the text before an `@` may be the password of a URL with a
/// mistake.
fn shown(part: &str) -> &str {
    part.rsplit_once('@').map_or(part, |(_, rest)| rest)
}

impl fmt::Display for MasterList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, master) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{master}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists() {
        for (text, list) in [
            ("a:1", "a:1"),
            ("a:1, b:2,c:3", "a:1,b:2,c:3"),
            ("https://a:1,http://b:2,[::1]:3", "a:1,b:2,[::1]:3"),
            ("a:1,a:2,b:1", "a:1,a:2,b:1"),
        ] {
            assert_eq!(text.parse::<MasterList>().unwrap().to_string(), list);
        }
    }

    #[test]
    fn refusals_name_the_item_and_the_rule() {
        for (text, message) in [
            ("", "'' is not of the form <host>:<port>"),
            ("a:1,", "'' is not of the form <host>:<port>"),
            ("a:1,b", "'b' is not of the form <host>:<port>"),
            ("a:1,b:x", "'b:x' is not of the form"),
            ("a:1,b:0", "'b:0' is not of the form"),
            ("a:1,zk://b:2/mesos", "'zk://b:2/mesos' is not of the form"),
            ("a:1,u:secret@b:2", "'b:2' is not of the form"),
            ("a:1,b:2,A:1", "'A:1' is listed more than once"),
            ("a:1,https://a:1", "'a:1' is listed more than once"),
        ] {
            let error = text.parse::<MasterList>().unwrap_err().to_string();
            assert!(error.contains(message) && !error.contains("secret"), "{text}: {error}");
        }
        let many = |count: usize| (1..=count).map(|port| format!("a:{port}")).collect::<Vec<_>>().join(",");
        assert!(many(16).parse::<MasterList>().is_ok());
        assert_eq!(many(17).parse::<MasterList>(), Err(ListError::Length(17)));
        assert_eq!(MasterList::new(Vec::new()), Err(ListError::Length(0)));
    }

    proptest! {
        /// A text is rejected, or gives 1 to 16 different addresses; the list as a text gives the same list.
        #[test]
        fn any_text(text in "([a-c]{0,2}:[0-9]{0,3}|.{0,6})(,([a-c]{0,2}:[0-9]{0,3}|.{0,6})){0,18}") {
            if let Ok(list) = text.parse::<MasterList>() {
                prop_assert!((1..=16).contains(&list.masters().len()));
                let again: MasterList = list.to_string().parse().unwrap();
                prop_assert_eq!(again.to_string(), list.to_string());
            }
        }
    }
}
