//! The documents of an agent's read endpoints, written from a snapshot.
//!
//! They change nothing.

pub(super) mod calls;
pub(super) mod families;
pub(super) mod state;
pub(super) mod statistics;

use std::sync::Arc;

use agent::{ContainerName, Snapshot};
use base::Time;

use super::outputs::Shell;
use crate::acls::Asker;
use crate::common::Common;

/// What a document is written from.
pub(super) struct Context {
    /// The agent.
    pub(super) snapshot: Arc<Snapshot>,
    /// The same, reduced to what the principal may view of its frameworks.
    pub(super) visible: Arc<Snapshot>,
    /// The principal of the request.
    pub(super) asker: Asker,
    /// What the endpoints of both daemons share.
    pub(super) common: Arc<Common>,
    /// When this agent started.
    pub(super) started: Time,
    /// Its process and its capabilities.
    pub(super) shell: Arc<Shell>,
}

impl Asker {
    /// An agent with what may be viewed of its frameworks, with or without executors that may not be.
    pub(super) fn visible(&self, snapshot: &Arc<Snapshot>, executors: bool) -> Arc<Snapshot> {
        match self.authorizer.is_on() {
            false => snapshot.clone(),
            true => Arc::new(snapshot.visible(&|action, user| self.may(action, Some(user)), executors)),
        }
    }

    /// Containers of executors that may not be viewed.
    pub(super) fn hidden_containers(&self, snapshot: &Snapshot) -> Vec<ContainerName> {
        match self.authorizer.is_on() {
            false => Vec::new(),
            true => snapshot.hidden_containers(&|action, user| self.may(action, Some(user))),
        }
    }
}
