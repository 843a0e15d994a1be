//! Authentication of agents and drivers: the live side of `master::Authenticator`.
//!
//! It passes messages, and reports results to the core.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::{Pid, lock};
use master::{AuthInput, AuthOutput, Authenticator, Input, client_of};
use protos::mesos::internal::AuthenticateMessage;
use tokio::sync::Notify;

use super::outputs::{Live, Shell};
use crate::audit::Audit;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::flags::FlagError;
use crate::flags::master::AccessFlags;
use crate::random;

/// The name of the message that begins a conversation.
const AUTHENTICATE: &str = "mesos.internal.AuthenticateMessage";
/// How the processes that lead conversations are called, before their numbers.
const SESSION: &str = "crammd5-authenticator-session";

/// Leads conversations.
pub(super) struct Authentication {
    authenticator: Mutex<Authenticator>,
    attempts: AtomicU64,
    shell: Arc<Shell>,
    driver: Driver<Live>,
    clock: Clock,
    audit: Audit,
    /// There is a conversation where there was none.
    begun: Notify,
}

/// The authenticator of libprocess clients. `known` are the users of `--credentials`.
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
        return refused("authenticators", "there is only crammd5");
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
        shell: Arc<Shell>,
        driver: Driver<Live>,
        clock: Clock,
        audit: Audit,
    ) -> Authentication {
        let (authenticator, attempts, begun) = (Mutex::new(authenticator), AtomicU64::new(1), Notify::new());
        Authentication { authenticator, attempts, shell, driver, clock, audit, begun }
    }

    /// Whether the message is one of a conversation, or begins one; it has been dealt with then.
    pub(super) fn hears(&self, message: &wire::libprocess::Message) -> bool {
        let (to, name) = (message.to.as_str(), message.name.as_str());
        if to == "master" && name == AUTHENTICATE {
            match protos::decode::<AuthenticateMessage>(&message.body) {
                Ok(wanted) => self.begin(&message.from, &wanted),
                Err(error) => tracing::warn!(from = %message.from, "message dropped: {error}"),
            }
            return true;
        }
        if !to.starts_with(SESSION) {
            return false;
        }
        match AuthInput::decode(&message.from, to, name, &message.body) {
            Some(input) => self.handle(input, Some(message)),
            None => tracing::debug!(from = %message.from, "no process takes {name}: dropped"),
        }
        true
    }

    /// Ends conversations that take too long, as long as it is polled.
    pub(super) async fn watch(self: Arc<Authentication>) {
        loop {
            let wake = lock(&self.authenticator).next_wake();
            match wake {
                Some(at) => tokio::time::sleep_until(self.clock.instant(at).into()).await,
                None => self.begun.notified().await,
            }
            self.handle(AuthInput::Wake, None);
        }
    }

    fn begin(&self, from: &Pid, wanted: &AuthenticateMessage) {
        let client = match client_of(from, wanted) {
            Ok(client) => client,
            Err(why) => {
                tracing::warn!(%from, "dropped a message that wants a process to be authenticated: {why}");
                return;
            }
        };
        tracing::debug!("Authenticating {client}");
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        // Before anything that the client may ask for next.
        self.driver.submit(Input::Authenticating { pid: client.clone(), attempt });
        self.handle(AuthInput::Authenticate { attempt, from: from.clone(), client, nonce: random::bytes() }, None);
        self.begun.notify_one();
    }

    /// `answer` is the message of the input, if it answers a challenge.
    fn handle(&self, input: AuthInput, answer: Option<&wire::libprocess::Message>) {
        let user = user_of(&input).map(str::to_owned);
        let mut out = Vec::new();
        // Locked until all is carried out, so that the order stays.
        let mut authenticator = lock(&self.authenticator);
        authenticator.handle(input, self.clock.now(), &mut out);
        for output in out {
            match output {
                AuthOutput::Send { attempt, to, message } => {
                    let from = Pid::new(&format!("{SESSION}({attempt})"), self.shell.pid.address());
                    self.shell.network.send(&from, &to, &message.full_name(), &message.encode());
                }
                AuthOutput::Settled { attempt, client, proved } => {
                    if let Err(why) = &proved {
                        tracing::warn!("Failed to authenticate {client}: {why}");
                        if let Some(answer) = answer {
                            let user = user.as_deref().unwrap_or_default();
                            self.audit.failed_login(&client, answer.peer, user, why);
                        }
                    }
                    self.driver.submit(Input::Authenticated { pid: client, attempt, principal: proved.ok() });
                }
                AuthOutput::Ignored { attempt, from } => {
                    tracing::warn!(%from, "dropped a message for {SESSION}({attempt}), which talks to another address");
                }
            }
        }
    }
}

/// The user that an answer to a challenge names: `<user> <digits>`.
fn user_of(input: &AuthInput) -> Option<&str> {
    let AuthInput::Step { message, .. } = input else { return None };
    Some(std::str::from_utf8(&message.data).ok()?.rsplit_once(' ')?.0)
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
