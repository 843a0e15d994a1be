//! State of peers that authenticate, within limits: they may have proved nothing yet.
//!
//! It makes no decisions; see `authentication`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Pid;
use rustc_hash::FxHashMap;

use crate::io::Outbox;
use crate::message::Message;

/// Limit of the bytes that wait for the ends of all conversations.
const WAITING_MAX: usize = 64 << 20;
/// Limit of the bytes of one waiting message.
const MESSAGE_MAX: usize = 16 << 20;
/// Limit of remembered peers that have authenticated and not registered since.
const NEWCOMERS_MAX: usize = 1 << 16;

/// Result of a successful authentication.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AuthenticationResult {
    /// Principal that the peer has authenticated as.
    pub principal: Arc<str>,
    /// Number of the conversation in which it did so.
    pub attempt: u64,
}

/// A conversation in progress.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Number of the conversation.
    pub attempt: u64,
    /// Request that the peer has sent meanwhile, as name and body. A decoded message may take up many times as much
    /// memory.
    waiting: Option<(&'static str, Vec<u8>)>,
    /// Whether an earlier authentication has left a link.
    pub is_linked: bool,
}

impl Conversation {
    /// Returns the request that the peer has sent meanwhile.
    pub(crate) fn waiting(&self) -> Option<Message> {
        let (name, body) = self.waiting.as_ref()?;
        Message::read(name, body)
    }

    fn len(&self) -> usize {
        self.waiting.as_ref().map_or(0, |(_, body)| body.len())
    }
}

/// Peers that are authenticating, and authenticated ones.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    ongoing: FxHashMap<Pid, Conversation>,
    /// Number of bytes that wait in all conversations.
    waiting: usize,
    authenticated: FxHashMap<Pid, AuthenticationResult>,
    /// Peers with the latest authentications, by conversation. It contains all that are not admitted, and some that
    /// are.
    newcomers: BTreeMap<u64, Pid>,
}

impl Peers {
    /// Starts a conversation with a peer. An earlier authentication of the peer becomes void.
    pub(crate) fn begin(&mut self, pid: Pid, attempt: u64) {
        let had_proof = self.forget(&pid).is_some();
        let conversation = self.ongoing.entry(pid).or_default();
        conversation.attempt = attempt;
        conversation.is_linked |= had_proof;
    }

    /// Returns a message that may be handled now. A message that asks for admission waits for the end of its sender's
    /// authentication. Of several only the last one is kept, as they repeat each other.
    pub(crate) fn admissible(&mut self, from: &Pid, message: Message, out: &mut Outbox) -> Option<Message> {
        if !self.are_any_ongoing() || !message.asks_for_admission() || !self.is_ongoing(from) {
            return Some(message);
        }
        if let Err(why) = self.keep_waiting(from, &message) {
            // Agents and drivers retry.
            out.warn(format!("Dropping {} of {from}, which is being authenticated: {why}", message.name()));
        }
        None
    }

    /// Removes a conversation that has ended. Returns `None` if the peer has a newer conversation, or none.
    pub(crate) fn end(&mut self, pid: &Pid, attempt: u64) -> Option<Conversation> {
        if self.ongoing.get(pid)?.attempt != attempt {
            return None;
        }
        let conversation = self.ongoing.remove(pid)?;
        self.waiting -= conversation.len();
        Some(conversation)
    }

    /// Returns whether any conversation is in progress.
    pub(crate) fn are_any_ongoing(&self) -> bool {
        !self.ongoing.is_empty()
    }

    /// Returns whether a conversation with this peer is in progress.
    pub(crate) fn is_ongoing(&self, pid: &Pid) -> bool {
        self.ongoing.contains_key(pid)
    }

    /// Keeps a message until the conversation with its sender has ended, in place of an earlier one.
    ///
    /// # Errors
    /// A limit is exceeded; the earlier message stays.
    pub(crate) fn keep_waiting(&mut self, pid: &Pid, message: &Message) -> Result<(), String> {
        let Some(conversation) = self.ongoing.get_mut(pid) else { return Ok(()) };
        let (len, others) = (message.encoded_len(), self.waiting - conversation.len());
        if len > MESSAGE_MAX {
            return Err(format!("{len} bytes are too many before the sender is authenticated"));
        }
        if others + len > WAITING_MAX {
            return Err("too many bytes of unauthenticated peers are queued".to_owned());
        }
        conversation.waiting = Some((message.name(), message.encode()));
        self.waiting = others + len;
        Ok(())
    }

    /// Returns the authentication of a peer.
    pub(crate) fn authentication(&self, pid: &Pid) -> Option<&AuthenticationResult> {
        self.authenticated.get(pid)
    }

    /// Records that a peer has authenticated.
    pub(crate) fn record_authentication(&mut self, pid: Pid, authentication: AuthenticationResult) {
        self.forget(&pid);
        self.newcomers.insert(authentication.attempt, pid.clone());
        self.authenticated.insert(pid, authentication);
    }

    /// Removes the authentication of a peer.
    pub(crate) fn forget(&mut self, pid: &Pid) -> Option<AuthenticationResult> {
        let authentication = self.authenticated.remove(pid)?;
        self.newcomers.remove(&authentication.attempt);
        Some(authentication)
    }

    /// Returns the peer whose authentication is the oldest, if there are too many, and removes it from the newcomers.
    /// The caller forgets the authentication unless the peer is admitted; that of an admitted peer is removed with its
    /// registration.
    pub(crate) fn take_surplus(&mut self) -> Option<Pid> {
        if self.newcomers.len() <= NEWCOMERS_MAX {
            return None;
        }
        self.newcomers.pop_first().map(|(_, pid)| pid)
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos::internal::RegisterSlaveMessage;

    use super::*;

    fn pid(number: usize) -> Pid {
        Pid::parse_lenient(&format!("slave({number})@10.0.0.1:5051"))
    }

    fn message(bytes: usize) -> Message {
        let mut message = RegisterSlaveMessage::default();
        message.slave.hostname = "h".repeat(bytes);
        Message::RegisterSlave(Box::new(message))
    }

    #[test]
    fn what_waits_is_limited_by_message_and_in_all() {
        let mut peers = Peers::default();
        (0..6).for_each(|number| peers.begin(pid(number), number as u64));
        assert!(peers.keep_waiting(&pid(0), &message(MESSAGE_MAX)).is_err());
        let large = message(MESSAGE_MAX - 100);
        for number in 0..4 {
            peers.keep_waiting(&pid(number), &large).unwrap();
        }
        // A replacement takes no further space, and if it does not fit, the former value stays.
        peers.keep_waiting(&pid(3), &large).unwrap();
        peers.keep_waiting(&pid(4), &message(10)).unwrap();
        assert!(peers.keep_waiting(&pid(4), &large).is_err());
        assert!(peers.keep_waiting(&pid(5), &message(1000)).is_err());
        assert_eq!(peers.end(&pid(4), 4).unwrap().waiting(), Some(message(10)));
        // The end of a conversation frees the space of its message.
        assert_eq!(peers.end(&pid(0), 0).unwrap().waiting(), Some(large.clone()));
        peers.keep_waiting(&pid(5), &large).unwrap();
        for number in [1, 2, 3, 5] {
            assert!(peers.end(&pid(number), number as u64).is_some());
        }
        assert_eq!(peers.waiting, 0);
        assert!(!peers.are_any_ongoing());
    }
}
