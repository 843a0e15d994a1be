//! Checks messages of CRAM-MD5, as a master's authenticator receives them.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Pid, Time};
use master::{AuthInput, AuthMessage, AuthOutput, Authenticator, client_of};
use protos::mesos::internal::{AuthenticateMessage, AuthenticationStartMessage, AuthenticationStepMessage};

use crate::pieces::Pieces;

const PRINCIPAL: &str = "principal";
const SECRET: &str = "secret";

/// An authenticator, with its messages and decisions.
struct Master {
    authenticator: Authenticator,
    now: Time,
    challenge: Vec<u8>,
    settled: Vec<Result<std::sync::Arc<str>, String>>,
}

impl Master {
    fn handle(&mut self, input: AuthInput) {
        let mut out = Vec::new();
        self.authenticator.handle(input, self.now, &mut out);
        for output in out {
            match output {
                AuthOutput::Send { message: AuthMessage::Step(step), .. } => self.challenge = step.data,
                AuthOutput::Send { message, .. } => {
                    assert!(!message.encode().is_empty() || !message.full_name().is_empty());
                }
                AuthOutput::Settled { proved, .. } => self.settled.push(proved),
                AuthOutput::Ignored { .. } => {}
            }
        }
    }
}

/// Runs sessions with any messages: only the digits that follow from the secret authenticate a principal, each session
/// is decided once, and none exceeds its timeout.
pub fn cram_md5(data: &[u8]) {
    let peer: Pid = "client@10.0.0.1:5051".parse().expect("a pid");
    let stranger: Pid = "client@10.0.0.2:5051".parse().expect("a pid");
    let credentials = BTreeMap::from([(PRINCIPAL.to_owned(), SECRET.to_owned())]);
    let timeout = Duration::from_secs(5);
    let mut master = Master {
        authenticator: Authenticator::new(credentials, timeout, "host"),
        now: Time::EPOCH,
        challenge: Vec::new(),
        settled: Vec::new(),
    };
    let (mut pieces, mut begun, mut may_prove) = (Pieces::new(data), 0, 0);
    while !pieces.is_empty() {
        let kind = pieces.byte();
        let attempt = u64::from(pieces.byte() % 4);
        let from = if kind & 0x80 == 0 { peer.clone() } else { stranger.clone() };
        let to = format!("crammd5-authenticator-session({attempt})");
        match kind & 0x07 {
            0 => {
                let text = String::from_utf8_lossy(pieces.bytes()).into_owned();
                if let Ok(client) = client_of(&peer, &AuthenticateMessage { pid: text }) {
                    assert_eq!(client.address().ip(), peer.address().ip());
                    begun += 1;
                    let (from, nonce) = (peer.clone(), [7; 16]);
                    master.handle(AuthInput::Authenticate { attempt: begun, from, client, connection: 1, nonce });
                }
            }
            1 => master.handle(AuthInput::Start {
                attempt,
                from,
                message: AuthenticationStartMessage { mechanism: "CRAM-MD5".to_owned(), data: None },
            }),
            2 => {
                // The correct response.
                let digits = base::cram_md5(SECRET.as_bytes(), &master.challenge);
                let data = format!("{PRINCIPAL} {digits}").into_bytes();
                may_prove += 1;
                master.handle(AuthInput::Step { attempt, from, message: AuthenticationStepMessage { data } });
            }
            3 => {
                let data = pieces.bytes().to_vec();
                master.handle(AuthInput::Step { attempt, from, message: AuthenticationStepMessage { data } });
            }
            4 => {
                master.now = master.now + Duration::from_secs(attempt);
                master.handle(AuthInput::Wake);
            }
            kind => {
                let name = ["AuthenticationStartMessage", "AuthenticationStepMessage"][usize::from(kind & 1)];
                let name = format!("mesos.internal.{name}");
                if let Some(input) = AuthInput::decode(&from, &to, &name, pieces.bytes()) {
                    master.handle(input);
                }
            }
        }
    }
    let proved = master.settled.iter().flatten().count();
    assert!(proved <= may_prove, "a principal was proved without its secret");
    assert!(master.settled.iter().flatten().all(|principal| &**principal == PRINCIPAL));
    master.now = master.now + timeout;
    master.handle(AuthInput::Wake);
    assert_eq!((master.settled.len() as u64, master.authenticator.next_wake()), (begun, None));
}
