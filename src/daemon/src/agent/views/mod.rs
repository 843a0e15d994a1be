//! The documents of an agent's read endpoints, written from a snapshot.
//!
//! They change no state.

pub(super) mod calls;
pub(super) mod families;
pub(super) mod state;
pub(super) mod statistics;

use std::sync::Arc;

use agent::{ContainerName, Snapshot};
use base::Time;

use super::outputs::Shell;
use crate::acls::Caller;
use crate::common::Common;

/// The data of a document.
pub(super) struct Context {
    /// State of the agent.
    pub(super) snapshot: Arc<Snapshot>,
    /// State of the agent, reduced to what the principal may view of its frameworks.
    pub(super) visible: Arc<Snapshot>,
    /// Sender of the request.
    pub(super) caller: Caller,
    /// Data of the endpoints that both daemons have.
    pub(super) common: Arc<Common>,
    /// Time at which this agent started.
    pub(super) started: Time,
    /// Pid and capabilities of the agent.
    pub(super) shell: Arc<Shell>,
}

impl Caller {
    /// Reduces an agent's state to what the sender may view of its frameworks. With `executors`, executors that it may
    /// not view are left out, too.
    pub(super) fn visible(&self, snapshot: &Arc<Snapshot>, executors: bool) -> Arc<Snapshot> {
        match self.authorizer.is_on() {
            false => snapshot.clone(),
            true => Arc::new(snapshot.visible(&|action, user| self.may(action, Some(user)), executors)),
        }
    }

    /// Returns the containers of executors that the sender may not view.
    pub(super) fn hidden_containers(&self, snapshot: &Snapshot) -> Vec<ContainerName> {
        match self.authorizer.is_on() {
            false => Vec::new(),
            true => snapshot.hidden_containers(&|action, user| self.may(action, Some(user))),
        }
    }
}
