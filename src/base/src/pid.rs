//! The libprocess process id: `<id>@<ip>:<port>`.
//!
//! It does not resolve host names and sends nothing.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use std::sync::Arc;

use crate::ip_text;

/// The sender or the receiver of a libprocess message, as in docs/mesos/libprocess.md.
///
/// The default is the empty pid, `@0.0.0.0:0`, which stands for "none" on the wire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid {
    id: Arc<str>,
    address: SocketAddrV4,
}

impl Pid {
    /// Creates a pid from the name of a process and its address.
    pub fn new(id: &str, address: SocketAddrV4) -> Pid {
        Pid { id: id.into(), address }
    }

    /// Returns the name of the process at its address, such as `master` or `slave(1)`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the address to which messages for the process are sent.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Returns whether this is the empty pid, "none".
    pub fn is_empty(&self) -> bool {
        self.id.is_empty() && self.address.port() == 0
    }

    /// Parses a pid of a string field, where `""` and invalid texts also stand for "none".
    pub fn parse_lenient(text: &str) -> Pid {
        text.parse().unwrap_or_default()
    }

    /// Returns whether a string field names a process: whether [`Pid::parse_lenient`] would return a pid other than the
    /// empty one.
    pub fn is_named(text: &str) -> bool {
        parts(text).is_some_and(|(id, address)| !id.is_empty() || address.port() != 0)
    }
}

impl Default for Pid {
    fn default() -> Pid {
        Pid { id: "".into(), address: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0) }
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut port = itoa::Buffer::new();
        let parts = [&self.id, "@", &ip_text(*self.address.ip()), ":", port.format(self.address.port())];
        parts.into_iter().try_for_each(|part| f.write_str(part))
    }
}

/// The error for a text that is not a pid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not of the form <id>@<IPv4>:<port>")]
pub struct PidError(String);

/// Returns the id and the address of a pid's text; `None` if it does not have that form.
fn parts(text: &str) -> Option<(&str, SocketAddrV4)> {
    let (id, address) = text.split_once('@')?;
    let (ip, port) = address.rsplit_once(':')?;
    Some((id, SocketAddrV4::new(ip.parse().ok()?, port.parse().ok()?)))
}

impl FromStr for Pid {
    type Err = PidError;

    /// Parses a pid: splits at the first `@` and at the last `:` of the rest. Host names are not resolved.
    fn from_str(text: &str) -> Result<Pid, PidError> {
        let (id, address) = parts(text).ok_or_else(|| PidError(text.to_owned()))?;
        Ok(Pid { id: id.into(), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for text in ["master@10.0.0.1:5050", "slave(1)@127.0.0.1:5051", "@0.0.0.0:0"] {
            assert_eq!(text.parse::<Pid>().unwrap().to_string(), text);
        }
        assert!("@0.0.0.0:0".parse::<Pid>().unwrap().is_empty() && !Pid::is_named("@0.0.0.0:0"));
        assert!(Pid::is_named("slave(1)@127.0.0.1:5051"));
    }

    #[test]
    fn refuses() {
        for text in ["", "master", "master@10.0.0.1", "master@host:5050", "m@1.2.3.4:70000"] {
            assert!(text.parse::<Pid>().is_err(), "{text}");
            assert!(Pid::parse_lenient(text).is_empty() && !Pid::is_named(text), "{text}");
        }
    }
}
