//! Authentication of an agent with a credential before it registers: CRAM-MD5 (docs/mesos/libprocess.md).
//!
//! Each attempt is a process of its own, `crammd5-authenticatee(n)`. `detected.rs` continues after it.

use std::sync::Arc;
use std::time::Duration;

use base::{Pid, Time, cram_md5};
use cores::TimerKey;
use protos::mesos::internal::{AuthenticateMessage, AuthenticationStartMessage, AuthenticationStepMessage};

use crate::agent::{Agent, AgentState};
use crate::message::{AuthMessage, Outgoing};
use crate::output::{Outbox, Output};
use crate::timers::Timer;

/// The only supported mechanism.
const MECHANISM: &str = "CRAM-MD5";

/// Phase of an attempt to authenticate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// There is no attempt.
    #[default]
    None,
    /// The request was sent to the master.
    Asked,
    /// The mechanism was chosen.
    Begun,
    /// The attempt has failed; the next one begins when its timeout expires.
    Broken,
    /// The master has authenticated this agent.
    Done,
}

/// The agent's attempts to authenticate with the leading master.
#[derive(Debug, Default)]
pub(crate) struct Authentication {
    /// Number of attempts so far.
    attempt: u64,
    phase: Phase,
    /// Timer that expires when this attempt has taken too long.
    timer: Option<TimerKey>,
    /// Upper bound of the random timeout of this attempt.
    longest: Duration,
    /// Whether this is the first attempt since the master was detected.
    is_first: bool,
    /// Whether a registration was sent since the authentication for which the master was given the longest time to
    /// answer.
    long_unanswered: bool,
}

impl Agent {
    /// Discards the authentication, and any attempt in progress.
    pub(crate) fn reset_authentication(&mut self) {
        self.timers.cancel(self.authentication.timer.take());
        self.authentication.phase = Phase::None;
        self.authentication.is_first = true;
        self.authentication.long_unanswered = false;
        self.authentication.longest = self.shortest_limit();
    }

    /// Returns whether the agent must authenticate before it registers.
    pub(crate) fn must_authenticate(&self) -> bool {
        self.config.credential.is_some() && self.authentication.phase != Phase::Done
    }

    /// Records that a registration was sent that the master has the longest time to answer.
    pub(crate) fn note_unanswered_registration(&mut self) {
        self.authentication.long_unanswered = true;
    }

    /// Returns whether the master has been silent so long that it may have forgotten the authentication.
    pub(crate) fn is_authentication_in_doubt(&self) -> bool {
        self.authentication.phase == Phase::Done && self.authentication.long_unanswered
    }

    /// Handles the loss of the link to the master: the master has forgotten the authentication of that link, so the
    /// next registration authenticates again.
    ///
    /// An attempt in progress continues, because the link may be an earlier one; the attempt after it has the shortest
    /// timeout.
    pub(crate) fn forget_authentication(&mut self) {
        match self.authentication.phase {
            Phase::Done => self.reset_authentication(),
            _ => self.authentication.longest = self.shortest_limit(),
        }
    }

    /// Returns the upper bound of the timeout of a first attempt.
    fn shortest_limit(&self) -> Duration {
        let config = &self.config;
        let longest = config.authentication_timeout_min + config.authentication_backoff_factor * 2;
        longest.min(config.authentication_timeout_max)
    }

    /// Begins an attempt to authenticate with the leading master.
    pub(crate) fn authenticate(&mut self, now: Time, out: &mut Outbox) {
        let Some(master) = self.master.clone() else { return };
        if self.config.credential.as_ref().is_none_or(|credential| credential.secret.is_none()) {
            out.warn("Authentication failed; the principal in --credential has no secret");
            return self.authentication_refused(out);
        }
        self.timers.cancel(self.authentication.timer.take());
        self.authentication.attempt += 1;
        self.authentication.phase = Phase::Asked;
        let least = self.config.authentication_timeout_min;
        let wait = least + self.random.up_to(self.authentication.longest.saturating_sub(least));
        self.authentication.timer = Some(self.timers.set(now + wait, Timer::Authentication));
        let pid = self.texts.pid.clone();
        self.send_as(&master, AuthenticateMessage { pid }, out);
    }

    /// Handles the timeout of an attempt: begins the next one, which may take longer.
    pub(crate) fn authentication_timed_out(&mut self, now: Time, out: &mut Outbox) {
        self.authentication.timer = None;
        if self.authentication.phase == Phase::Done || self.state != AgentState::Disconnected {
            return;
        }
        if self.authentication.phase != Phase::Broken {
            out.warn("The master has not authenticated this agent in time: trying again");
        }
        self.authenticate_again(now, out);
    }

