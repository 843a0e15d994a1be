//! The master's side of CRAM-MD5 (docs/mesos/libprocess.md): a state machine beside the core, so that no secret is in
//! the core's inputs, nor in recordings of them.
//!
//! It does not depend on agents and frameworks; [`Authenticator::handle`] returns the messages to send and the results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Pid, Time, cram_md5, same_text};
use protos::mesos::internal as m;
use rustc_hash::FxHashMap;

/// The only SASL mechanism that is offered.
const MECHANISM: &str = "CRAM-MD5";
/// Limit of simultaneous conversations; one more ends the oldest.
const SESSIONS_MAX: usize = 1 << 16;
/// Longest name of a process, in bytes. Names are kept before anything is proved.
const NAME_MAX: usize = 1024;
/// Number of hexadecimal digits of an answer to a challenge.
const DIGITS: usize = 32;
/// SASL's messages about a malformed message, and about an unknown mechanism.
const MALFORMED: &str = "bad protocol / cancel";
const NO_MECHANISM: &str = "no mechanism available";

/// Input of the [`Authenticator`].
#[derive(Clone, Debug, PartialEq)]
pub enum AuthInput {
    /// AuthenticateMessage: a peer asks to authenticate the process `client`.
    Authenticate {
        /// Number of the conversation, and of the process that leads it. Each is greater than the one before.
        attempt: u64,
        /// Process of the peer that answers the challenge.
        from: Pid,
        /// Process that is authenticated.
        client: Pid,
        /// Number of the connection of the message. A new conversation ends an earlier one of the same client only if
        /// both use the same connection: another process must not end it.
        connection: u64,
        /// A random value that never repeats: it becomes the challenge.
        nonce: [u8; 16],
    },
    /// AuthenticationStartMessage: the peer selects a mechanism.
    Start {
        /// Number of the conversation.
        attempt: u64,
        /// Sender, as it names itself.
        from: Pid,
        /// Message that was received.
        message: m::AuthenticationStartMessage,
    },
    /// AuthenticationStepMessage: the peer answers the challenge.
    Step {
        /// Number of the conversation.
        attempt: u64,
        /// Sender, as it names itself.
        from: Pid,
        /// Message that was received.
        message: m::AuthenticationStepMessage,
    },
    /// The time of [`Authenticator::next_wake`] has passed.
    Wake,
}

/// A message of the authenticator to a peer.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AuthMessage {
    Mechanisms(m::AuthenticationMechanismsMessage),
    Step(m::AuthenticationStepMessage),
    Completed(m::AuthenticationCompletedMessage),
    Failed(m::AuthenticationFailedMessage),
    Error(m::AuthenticationErrorMessage),
}

/// Output of the [`Authenticator`], to be carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthOutput {
    /// Send a message as `crammd5-authenticator-session(attempt)`.
    Send {
        /// Number of the conversation.
        attempt: u64,
        /// Process that receives the message.
        to: Pid,
        /// Message to send.
        message: AuthMessage,
    },
    /// A conversation has ended.
    Settled {
        /// Number of the conversation.
        attempt: u64,
        /// Process that was authenticated.
        client: Pid,
        /// Principal of the client, or the reason why it is not authenticated.
        proved: Result<Arc<str>, String>,
        /// Whether an answer to the challenge was checked and is wrong: a guess. Conversations that end for another
        /// reason tell the peer nothing about a secret.
        is_wrong: bool,
    },
    /// A message for a conversation came from another sender and is ignored.
    Ignored {
        /// Number of the conversation.
        attempt: u64,
        /// Process that has sent the message.
        from: Pid,
    },
}

impl AuthInput {
    /// Decodes a message for `crammd5-authenticator-session(attempt)`. Returns `None` for messages that such a process
    /// does not handle.
    pub fn decode(from: &Pid, to: &str, name: &str, body: &[u8]) -> Option<AuthInput> {
        let attempt = to.strip_prefix("crammd5-authenticator-session(")?.strip_suffix(')')?.parse().ok()?;
        Some(match name.strip_prefix("mesos.internal.")? {
            "AuthenticationStartMessage" => {
                AuthInput::Start { attempt, from: from.clone(), message: protos::decode(body).ok()? }
            }
            "AuthenticationStepMessage" => {
                AuthInput::Step { attempt, from: from.clone(), message: protos::decode(body).ok()? }
            }
            _ => return None,
        })
    }
}

