//! Who has proved by CRAM-MD5 who it is, and what that is good for (wire/libprocess.md 6).
//!
//! It knows no secrets: the conversation is led in `authenticator`, and the shell tells how it ended.

use std::sync::Arc;

use base::Pid;
use protos::mesos::FrameworkInfo;
use protos::mesos::scheduler::call::Type;
use rustc_hash::FxHashMap;

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::message::Message;

/// What is known of peers that authenticate.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Those whose conversation goes on, with its number and what they have asked for meanwhile.
    ongoing: FxHashMap<Pid, (u64, Option<Message>)>,
    /// The principals of those that have proved them. A peer is forgotten with its link, so there are no more than links.
    proved: FxHashMap<Pid, Arc<str>>,
}

impl Peers {
    /// What a peer has proved counts no more.
    pub(crate) fn forget(&mut self, pid: &Pid) -> Option<Arc<str>> {
        self.proved.remove(pid)
    }
}

impl Master {
    /// A peer begins to authenticate: what it had proved before counts no more.
    pub(crate) fn authenticating(&mut self, pid: Pid, attempt: u64) {
        self.count(Counter::MessagesAuthenticate);
        self.peers.proved.remove(&pid);
        self.peers.ongoing.entry(pid).or_default().0 = attempt;
    }

    /// A conversation is over; none: nothing was proved. What the peer has asked for meanwhile is done now.
    pub(crate) fn authenticated(&mut self, pid: Pid, attempt: u64, principal: Option<Arc<str>>, out: &mut Outbox) {
        if self.peers.ongoing.get(&pid).is_none_or(|(latest, _)| *latest != attempt) {
            return;
        }
        let waiting = self.peers.ongoing.remove(&pid).and_then(|(_, waiting)| waiting);
        if let Some(principal) = principal {
            out.info(format!("Successfully authenticated principal '{principal}' at {pid}"));
            out.push(Output::Link { pid: pid.clone() });
            self.peers.proved.insert(pid.clone(), principal);
        }
        if let Some(message) = waiting {
            self.message(pid, message, out);
        }
    }

    /// The link to a peer is gone, and with it what the peer has proved.
    pub(crate) fn forget_authentication(&mut self, pid: &Pid) -> Option<Arc<str>> {
        self.peers.forget(pid)
    }

    /// What a peer proved before its link was given up for another one.
    pub(crate) fn keep_authentication(&mut self, pid: &Pid, principal: Option<Arc<str>>) {
        if let Some(principal) = principal {
            self.peers.proved.insert(pid.clone(), principal);
        }
    }

    /// A message that may be dealt with now. One that asks for admission waits until its sender has done with
    /// authenticating; of several the last one counts, as they repeat each other.
    pub(crate) fn admissible(&mut self, from: &Pid, message: Message) -> Option<Message> {
        if self.peers.ongoing.is_empty() || !asks_for_admission(&message) {
            return Some(message);
        }
        match self.peers.ongoing.get_mut(from) {
            Some((_, waiting)) => {
                *waiting = Some(message);
                None
            }
            None => Some(message),
        }
    }

    /// Whether an agent may register: whether it has authenticated, if it must.
    pub(crate) fn agent_may_register(&self, from: &Pid, out: &mut Outbox) -> bool {
        let may = !self.config.authenticate_agents || self.peers.proved.contains_key(from);
        if !may {
            out.warn(format!("Refusing registration of agent at {from} because it is not authenticated"));
        }
        may
    }

    /// Whether a driver may subscribe a framework: whether it has authenticated, if it must, and as who it says that it is.
    pub(crate) fn check_driver(&self, from: &Pid, info: &FrameworkInfo, out: &mut Outbox) -> Result<(), String> {
        match (self.peers.proved.get(from), &info.principal) {
            (None, _) if self.config.authenticate_frameworks => {
                Err(format!("Framework at {from} is not authenticated"))
            }
            (Some(proved), Some(claimed)) if **proved != **claimed => {
                Err(format!("Framework principal '{claimed}' does not match authenticated principal '{proved}'"))
            }
            (Some(proved), None) => {
                out.warn(format!("Framework at {from} (authenticated as '{proved}') does not set 'principal'"));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn asks_for_admission(message: &Message) -> bool {
    match message {
        Message::RegisterSlave(_)
        | Message::ReregisterSlave(_)
        | Message::RegisterFramework(_)
        | Message::ReregisterFramework(_) => true,
        Message::Call(call) => call.r#type() == Type::Subscribe,
        _ => false,
    }
}
