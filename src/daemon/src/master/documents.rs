//! Writes documents one at a time, on another thread than the reactor's, and each only once for one state of the
//! cluster.
//!
//! Requests that wait for the same document share it: many readers cost as much as one. It does not depend on the
//! content of the documents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use base::lock;
use bytes::Bytes;
use master::Snapshot;
use tokio::sync::Semaphore;

/// Maximum number of documents of one state that are kept for further readers.
const KEPT: usize = 8;

/// The documents of the newest requested state.
#[derive(Debug)]
pub(super) struct Documents {
    /// Permits one writer at a time: the other processor is for the core of the master.
    turn: Semaphore,
    written: Mutex<Written>,
    hits: AtomicU64,
}

/// Texts written from one snapshot. The weak reference does not keep the snapshot in memory.
#[derive(Debug, Default)]
struct Written {
    of: Weak<Snapshot>,
    bodies: BTreeMap<String, Arc<[Bytes]>>,
}

impl Documents {
    pub(super) fn new() -> Documents {
        Documents { turn: Semaphore::new(1), written: Mutex::default(), hits: AtomicU64::new(0) }
    }

    /// Returns how often a reader received a document that was written for another one.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns the document `name` of the state that `snapshot` returns when it is this reader's turn.
    ///
    /// # Errors
    /// If writing the document has failed.
    pub(super) async fn get(
        &self,
        name: String,
        snapshot: impl Future<Output = Arc<Snapshot>>,
        write: impl FnOnce(Arc<Snapshot>) -> Vec<Bytes> + Send + 'static,
    ) -> Result<Arc<[Bytes]>, String> {
        let turn = self.turn.acquire().await.map_err(|error| error.to_string())?;
        let snapshot = snapshot.await;
        if let Some(body) = self.known(&snapshot, &name) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(body);
        }
        let of = Arc::downgrade(&snapshot);
        let body = tokio::task::spawn_blocking(move || Arc::from(write(snapshot)));
        let body: Arc<[Bytes]> = body.await.map_err(|error| error.to_string())?;
        self.keep(of, name, body.clone());
        drop(turn);
        Ok(body)
    }

    fn known(&self, snapshot: &Arc<Snapshot>, name: &str) -> Option<Arc<[Bytes]>> {
        let written = lock(&self.written);
        let same = std::ptr::eq(written.of.as_ptr(), Arc::as_ptr(snapshot));
        // A weak reference keeps its address from being reused, so equal addresses mean the same state.
        written.bodies.get(name).filter(|_| same).cloned()
    }

    fn keep(&self, of: Weak<Snapshot>, name: String, body: Arc<[Bytes]>) {
        let mut written = lock(&self.written);
        if !written.of.ptr_eq(&of) || written.bodies.len() >= KEPT {
            *written = Written { of, bodies: BTreeMap::new() };
        }
        written.bodies.insert(name, body);
    }
}
