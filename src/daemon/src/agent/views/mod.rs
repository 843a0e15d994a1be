//! The documents that readers of an agent get, written from a snapshot.
//!
//! They change nothing and ask nobody.

pub(super) mod calls;
pub(super) mod families;
pub(super) mod state;
pub(super) mod statistics;

use std::sync::Arc;

use agent::Snapshot;
use base::Time;

use super::world::Shell;
use crate::common::Common;

/// What a document is written from.
pub(super) struct Context {
    /// The agent.
    pub(super) snapshot: Arc<Snapshot>,
    /// Flags and the like.
    pub(super) common: Arc<Common>,
    /// When this agent started.
    pub(super) started: Time,
    /// Its process and its capabilities.
    pub(super) shell: Arc<Shell>,
}
