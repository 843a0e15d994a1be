//! Principals of libprocess clients that have authenticated by CRAM-MD5, and their permissions
//! (docs/mesos/libprocess.md).
//!
//! It has no secrets: `authenticator.rs` runs the protocol, and the shell reports the result.

use std::sync::Arc;

use base::Pid;
use protos::mesos::FrameworkInfo;

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::messages::REGISTRATION;
use crate::peers::AuthenticationResult;
use crate::refusals::Fault;

impl Master {
    /// Returns the principal that a libprocess client has authenticated as.
    pub fn principal(&self, pid: &Pid) -> Option<Arc<str>> {
        self.peers.authentication(pid).map(|authentication| authentication.principal.clone())
    }

    /// Records that a peer starts to authenticate. An earlier authentication of the peer becomes void.
    pub(crate) fn authenticating(&mut self, pid: Pid, attempt: u64) {
        self.count(Counter::MessagesAuthenticate);
        self.peers.begin(pid, attempt);
    }

    /// Records the end of a conversation; without a principal, the peer is not authenticated. The request that the peer
    /// has sent meanwhile is handled now.
    pub(crate) fn authenticated(&mut self, pid: Pid, attempt: u64, principal: Option<Arc<str>>, out: &mut Outbox) {
        let Some(conversation) = self.peers.end(&pid, attempt) else { return };
        match principal {
            Some(principal) => {
                out.info(format!("Successfully authenticated principal '{principal}' at {pid}"));
                out.push(Output::Link { pid: pid.clone() });
                self.peers.record_authentication(pid.clone(), AuthenticationResult { principal, attempt });
                self.forget_surplus(out);
            }
            // No other code unlinks a peer that was authenticated before.
            None if conversation.is_linked && !self.is_admitted(&pid) => out.push(Output::Unlink { pid: pid.clone() }),
            None => {}
        }
        if let Some(message) = conversation.waiting() {
            self.message(pid, message, out);
        }
    }

    /// Forgets the oldest authenticated clients that have sent no request, if there are too many. They can authenticate
    /// again.
    fn forget_surplus(&mut self, out: &mut Outbox) {
        while let Some(pid) = self.peers.take_surplus() {
            if !self.is_admitted(&pid) {
                out.warn(format!(
                    "Dropping the authentication of {pid}: too many authenticated processes are neither agents nor \
                     frameworks"
                ));
                self.peers.forget(&pid);
                out.push(Output::Unlink { pid });
            }
        }
    }

    /// Returns whether the process is a registered agent or the scheduler of a framework. Its authentication is removed
    /// with them.
    fn is_admitted(&self, pid: &Pid) -> bool {
        self.agents.key_of_pid(pid).is_some() || self.frameworks.key_of_pid(pid).is_some()
    }

    /// Returns whether an agent may register: it has authenticated, or it need not.
    pub(crate) fn agent_may_register(&self, from: &Pid, out: &mut Outbox) -> bool {
        let may = !self.config.authenticate_agents || self.peers.authentication(from).is_some();
        if !may {
            out.warn(format!("Refusing registration of agent at {from} because it is not authenticated"));
            let fault = Fault::Denied("the agent is not authenticated".to_owned());
            self.refuse_message(from, REGISTRATION, ("agent", ""), fault, out);
        }
        may
    }

    /// Checks that a driver may subscribe a framework: that it has authenticated if it must, and as the principal that
    /// it states.
    pub(crate) fn check_driver(&self, from: &Pid, info: &FrameworkInfo) -> Result<(), String> {
        let authenticated = self.peers.authentication(from).map(|authentication| &authentication.principal);
        match (authenticated, &info.principal) {
            (None, _) if self.config.authenticate_frameworks => {
                Err(format!("Framework at {from} is not authenticated"))
            }
            (Some(authenticated), Some(claimed)) if **authenticated != **claimed => {
                Err(format!("Framework principal '{claimed}' does not match authenticated principal '{authenticated}'"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the authenticated principal of a driver whose framework states none.
    pub(crate) fn authenticated_principal(&self, from: &Pid, out: &mut Outbox) -> Option<String> {
        let authenticated = self.peers.authentication(from)?.principal.to_string();
        out.warn(format!("Framework at {from} (authenticated as '{authenticated}') does not set 'principal'"));
        Some(authenticated)
    }
}

#[cfg(test)]
mod tests {
    use base::Time;
    use cores::Core;

    use super::*;
    use crate::Input;
    use crate::testing::Script;

    #[test]
    fn of_too_many_proofs_the_oldest_is_forgotten_unless_its_peer_is_admitted() {
        let mut script = Script::new();
        for line in ["config authenticate_agents", "authenticate a", "authenticated a as=agents", "register a cpus:1"] {
            script.line(line);
        }
        let master = script.master();
        let mut unlinked = Vec::new();
        for number in 0..(1u64 << 16) + 2 {
            let pid = Pid::parse_lenient(&format!("slave({number})@10.0.9.1:5051"));
            let (attempt, principal) = (1000 + number, Some(Arc::from("agents")));
            let mut out = Outbox::default();
            master.handle(Input::Authenticating { pid: pid.clone(), attempt }, Time::from_secs(1000), &mut out);
            master.handle(Input::Authenticated { pid, attempt, principal }, Time::from_secs(1000), &mut out);
            unlinked.extend(out.outputs.into_iter().filter_map(|output| match output {
                Output::Unlink { pid } => Some(pid.to_string()),
                _ => None,
            }));
        }
        assert_eq!(unlinked, ["slave(0)@10.0.9.1:5051", "slave(1)@10.0.9.1:5051"]);
        // The agent is still authenticated: with another process it is admitted again without a new authentication.
        assert!(script.line("register a cpus:1 process=8").iter().any(|line| line.contains("SlaveRegistered")));
    }
}
