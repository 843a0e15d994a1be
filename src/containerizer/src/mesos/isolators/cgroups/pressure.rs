//! Memory pressure counters of `cgroups/mem` (AGT-92).
//!
//! The kernel counts for a process that has registered for it, at the cost of some system calls for each container. So
//! a container is counted from the first request for its statistics on: most tasks have ended before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base::lock;
use containers::cgroups::{Group, ShortageWatch};

/// Memory pressure counters by container. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortages(Arc<Mutex<BTreeMap<String, ShortageWatch>>>);

impl Shortages {
    /// Returns the counters of low, medium and critical pressure; `None` without counters.
    pub(super) fn of(&self, container: &str, group: &Group) -> Option<[u64; 3]> {
        let mut all = lock(&self.0);
        if let Some(watch) = all.get_mut(container) {
            return Some(watch.counts());
        }
        let mut watch = group.watch_shortages().ok()??;
        let counts = watch.counts();
        all.insert(container.to_owned(), watch);
        // The container may have ended meanwhile: then its counters would never be removed.
        if !group.exists() {
            all.remove(container);
        }
        Some(counts)
    }

    /// Removes the counters of a container that has ended.
    pub(super) fn take_back(&self, container: &str) {
        lock(&self.0).remove(container);
    }
}