impl AuthMessage {
    /// Returns the full protobuf name of the message.
    pub fn full_name(&self) -> String {
        use prost::Name;
        match self {
            AuthMessage::Mechanisms(_) => m::AuthenticationMechanismsMessage::full_name(),
            AuthMessage::Step(_) => m::AuthenticationStepMessage::full_name(),
            AuthMessage::Completed(_) => m::AuthenticationCompletedMessage::full_name(),
            AuthMessage::Failed(_) => m::AuthenticationFailedMessage::full_name(),
            AuthMessage::Error(_) => m::AuthenticationErrorMessage::full_name(),
        }
    }

    /// Returns the encoded body of the message.
    pub fn encode(&self) -> Vec<u8> {
        use prost::Message;
        match self {
            AuthMessage::Mechanisms(message) => message.encode_to_vec(),
            AuthMessage::Step(message) => message.encode_to_vec(),
            AuthMessage::Completed(message) => message.encode_to_vec(),
            AuthMessage::Failed(message) => message.encode_to_vec(),
            AuthMessage::Error(message) => message.encode_to_vec(),
        }
    }
}

/// Reasons why a peer may not authenticate a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientInvalid {
    /// The name of a process is longer than the limit.
    #[error("a name is too long")]
    TooLong,
    /// The text is not a valid pid.
    #[error("'{0}' is not a process")]
    NoProcess(String),
    /// The process has another IP address than the peer.
    #[error("{0} is at another IP address")]
    Elsewhere(Pid),
}

/// Returns the process that a peer asks to authenticate. It must have the peer's IP address: a new conversation voids
/// an earlier authentication, so another machine must not start one. The ports may differ: mesos-go's older driver
/// authenticates through a socket of its own.
///
/// # Errors
/// The text is not a valid pid, or the IP addresses differ.
pub fn client_of(from: &Pid, wanted: &m::AuthenticateMessage) -> Result<Pid, ClientInvalid> {
    if wanted.pid.len() > NAME_MAX || from.id().len() > NAME_MAX {
        return Err(ClientInvalid::TooLong);
    }
    let client = Pid::parse_lenient(&wanted.pid);
    if client.is_empty() {
        return Err(ClientInvalid::NoProcess(wanted.pid.clone()));
    }
    if client.address().ip() != from.address().ip() {
        return Err(ClientInvalid::Elsewhere(client));
    }
    Ok(client)
}

/// State of a conversation.
struct Session {
    client: Pid,
    connection: u64,
    peer: Pid,
    challenge: String,
    /// Whether the challenge was sent to the peer.
    is_asked: bool,
    deadline: Time,
}

