//! The documents of the master's read endpoints, written from a snapshot on another thread than the core's.
//!
//! They change no state; all their data is in [`Context`].

pub(in crate::master) mod calls;
pub(in crate::master) mod chunk_cache;
pub(in crate::master) mod frameworks;
mod index;
pub(in crate::master) mod overview;
pub(in crate::master) mod roles;
pub(super) mod settings;
pub(in crate::master) mod slaves;
pub(in crate::master) mod state;
pub(in crate::master) mod summary;
pub(in crate::master) mod tasks;
pub(super) mod visibility;

use std::cell::RefCell;
use std::sync::Arc;

use base::Time;
use bytes::Bytes;
use master::Snapshot;
use wire::http::Query;

use self::chunk_cache::{ChunkCache, Splices};
use self::visibility::Visibility;
use crate::common::Common;
use crate::flags::MasterFlags;

/// The data of a document.
pub(super) struct Context {
    /// State of the cluster.
    pub(super) snapshot: Arc<Snapshot>,
    /// Flags as they are shown, and those of the log.
    pub(super) common: Arc<Common>,
    /// Flags of the master.
    pub(super) flags: Arc<MasterFlags>,
    /// Time at which this master started.
    pub(super) started: Time,
    /// Query parameters of the request.
    pub(super) query: Query,
    /// Permissions of the principal to view parts of the cluster.
    pub(super) visibility: Visibility,
    /// Texts of parts of the state that were written for earlier documents.
    pub(super) chunk_cache: Arc<ChunkCache>,
    /// Texts that are inserted into this document.
    pub(super) splices: RefCell<Splices>,
}

impl Context {
    /// Returns the document that `write` writes, in parts.
    pub(super) fn document(self, write: impl FnOnce(&Context, &mut Vec<u8>)) -> Vec<Bytes> {
        let mut out = Vec::with_capacity(64 << 10);
        write(&self, &mut out);
        self.chunk_cache.sweep();
        chunk_cache::join_parts(out, self.splices.into_inner())
    }
}
