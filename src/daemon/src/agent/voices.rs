//! Over which connections a master's orders count.
//!
//! What a master has sent can arrive after it has died: the system goes on delivering for its connection, above all when the
//! network stood still, and by then another master at the same address may have admitted the agent. The core knows addresses, so it
//! would take an order of the dead one for one of the new. Here connections are told apart: whenever the agent sets out to register,
//! those that were in use before are old, and launches and shutdowns that come over them are passed over, until the answer to
//! the registration comes over such a connection, too: then it is that of a master that lives.
//!
//! What an order does is the core's.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;

use agent::Incoming;

use crate::sync::lock;

/// So many connections are told apart; a master has one or two.
const MOST: usize = 32;

/// Where messages came from, the newest last.
#[derive(Debug, Default)]
pub(super) struct Voices {
    heard: Mutex<VecDeque<Voice>>,
}

#[derive(Debug)]
struct Voice {
    peer: SocketAddr,
    /// It was in use before the agent last set out to register.
    old: bool,
}

impl Voices {
    /// The agent sets out to register.
    pub(super) fn registers(&self) {
        lock(&self.heard).iter_mut().for_each(|voice| voice.old = true);
    }

    /// Whether a message counts that came from `peer`.
    pub(super) fn counts(&self, peer: SocketAddr, message: &Incoming) -> bool {
        let mut heard = lock(&self.heard);
        let Some(voice) = heard.iter_mut().find(|voice| voice.peer == peer) else {
            if heard.len() == MOST {
                heard.pop_front();
            }
            heard.push_back(Voice { peer, old: false });
            return true;
        };
        match message {
            Incoming::SlaveRegistered(_) | Incoming::SlaveReregistered(_) => voice.old = false,
            Incoming::RunTask(_) | Incoming::RunTaskGroup(_) | Incoming::ShutdownFramework(_) => return !voice.old,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos::internal::{RunTaskMessage, SlaveReregisteredMessage};

    use super::*;

    fn order() -> Incoming {
        Incoming::RunTask(RunTaskMessage::default())
    }

    #[test]
    fn orders_over_an_earlier_connection_do_not_count_until_it_carries_the_answer() {
        let (old, new) = (SocketAddr::from(([10, 0, 0, 1], 1000)), SocketAddr::from(([10, 0, 0, 1], 1001)));
        let answer = Incoming::SlaveReregistered(SlaveReregisteredMessage::default());
        let voices = Voices::default();
        assert!(voices.counts(old, &order()));
        voices.registers();
        assert!(!voices.counts(old, &order()), "the master that has sent it may be gone");
        assert!(voices.counts(new, &answer) && voices.counts(new, &order()));
        assert!(!voices.counts(old, &order()));
        voices.registers();
        assert!(voices.counts(new, &answer), "the same master, over the same connection");
        assert!(voices.counts(new, &order()) && !voices.counts(old, &order()));
    }

    #[test]
    fn no_more_are_kept_than_a_few() {
        let voices = Voices::default();
        for port in 1..=1000 {
            assert!(voices.counts(SocketAddr::from(([10, 0, 0, 1], port)), &order()));
        }
        assert_eq!(lock(&voices.heard).len(), MOST);
    }
}
