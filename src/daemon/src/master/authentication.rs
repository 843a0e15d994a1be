//! Authentication of agents and drivers: the live side of `master::Authenticator`.
//!
//! It passes messages, and reports results to the core.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::{Pid, lock};
use master::{AuthInput, AuthOutput, Authenticator, Input, client_of};
use protos::mesos::internal::AuthenticateMessage;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use wire::libprocess::{ConnectionId, Message, Origin};

use super::outputs::{Shell, TimedMaster};
use crate::audit::Audit;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::flags::FlagError;
use crate::flags::master::AccessFlags;
use crate::logins::{Attempt, Logins};
use crate::random;
use crate::senders::Senders;

/// Name of the message that begins a conversation.
const AUTHENTICATE: &str = "mesos.internal.AuthenticateMessage";
/// Prefix of the libprocess ids of conversations; the number follows.
const SESSION: &str = "crammd5-authenticator-session";

/// The live authenticator: passes messages of conversations to `master::Authenticator`.
pub(super) struct Authentication {
    state: Mutex<State>,
    attempts: AtomicU64,
    senders: Arc<Senders>,
    logins: Logins,
    shell: Arc<Shell>,
    driver: Driver<TimedMaster>,
    clock: Clock,
    audit: Audit,
    /// Notified when a conversation begins, so that `watch` waits for its timeout.
    begun: Notify,
}

struct State {
    authenticator: Authenticator,
    /// Conversations in progress, by number.
    conversations: FxHashMap<u64, Conversation>,
    /// Numbers of the conversations over each connection.
    over: FxHashMap<ConnectionId, Vec<u64>>,
    /// For each client the number of the conversation that the core knows.
    leading: FxHashMap<Pid, u64>,
}

impl State {
    fn new(authenticator: Authenticator) -> State {
        let (conversations, over, leading) = Default::default();
        State { authenticator, conversations, over, leading }
    }

    fn add(&mut self, attempt: u64, conversation: Conversation) {
        self.over.entry(conversation.origin.connection).or_default().push(attempt);
        if !conversation.is_tentative {
            self.leading.insert(conversation.client.clone(), attempt);
        }
        self.conversations.insert(attempt, conversation);
    }

    fn remove(&mut self, attempt: u64) -> Option<Conversation> {
        let conversation = self.conversations.remove(&attempt)?;
        if let Some(numbers) = self.over.get_mut(&conversation.origin.connection) {
            numbers.retain(|number| *number != attempt);
            if numbers.is_empty() {
                self.over.remove(&conversation.origin.connection);
            }
        }
        if self.leading.get(&conversation.client) == Some(&attempt) {
            self.leading.remove(&conversation.client);
        }
        Some(conversation)
    }

    /// Returns whether the client authenticates over another connection, which is open.
    fn is_led_elsewhere(&self, client: &Pid, connection: ConnectionId) -> bool {
        let leading = self.leading.get(client).and_then(|attempt| self.conversations.get(attempt));
        leading.is_some_and(|one| one.is_open && one.origin.connection != connection)
    }

    fn close(&mut self, connection: ConnectionId) {
        for attempt in self.over.remove(&connection).unwrap_or_default() {
            if let Some(one) = self.conversations.get_mut(&attempt) {
                one.is_open = false;
            }
        }
    }
}

/// A conversation that authenticates a client, and its connection.
struct Conversation {
    client: Pid,
    /// Process of the peer that sends the answers.
    peer: Pid,
    origin: Origin,
    /// Principal that the peer claims; empty before its first answer.
    principal: String,
    /// Whether the connection is open.
    is_open: bool,
    /// Whether the client is registered, or authenticates, over another connection. Then this conversation is reported
    /// to the core only if it succeeds, so that a forged one changes nothing.
    is_tentative: bool,
}

impl Conversation {
    fn new(client: Pid, peer: Pid, origin: Origin, is_tentative: bool) -> Conversation {
        Conversation { client, peer, origin, principal: String::new(), is_open: true, is_tentative }
    }

    /// Returns the log-in that the peer attempts; `None` before its first answer.
    fn login(&self) -> Option<Attempt<'_>> {
        let (origin, user) = (&self.origin, self.principal.as_str());
        let login = Attempt { source: origin.peer.ip(), connection: origin.connection, user };
        Some(login).filter(|login| !login.user.is_empty())
    }

    /// Returns whether a message with this origin comes from the peer.
    fn may_speak(&self, origin: &Origin) -> bool {
        let is_bound = self.is_open && self.origin.is_libprocess;
        let is_near = self.origin.peer.ip() == origin.peer.ip();
        self.origin.connection == origin.connection || (is_near && !is_bound)
    }
}

