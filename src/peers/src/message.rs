//! Messages between members, as bytes.
//!
//! A message starts with the version of this format. In a group with a secret it ends with an authentication code over
//! all of it.

use hmac::{Hmac, KeyInit, Mac};
use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message as LogMessage;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::entry::LogEntry;
use crate::link::Numbers;
use crate::log::InitialState;
use crate::members::{Cluster, Configuration};

/// Version of the format. Members with different versions cannot exchange messages.
pub const VERSION: u8 = 2;
/// Length of an authentication code in bytes.
const CODE: usize = 32;

/// Secret of all members of a group, by which they authenticate their messages.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Creates a secret from bytes of any length.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    fn code(&self, bytes: &[u8]) -> Hmac<Sha256> {
        // A key of HMAC may have any length, including zero.
        let mut code = match Hmac::<Sha256>::new_from_slice(&self.0) {
            Ok(code) => code,
            Err(_) => Hmac::<Sha256>::new(&Default::default()),
        };
        code.update(bytes);
        code
    }
}

/// A message of one member to another, with its sender and receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// Identity of the group; `None` before it has formed.
    pub cluster: Option<Cluster>,
    /// Address of the sender, as `--peers` names it.
    pub from: String,
    /// Address of the receiver, as `--peers` names it.
    pub to: String,
    pub numbers: Numbers,
    pub body: Body,
}

/// Contents of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Body {
    /// A master that is not a member yet, or may be behind, announces itself.
    Hello(Hello),
    /// Answer to a member: the group, and the state of the registry.
    Welcome(Box<Welcome>),
    /// Answer to a master that is not a member: the number of the configuration and the addresses of its members.
    NotMember { configuration: u32, members: Vec<String> },
    /// A message of the log's protocol.
    Log {
        configuration: u32,
        /// Number of the promise that the message contains or answers.
        promise: u64,
        message: Box<LogMessage<LogEntry>>,
    },
    /// The leader reports the position of its log, and asks for a lease. Until it has applied the entries of earlier
    /// rounds, it asks for none, and `round` is `None`.
    Ask { configuration: u32, round: Option<u64>, accepted: usize, decided: usize },
    /// A lease is granted, counted from the request. `accepted` is the number of entries that the sender has accepted,
    /// and the round of the log in which it did.
    Grant { configuration: u32, round: Option<u64>, accepted: (Ballot, usize) },
    /// The leader ends its lease. The member with `successor` should lead next.
    Release { successor: bool },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub disk: u64,
    /// Addresses of `--peers`, sorted.
    pub peers: Vec<String>,
    /// Number of the sender's configuration; `None` if it is not a member.
    pub configuration: Option<u32>,
    /// Whether the sender brings a registry into the group that it forms.
    pub brings_registry: bool,
    /// Hash of the disks of all of `peers`, once the sender, which is not a member, knows them.
    pub founders_hash: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub configuration: Configuration,
    pub initial_state: InitialState,
}

/// Reasons why a message cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The sender uses another version of the format.
    #[error(
        "it has version {0} of the peers' protocol, and this master version {VERSION}: run the same version of tepui on all peers"
    )]
    Version(u8),
    /// The message is cut off, or invalid.
    #[error("it cannot be decoded")]
    Undecodable,
    /// The authentication code is wrong.
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
            // Without a secret, this master sees a code at the end.
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
            founders_hash: Some(7),
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
