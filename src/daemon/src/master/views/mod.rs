//! The documents of the master's read endpoints, written from a snapshot off the core's thread.
//!
//! They change nothing; all their data is in [`Context`].

pub(in crate::master) mod calls;
pub(in crate::master) mod frameworks;
mod index;
pub(in crate::master) mod overview;
pub(in crate::master) mod pieces;
pub(in crate::master) mod roles;
pub(super) mod settings;
pub(super) mod sight;
pub(in crate::master) mod slaves;
pub(in crate::master) mod state;
pub(in crate::master) mod summary;
pub(in crate::master) mod tasks;

use std::cell::RefCell;
use std::sync::Arc;

use base::Time;
use bytes::Bytes;
use master::Snapshot;
use wire::http::Query;

use self::pieces::{Pieces, Splices};
use self::sight::Sight;
use crate::common::Common;
use crate::flags::MasterFlags;

/// What a document is written from.
pub(super) struct Context {
    /// The cluster.
    pub(super) snapshot: Arc<Snapshot>,
    /// Flags as they are shown, and the log.
    pub(super) common: Arc<Common>,
    /// The master's flags.
    pub(super) flags: Arc<MasterFlags>,
    /// When this master started.
    pub(super) started: Time,
    /// What exactly was asked for.
    pub(super) query: Query,
    /// What the principal may view.
    pub(super) sight: Sight,
    /// What has been made for earlier documents.
    pub(super) pieces: Arc<Pieces>,
    /// Texts that go into this one.
    pub(super) splices: RefCell<Splices>,
}

impl Context {
    /// The document that `write` makes.
    pub(super) fn document(self, write: impl FnOnce(&Context, &mut Vec<u8>)) -> Vec<Bytes> {
        let mut out = Vec::with_capacity(64 << 10);
        write(&self, &mut out);
        self.pieces.sweep();
        pieces::put_together(out, self.splices.into_inner())
    }
}