/// Results of a conversation.
enum End {
    Proved(Arc<str>),
    Refused(&'static str),
    Error(&'static str),
    Silent(&'static str),
}

/// Server side of CRAM-MD5 for all conversations.
pub struct Authenticator {
    /// Secrets by principal.
    credentials: BTreeMap<String, String>,
    timeout: Duration,
    /// Hostname in challenges, after the `@`.
    hostname: String,
    /// Conversations by number, so that the oldest comes first. All have the same timeout, so it is also the first to
    /// time out.
    sessions: BTreeMap<u64, Session>,
    by_client: FxHashMap<(Pid, u64), u64>,
}

impl Authenticator {
    /// Creates an authenticator with these secrets by principal and this timeout of a conversation.
    pub fn new(credentials: BTreeMap<String, String>, timeout: Duration, hostname: &str) -> Authenticator {
        let (hostname, sessions) = (hostname.to_owned(), BTreeMap::new());
        Authenticator { credentials, timeout, hostname, sessions, by_client: FxHashMap::default() }
    }

    /// Handles one input. Outputs are appended to `out`.
    pub fn handle(&mut self, input: AuthInput, now: Time, out: &mut Vec<AuthOutput>) {
        match input {
            AuthInput::Authenticate { attempt, from, client, connection, nonce } => {
                self.begin(attempt, from, (client, connection), nonce, now, out);
            }
            AuthInput::Start { attempt, from, message } => {
                if self.may_speak(attempt, from, out) {
                    self.start(attempt, &message, out);
                }
            }
            AuthInput::Step { attempt, from, message } => {
                if self.may_speak(attempt, from, out) {
                    self.step(attempt, &message.data, out);
                }
            }
            AuthInput::Wake => {
                while let Some((attempt, session)) = self.sessions.first_key_value()
                    && session.deadline <= now
                {
                    self.end(*attempt, End::Silent("it took too long"), out);
                }
            }
        }
    }

    /// Returns the time at which [`AuthInput::Wake`] is needed.
    pub fn next_wake(&self) -> Option<Time> {
        self.sessions.first_key_value().map(|(_, session)| session.deadline)
    }

    fn begin(
        &mut self,
        attempt: u64,
        peer: Pid,
        (client, connection): (Pid, u64),
        nonce: [u8; 16],
        now: Time,
        out: &mut Vec<AuthOutput>,
    ) {
        let key = (client.clone(), connection);
        if let Some(old) = self.by_client.get(&key).copied() {
            self.end(old, End::Silent("it was restarted"), out);
        }
        if self.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) = self.sessions.keys().next().copied()
        {
            self.end(oldest, End::Silent("too many authentications are in progress"), out);
        }
        let (one, two) = nonce.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let challenge = format!("<{}.{}@{}>", number(one), number(two), self.hostname);
        let message = m::AuthenticationMechanismsMessage { mechanisms: vec![MECHANISM.to_owned()] };
        out.push(AuthOutput::Send { attempt, to: peer.clone(), message: AuthMessage::Mechanisms(message) });
        self.by_client.insert(key, attempt);
        let session = Session { client, connection, peer, challenge, is_asked: false, deadline: now + self.timeout };
        self.sessions.insert(attempt, session);
    }

    /// Returns whether the sender is the peer of the conversation: whether both have the same address. The names of
    /// processes may differ. The numbers of conversations are easily guessed, and messages of other senders would end
    /// them.
    fn may_speak(&self, attempt: u64, from: Pid, out: &mut Vec<AuthOutput>) -> bool {
        let Some(session) = self.sessions.get(&attempt) else { return false };
        let may = session.peer.address() == from.address();
        if !may {
            out.push(AuthOutput::Ignored { attempt, from });
        }
        may
    }

    fn start(&mut self, attempt: u64, message: &m::AuthenticationStartMessage, out: &mut Vec<AuthOutput>) {
        let Some(session) = self.sessions.get_mut(&attempt) else { return };
        let fault = if session.is_asked {
            Some("Unexpected authentication 'start' received")
        } else if message.mechanism != MECHANISM {
            Some(NO_MECHANISM)
        } else if !message.data().is_empty() {
            // In this mechanism the server sends first.
            Some(MALFORMED)
        } else {
            None
        };
        if let Some(fault) = fault {
            return self.end(attempt, End::Error(fault), out);
        }
        session.is_asked = true;
        let data = session.challenge.clone().into_bytes();
        let message = AuthMessage::Step(m::AuthenticationStepMessage { data });
        out.push(AuthOutput::Send { attempt, to: session.peer.clone(), message });
    }

    fn step(&mut self, attempt: u64, answer: &[u8], out: &mut Vec<AuthOutput>) {
        let Some(session) = self.sessions.get(&attempt) else { return };
        let end = if session.is_asked {
            self.judge(&session.challenge, answer)
        } else {
            End::Error("Unexpected authentication 'step' received")
        };
        self.end(attempt, end, out);
    }

    /// Checks an answer `<principal> <digits>` to a challenge.
    fn judge(&self, challenge: &str, answer: &[u8]) -> End {
        let text = std::str::from_utf8(answer).ok().and_then(|text| text.rsplit_once(' '));
        let Some((principal, digits)) = text.filter(|(principal, _)| !principal.is_empty()) else {
            return End::Error(MALFORMED);
        };
        let Some((principal, secret)) = self.credentials.get_key_value(principal) else {
            return End::Refused("the principal is not known");
        };
        if digits.len() != DIGITS || !same_text(digits, &cram_md5(secret.as_bytes(), challenge.as_bytes())) {
            return End::Refused("the secret is wrong");
        }
        End::Proved(principal.as_str().into())
    }

    fn end(&mut self, attempt: u64, end: End, out: &mut Vec<AuthOutput>) {
        let Some(Session { client, connection, peer: to, .. }) = self.sessions.remove(&attempt) else { return };
        let key = (client, connection);
        if self.by_client.get(&key) == Some(&attempt) {
            self.by_client.remove(&key);
        }
        let (client, _) = key;
        let is_wrong = matches!(end, End::Refused(_));
        let (message, proved) = match end {
            End::Proved(principal) => (Some(AuthMessage::Completed(Default::default())), Ok(principal)),
            End::Refused(why) => (Some(AuthMessage::Failed(Default::default())), Err(why.to_owned())),
            End::Error(why) => {
                let message = m::AuthenticationErrorMessage { error: Some(why.to_owned()) };
                (Some(AuthMessage::Error(message)), Err(why.to_owned()))
            }
            End::Silent(why) => (None, Err(why.to_owned())),
        };
        // The result comes first: the next request of the peer depends on it.
        out.push(AuthOutput::Settled { attempt, client, proved, is_wrong });
        out.extend(message.map(|message| AuthOutput::Send { attempt, to, message }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PEER: &str = "crammd5-authenticatee(1)@10.0.0.2:5051";

    fn pid(text: &str) -> Pid {
        text.parse().unwrap()
    }

    /// An authenticator that knows `ann`, with one conversation at a time.
    struct Stage {
        authenticator: Authenticator,
        now: Time,
    }

    impl Stage {
        fn new() -> Stage {
            let known = BTreeMap::from([("ann".to_owned(), "s3cret".to_owned())]);
            Stage { authenticator: Authenticator::new(known, 15 * SECOND, "host"), now: Time::from_secs(100) }
        }

        fn tell(&mut self, input: AuthInput) -> Vec<String> {
            let mut out = Vec::new();
            self.authenticator.handle(input, self.now, &mut out);
            out.into_iter().map(|output| text(&output)).collect()
        }

        fn authenticate(&mut self, attempt: u64) -> Vec<String> {
            let (from, client) = (pid(PEER), pid("slave(1)@10.0.0.2:5051"));
            self.tell(AuthInput::Authenticate {
                attempt,
                from,
                client,
                connection: 1,
                nonce: [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0],
            })
        }

        fn start(&mut self, attempt: u64, mechanism: &str, data: Option<&[u8]>) -> Vec<String> {
            let (mechanism, data) = (mechanism.to_owned(), data.map(Into::into));
            let message = m::AuthenticationStartMessage { mechanism, data };
            self.tell(AuthInput::Start { attempt, from: pid(PEER), message })
        }

        fn step(&mut self, attempt: u64, data: &str) -> Vec<String> {
            let message = m::AuthenticationStepMessage { data: data.into() };
            self.tell(AuthInput::Step { attempt, from: pid(PEER), message })
        }
    }

    fn text(output: &AuthOutput) -> String {
        match output {
            AuthOutput::Send { attempt, to, message } => {
                assert_eq!(to.id(), "crammd5-authenticatee(1)");
                let said = match message {
                    AuthMessage::Mechanisms(message) => message.mechanisms.join(","),
                    AuthMessage::Step(message) => String::from_utf8(message.data.clone()).unwrap(),
                    AuthMessage::Completed(_) => "completed".to_owned(),
                    AuthMessage::Failed(_) => "failed".to_owned(),
                    AuthMessage::Error(message) => format!("error: {}", message.error()),
                };
                format!("{attempt}: {said}")
            }
            AuthOutput::Settled { attempt, client, proved, is_wrong } => {
                assert_eq!(client.id(), "slave(1)");
                format!("{attempt} {}: {proved:?}", if *is_wrong { "wrong" } else { "settled" })
            }
            AuthOutput::Ignored { attempt, from } => format!("{attempt} ignores {from}"),
        }
    }

    fn answer(principal: &str, secret: &str) -> String {
        format!("{principal} {}", cram_md5(secret.as_bytes(), b"<7.256@host>"))
    }

    #[test]
    fn the_right_secret_proves_the_principal() {
        let mut stage = Stage::new();
        assert_eq!(stage.authenticate(1), ["1: CRAM-MD5"]);
        assert_eq!(stage.start(1, "CRAM-MD5", Some(b"")), ["1: <7.256@host>"]);
        assert_eq!(stage.step(1, &answer("ann", "s3cret")), ["1 settled: Ok(\"ann\")", "1: completed"]);
        // The process ended with the conversation.
        assert!(stage.step(1, &answer("ann", "s3cret")).is_empty());
        assert_eq!(stage.authenticator.next_wake(), None);
    }

    #[test]
    fn strangers_do_not_end_a_conversation() {
        let mut stage = Stage::new();
        let (attempt, stranger) = (1, pid("crammd5-authenticatee(1)@10.0.0.9:5051"));
        let step = || m::AuthenticationStepMessage { data: b"x".to_vec() };
        stage.authenticate(1);
        let message = m::AuthenticationStartMessage { mechanism: "PLAIN".to_owned(), data: None };
        let answers = stage.tell(AuthInput::Start { attempt, from: stranger.clone(), message });
        assert_eq!(answers, ["1 ignores crammd5-authenticatee(1)@10.0.0.9:5051"]);
        assert_eq!(stage.start(1, "CRAM-MD5", None), ["1: <7.256@host>"]);
        let answers = stage.tell(AuthInput::Step { attempt, from: stranger, message: step() });
        assert_eq!(answers, ["1 ignores crammd5-authenticatee(1)@10.0.0.9:5051"]);
        assert_eq!(stage.step(1, &answer("ann", "s3cret")), ["1 settled: Ok(\"ann\")", "1: completed"]);
        // There is no conversation that the message could end.
        assert!(stage.tell(AuthInput::Step { attempt, from: pid("x@10.0.0.9:1"), message: step() }).is_empty());
    }

    #[test]
    fn a_process_at_another_address_is_rejected() {
        let asked = |by: &str, wanted: &str| client_of(&pid(by), &m::AuthenticateMessage { pid: wanted.to_owned() });
        let client = "slave(1)@10.0.0.2:5051";
        assert_eq!(asked(PEER, client), Ok(pid(client)));
        assert_eq!(asked(client, client), Ok(pid(client)));
        assert_eq!(asked("sasl_authenticatee(1)@10.0.0.2:5052", client), Ok(pid(client)));
        for elsewhere in ["crammd5-authenticatee(1)@10.0.0.9:5051", "crammd5-authenticatee(1)@10.0.0.9:5052"] {
            assert_eq!(asked(elsewhere, client), Err(ClientInvalid::Elsewhere(pid(client))));
        }
        assert_eq!(asked(PEER, "slave"), Err(ClientInvalid::NoProcess("slave".to_owned())));
        let long = format!("{}@10.0.0.2:5051", "x".repeat(NAME_MAX));
        assert!(asked(&long, client).is_ok() && asked(PEER, &long).is_err());
        assert!(asked(&format!("x{long}"), client).is_err());
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let digits = answer("ann", "s3cret");
        let short = &digits[..digits.len() - 1];
        for given in [answer("bob", "s3cret"), answer("ann", "other"), answer("ann", ""), short.to_owned()] {
            let mut stage = Stage::new();
            stage.authenticate(1);
            stage.start(1, "CRAM-MD5", None);
            let answers = stage.step(1, &given);
            assert!(answers[0].starts_with("1 wrong: Err") && answers[1] == "1: failed", "{given}: {answers:?}");
        }
    }

    #[test]
    fn what_is_out_of_form_or_order_is_an_error() {
        let error = |answers: Vec<String>| {
            assert!(answers.iter().any(|answer| answer.starts_with("1 settled: Err")), "no guess: {answers:?}");
            answers.last().unwrap().strip_prefix("1: error: ").unwrap().to_owned()
        };
        let begun = || {
            let mut stage = Stage::new();
            stage.authenticate(1);
            stage
        };
        assert_eq!(error(begun().start(1, "PLAIN", None)), NO_MECHANISM);
        assert_eq!(error(begun().start(1, "CRAM-MD5", Some(b"x"))), MALFORMED);
        assert_eq!(error(begun().step(1, "ann x")), "Unexpected authentication 'step' received");
        for given in ["", "ann", " 0123"] {
            let mut stage = begun();
            stage.start(1, "CRAM-MD5", None);
            assert_eq!(error(stage.step(1, given)), MALFORMED, "{given}");
        }
        let mut stage = begun();
        stage.start(1, "CRAM-MD5", None);
        assert_eq!(error(stage.start(1, "CRAM-MD5", None)), "Unexpected authentication 'start' received");
        assert!(begun().start(2, "CRAM-MD5", None).is_empty(), "a conversation that there is not");
    }

    #[test]
    fn a_new_attempt_or_time_ends_a_conversation() {
        let mut stage = Stage::new();
        stage.authenticate(1);
        assert_eq!(stage.authenticate(2), ["1 settled: Err(\"it was restarted\")", "2: CRAM-MD5"]);
        assert!(stage.start(1, "CRAM-MD5", None).is_empty());
        stage.now = stage.now + 14 * SECOND;
        assert!(stage.tell(AuthInput::Wake).is_empty());
        assert_eq!(stage.authenticator.next_wake(), Some(stage.now + SECOND));
        stage.now = stage.now + SECOND;
        assert_eq!(stage.tell(AuthInput::Wake), ["2 settled: Err(\"it took too long\")"]);
        assert!(stage.start(2, "CRAM-MD5", None).is_empty());
    }

    #[test]
    fn reads_what_a_session_takes() {
        let from = pid(PEER);
        let name = "mesos.internal.AuthenticationStepMessage";
        let body = prost::Message::encode_to_vec(&m::AuthenticationStepMessage { data: b"x".to_vec() });
        let read = AuthInput::decode(&from, "crammd5-authenticator-session(12)", name, &body);
        assert!(matches!(read, Some(AuthInput::Step { attempt: 12, .. })));
        assert_eq!(AuthInput::decode(&from, "crammd5-authenticator-session(12)", name, b""), None);
        assert_eq!(AuthInput::decode(&from, "master", name, &body), None);
        assert_eq!(
            AuthInput::decode(&from, "crammd5-authenticator-session(1)", "mesos.internal.PongSlaveMessage", b""),
            None
        );
    }
}