    fn authenticate_again(&mut self, now: Time, out: &mut Outbox) {
        let (least, longest) = (self.config.authentication_timeout_min, self.authentication.longest);
        let spread = longest.saturating_sub(least) * 2;
        self.authentication.longest = (least + spread).min(self.config.authentication_timeout_max);
        self.authentication.is_first = false;
        self.authenticate(now, out);
    }

    /// Handles a message of the master's authenticator.
    pub(crate) fn authentication(
        &mut self,
        attempt: u64,
        from: &Pid,
        message: AuthMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let is_master = self.master.as_ref().is_some_and(|master| master.address() == from.address());
        let goes_on = matches!(self.authentication.phase, Phase::Asked | Phase::Begun);
        if !is_master || !goes_on || attempt != self.authentication.attempt {
            return;
        }
        match (message, self.authentication.phase) {
            (AuthMessage::Mechanisms(offered), Phase::Asked) => {
                if offered.mechanisms.iter().all(|mechanism| mechanism != MECHANISM) {
                    let why = format!("the master offers {} but not {MECHANISM}", offered.mechanisms.join(", "));
                    return self.authentication_broken(&why, now, out);
                }
                self.authentication.phase = Phase::Begun;
                let start = AuthenticationStartMessage { mechanism: MECHANISM.to_owned(), data: Some(Vec::new()) };
                self.send_as(from, start, out);
            }
            (AuthMessage::Step(challenge), Phase::Begun) => {
                let Some(credential) = &self.config.credential else { return };
                let secret = credential.secret.as_deref().unwrap_or_default();
                let digits = cram_md5(secret.as_bytes(), &challenge.data);
                let data = format!("{} {digits}", credential.principal).into_bytes();
                self.send_as(from, AuthenticationStepMessage { data }, out);
            }
            (AuthMessage::Completed(_), Phase::Begun) => {
                self.timers.cancel(self.authentication.timer.take());
                self.authentication.phase = Phase::Done;
                out.info(format!("The master at {} has authenticated this agent", from.address()));
                self.send_registration(now, out);
            }
            (AuthMessage::Failed(_), _) => self.authentication_refused(out),
            (AuthMessage::Error(error), _) => self.authentication_broken(error.error(), now, out),
            (AuthMessage::Mechanisms(_) | AuthMessage::Step(_) | AuthMessage::Completed(_), _) => {
                self.authentication_broken("a message is out of order", now, out);
            }
        }
    }

    /// Handles a failed attempt. The first time it is repeated at once, as the master may just have started. Later it
    /// is repeated only after its timeout, so that a master that always fails is not asked without pause.
    fn authentication_broken(&mut self, why: &str, now: Time, out: &mut Outbox) {
        out.warn(format!("The master cannot authenticate this agent: {why}"));
        self.authentication.phase = Phase::Broken;
        if self.authentication.is_first {
            self.authenticate_again(now, out);
        }
    }

    /// Exits because the master has refused the credential. The executors keep running: an agent that restarts with a
    /// valid credential recovers them.
    fn authentication_refused(&mut self, out: &mut Outbox) {
        let master = self.master.as_ref().map(ToString::to_string).unwrap_or_default();
        self.timers.cancel(self.authentication.timer.take());
        let advice = "check the principal and the secret of --credential";
        self.exit(1, format!("Master {master} refused authentication: {advice}"), out);
    }

    fn send_as(&self, to: &Pid, message: impl Into<Outgoing>, out: &mut Outbox) {
        let attempt = self.authentication.attempt;
        out.outputs.push(Output::SendAs { attempt, to: to.clone(), message: Arc::new(message.into()) });
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos::internal::AuthenticationFailedMessage;

    use super::*;
    use crate::config::Credential;

    #[test]
    fn reads_what_an_authenticatee_takes() {
        let failed = "mesos.internal.AuthenticationFailedMessage";
        let read = AuthMessage::decode("crammd5-authenticatee(3)", failed, b"");
        assert_eq!(read, Some((3, AuthMessage::Failed(AuthenticationFailedMessage {}))));
        assert_eq!(AuthMessage::decode("slave(1)", failed, b""), None);
        assert_eq!(AuthMessage::decode("crammd5-authenticatee(3)", "mesos.internal.PingSlaveMessage", b""), None);
        // A step without its data is invalid.
        assert_eq!(
            AuthMessage::decode("crammd5-authenticatee(3)", "mesos.internal.AuthenticationStepMessage", b""),
            None
        );
    }

    #[test]
    fn secrets_do_not_show() {
        let credential = Credential { principal: "ann".to_owned(), secret: Some("s3cret".to_owned()) };
        assert_eq!(format!("{credential:?}"), "Credential { principal: \"ann\", .. }");
    }
}
