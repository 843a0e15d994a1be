//! Messages between members, as bytes.
//!
//! A message begins with the version of this format and ends, in a group with a secret, with a code over all of it.

use hmac::{Hmac, KeyInit, Mac};
use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message as LogMessage;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::entry::LogEntry;
use crate::link::Numbers;
use crate::log::Beginning;
use crate::members::{Cluster, Configuration};

/// The version of the format. Members with different versions do not understand each other.
pub const VERSION: u8 = 2;
/// Number of bytes of a code.
const CODE: usize = 32;

/// What all members of a group know, to authenticate their messages.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// A secret of any length.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    fn code(&self, bytes: &[u8]) -> Hmac<Sha256> {
        // A key of HMAC may have any length, also none.
        let mut code = match Hmac::<Sha256>::new_from_slice(&self.0) {
            Ok(code) => code,
            Err(_) => Hmac::<Sha256>::new(&Default::default()),
        };
        code.update(bytes);
        code
    }
}

/// A message of one member to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// None before the group has formed.
    pub cluster: Option<Cluster>,
    /// The address of the sender, as `--peers` names it.
    pub from: String,
    /// That of the receiver.
    pub to: String,
    pub numbers: Numbers,
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Body {
    /// A master that is not a member yet, or may be behind, shows itself.
    Hello(Hello),
    /// The answer to a member: the group, and the state of the registry.
    Welcome(Box<Welcome>),
    /// The answer to a master that is not a member: the number of the configuration and the addresses of its members.
    Stranger { configuration: u32, members: Vec<String> },
    /// Part of the protocol of the log.
    Log {
        configuration: u32,
        /// With a promise: its number. With what follows a promise: the number of that.
        promise: u64,
        message: Box<LogMessage<LogEntry>>,
    },
    /// The leader shows how far its log is, and asks for its lease: not before it has applied the entries of earlier
    /// rounds, when it has no `round` of questions.
    Ask { configuration: u32, round: Option<u64>, accepted: usize, decided: usize },
    /// The lease is granted from when that was asked. `accepted` is the number of entries that the sender has accepted,
    /// and the round of the log in which it did.
    Grant { configuration: u32, round: Option<u64>, accepted: (Ballot, usize) },
    /// The leader gives its lease back. One member is to lead next.
    Release { successor: bool },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub disk: u64,
    /// The addresses of `--peers`, sorted.
    pub peers: Vec<String>,
    /// The number of the sender's configuration.
    pub configuration: Option<u32>,
    /// The sender brings a registry into the group that it forms.
    pub brings_registry: bool,
    /// A hash over the disks of all of `peers`, once the sender, which is not a member, knows them.
    pub knows: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub configuration: Configuration,
    pub beginning: Beginning,
}

/// A message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Another version of this program has sent it.
    #[error(
        "it has version {0} of the peers' protocol, and this master version {VERSION}: run the same version of tepui on all peers"
    )]
    Version(u8),
    /// It is cut off, or no such message.
    #[error("it cannot be decoded")]
    Undecodable,
    /// Its code is wrong.
    #[error("its sender does not have the secret of --peer_secret")]
    Unauthenticated,
}

impl Envelope {
    pub(crate) fn encode(&self, secret: Option<&Secret>) -> Vec<u8> {
        // Writing to memory does not fail.
        let mut bytes = postcard::to_extend(self, vec![VERSION]).unwrap_or_default();
        if let Some(secret) = secret {
            bytes.extend_from_slice(&secret.code(&bytes).finalize().into_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], secret: Option<&Secret>) -> Result<Envelope, MessageError> {
        let version = *bytes.first().ok_or(MessageError::Undecodable)?;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let bytes = match secret {
            Some(secret) => {
                let (rest, code) = bytes.split_last_chunk::<CODE>().ok_or(MessageError::Unauthenticated)?;
                secret.code(rest).verify_slice(code).map_err(|_| MessageError::Unauthenticated)?;
                rest
            }
            None => bytes,
        };
        let body = bytes.get(1..).ok_or(MessageError::Undecodable)?;
        match postcard::take_from_bytes(body) {
            Ok((envelope, [])) => Ok(envelope),
            // Without its secret, this master sees a code at the end.
            Ok((_, rest)) if rest.len() == CODE => Err(MessageError::Unauthenticated),
            _ => Err(MessageError::Undecodable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Envelope {
        let hello = Hello {
            disk: 7,
            peers: vec!["a:1".to_owned(), "b:2".to_owned()],
            configuration: None,
            brings_registry: false,
            knows: Some(7),
        };
        Envelope {
            cluster: None,
            from: "a:1".to_owned(),
            to: "b:2".to_owned(),
            numbers: Numbers { disk: 1, start: 1, to: 2, number: 3 },
            body: Body::Hello(hello),
        }
    }

    fn read(bytes: &[u8], secret: Option<&Secret>) -> Result<String, MessageError> {
        Envelope::decode(bytes, secret).map(|envelope| envelope.from)
    }

    #[test]
    fn what_is_sent_is_read() {
        for secret in [None, Some(Secret::new(b"s".to_vec())), Some(Secret::new(Vec::new()))] {
            let bytes = message().encode(secret.as_ref());
            let read = Envelope::decode(&bytes, secret.as_ref()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{:?}", message()));
        }
    }

    #[test]
    fn what_is_not_from_a_member_is_refused() {
        let (one, other) = (Secret::new(b"s".to_vec()), Secret::new(b"t".to_vec()));
        let bytes = message().encode(Some(&one));
        assert_eq!(read(&bytes, Some(&other)), Err(MessageError::Unauthenticated));
        assert_eq!(read(&bytes, None), Err(MessageError::Unauthenticated));
        assert_eq!(read(&message().encode(None), Some(&one)), Err(MessageError::Unauthenticated));
        for position in 1..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            assert_eq!(read(&changed, Some(&one)), Err(MessageError::Unauthenticated), "{position}");
        }
        assert_eq!(read(&[], None), Err(MessageError::Undecodable));
        assert_eq!(read(&[VERSION], None), Err(MessageError::Undecodable));
        let newer = read(&[VERSION + 1, 0], None).unwrap_err();
        assert_eq!(newer, MessageError::Version(VERSION + 1));
        let said = "it has version 3 of the peers' protocol, and this master version 2: run the same version of tepui on all peers";
        assert_eq!(newer.to_string(), said);
        assert_eq!(format!("{one:?}"), "Secret(..)");
    }
}