/// Creates the authenticator of libprocess clients. `known` are the users of `--credentials`.
///
/// # Errors
/// Authentication is required, and there are no credentials.
pub(super) fn authenticator(
    flags: &AccessFlags,
    known: Option<BTreeMap<String, String>>,
    hostname: &str,
) -> Result<Authenticator, FlagError> {
    let refused = |name, why: &str| Err(FlagError::Refused { name, why: why.to_owned() });
    if flags.authenticators != "crammd5" {
        return refused("authenticators", "must be 'crammd5'");
    }
    if known.is_none() {
        let both = [
            ("authenticate_agents", flags.authenticate_agents),
            ("authenticate_frameworks", flags.authenticate_frameworks),
        ];
        if let Some((name, _)) = both.into_iter().find(|(_, is_on)| *is_on) {
            return refused(name, "no client could authenticate: --credentials is needed, too");
        }
    }
    Ok(Authenticator::new(known.unwrap_or_default(), flags.authentication_v0_timeout, hostname))
}

impl Authentication {
    pub(super) fn new(
        authenticator: Authenticator,
        senders: Arc<Senders>,
        shell: Arc<Shell>,
        driver: Driver<TimedMaster>,
        clock: Clock,
        audit: Audit,
    ) -> Authentication {
        let state = Mutex::new(State::new(authenticator));
        let (attempts, logins, begun) = (AtomicU64::new(1), Logins::default(), Notify::new());
        Authentication { state, attempts, senders, logins, shell, driver, clock, audit, begun }
    }

    /// Handles a message that belongs to a conversation or begins one. Returns whether it is such a message.
    pub(super) fn handle_message(&self, message: &Message) -> bool {
        let (to, name) = (message.to.as_str(), message.name.as_str());
        if to == "master" && name == AUTHENTICATE {
            match protos::decode::<AuthenticateMessage>(&message.body) {
                Ok(wanted) => self.begin(message, &wanted),
                Err(error) => tracing::warn!(from = %message.from, "message dropped: {error}"),
            }
            return true;
        }
        if !to.starts_with(SESSION) {
            return false;
        }
        match AuthInput::decode(&message.from, to, name, &message.body) {
            Some(input) if !self.may_speak(&input, &message.origin) => {
                tracing::debug!(from = %message.from, "dropped: another connection began the conversation");
            }
            Some(input) if self.is_held_up(&input, &message.origin) => {
                tracing::debug!(from = %message.from, "dropped: too many failed attempts of this principal");
            }
            Some(input) => self.handle(input),
            None => tracing::debug!(from = %message.from, "no process handles {name}: dropped"),
        }
        true
    }

    /// Ends conversations that take too long; runs until it is dropped.
    pub(super) async fn watch(self: Arc<Authentication>) {
        loop {
            let wake = lock(&self.state).authenticator.next_wake();
            match wake {
                Some(at) => tokio::time::sleep_until(self.clock.instant(at).into()).await,
                None => self.begun.notified().await,
            }
            self.handle(AuthInput::Wake);
        }
    }

    /// Returns the numbers of log-ins that failed, and that had to wait.
    pub(super) fn failures(&self) -> (u64, u64) {
        self.logins.counts()
    }

    /// Records that a connection has closed: the peers of its conversations may continue over others.
    pub(super) fn closed(&self, connection: ConnectionId) {
        lock(&self.state).close(connection);
        self.logins.closed(connection);
    }

    /// Returns whether an answer to a challenge comes too soon after wrong ones. Then it is not checked and gets no
    /// reply: the client begins again after its timeout. It does not count as a failure, or a client that tries again
    /// within the delay would renew it each time.
    fn is_held_up(&self, input: &AuthInput, origin: &Origin) -> bool {
        let AuthInput::Step { attempt, message, .. } = input else { return false };
        let principal = principal(&message.data);
        let login = Attempt { source: origin.peer.ip(), connection: origin.connection, user: &principal };
        let is_held_up = self.logins.check(login).is_err();
        if let Some(one) = lock(&self.state).conversations.get_mut(attempt) {
            one.principal = principal;
        }
        is_held_up
    }

    fn may_speak(&self, input: &AuthInput, origin: &Origin) -> bool {
        let (AuthInput::Start { attempt, .. } | AuthInput::Step { attempt, .. }) = input else { return true };
        // The authenticator handles messages of unknown conversations.
        lock(&self.state).conversations.get(attempt).is_none_or(|one| one.may_speak(origin))
    }

    fn begin(&self, message: &Message, wanted: &AuthenticateMessage) {
        let (from, origin) = (&message.from, message.origin);
        let client = match client_of(from, wanted) {
            Ok(client) => client,
            Err(why) => {
                tracing::warn!(%from, "dropped an authentication request: {why}");
                return;
            }
        };
        tracing::debug!("Authenticating {client}");
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        self.senders.return_token(from, &origin);
        let is_bound = self.senders.are_others_bound(&client, &origin);
        let is_tentative = is_bound || lock(&self.state).is_led_elsewhere(&client, origin.connection);
        if !is_tentative {
            // Submitted before any later message of the client.
            self.driver.submit(Input::Authenticating { pid: client.clone(), attempt });
        }
        let conversation = Conversation::new(client.clone(), from.clone(), origin, is_tentative);
        lock(&self.state).add(attempt, conversation);
        let (from, connection) = (from.clone(), origin.connection.0);
        self.handle(AuthInput::Authenticate { attempt, from, client, connection, nonce: random::bytes() });
        self.begun.notify_one();
    }

    fn handle(&self, input: AuthInput) {
        let mut out = Vec::new();
        // Locked until all outputs are carried out, so that they keep their order.
        let state = &mut *lock(&self.state);
        state.authenticator.handle(input, self.clock.now(), &mut out);
        for output in out {
            match output {
                AuthOutput::Send { attempt, to, message } => {
                    let from = Pid::new(&format!("{SESSION}({attempt})"), self.shell.pid.address());
                    self.shell.network.send(&from, &to, &message.full_name(), &message.encode());
                }
                AuthOutput::Settled { attempt, client, proved, is_wrong } => {
                    let conversation = state.remove(attempt);
                    if let Err(why) = &proved {
                        tracing::warn!("Failed to authenticate {client}: {why}");
                        if let Some(one) = conversation.as_ref().filter(|one| !one.principal.is_empty()) {
                            self.audit.failed_login(&client, one.origin.peer, &one.principal, why);
                        }
                    }
                    if is_wrong && let Some(login) = conversation.as_ref().and_then(Conversation::login) {
                        self.logins.failed(login);
                    }
                    self.settled(attempt, client, proved.ok(), conversation);
                }
                AuthOutput::Ignored { attempt, from } => {
                    tracing::warn!(%from, "dropped a message for {SESSION}({attempt}): it is from another address");
                }
            }
        }
    }
}

/// Returns the principal of an answer to a challenge; empty if it cannot be read.
fn principal(answer: &[u8]) -> String {
    let text = std::str::from_utf8(answer).ok().and_then(|text| text.rsplit_once(' '));
    text.map(|(principal, _)| principal.to_owned()).unwrap_or_default()
}

impl Authentication {
    /// Reports the end of a conversation to the core.
    fn settled(&self, attempt: u64, pid: Pid, principal: Option<Arc<str>>, conversation: Option<Conversation>) {
        let is_tentative = conversation.as_ref().is_some_and(|one| one.is_tentative);
        if principal.is_some()
            && let Some(login) = conversation.as_ref().and_then(Conversation::login)
        {
            self.logins.succeeded(login);
        }
        match (&principal, conversation) {
            // mesos-go's older driver authenticates through a socket of its own, which proves nothing about its other
            // connections.
            (Some(_), Some(one)) if one.peer.address() == pid.address() => {
                self.senders.bind_authenticated(&pid, &one.origin, one.is_open);
            }
            (None, _) if is_tentative => return,
            _ => {}
        }
        if is_tentative {
            self.driver.submit(Input::Authenticating { pid: pid.clone(), attempt });
        }
        self.driver.submit(Input::Authenticated { pid, attempt, principal });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn with(given: &[(&str, &str)], known: Option<()>) -> Result<(), String> {
        authenticator(&MasterFlags::with(given).access, known.map(|_| BTreeMap::new()), "host")
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn authentication_that_is_required_needs_credentials() {
        assert_eq!(with(&[], None), Ok(()));
        assert_eq!(with(&[("authenticate_agents", "true")], Some(())), Ok(()));
        for name in ["authenticate_agents", "authenticate_frameworks"] {
            assert!(with(&[(name, "true")], None).unwrap_err().contains("--credentials is needed"));
        }
        assert!(with(&[("authenticators", "other")], None).unwrap_err().contains("'--authenticators'"));
    }
}
