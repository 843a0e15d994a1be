//! Fault points: places at which a test ends a daemon at once, as SIGKILL would.
//!
//! `TEPUI_FAULT=N` ends it at the Nth point. Without the variable a point costs one read of a number.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static AT: OnceLock<Option<u64>> = OnceLock::new();
static COME_TO: AtomicU64 = AtomicU64::new(0);

/// Marks a fault point; `name` is for the log.
pub(crate) fn point(name: &str) {
    let wanted = AT.get_or_init(|| std::env::var("TEPUI_FAULT").ok()?.parse().ok());
    if let Some(wanted) = wanted
        && COME_TO.fetch_add(1, Ordering::Relaxed) + 1 == *wanted
    {
        stdio::err!("fault point {wanted}: {name}");
        // No destructor runs and no buffer is flushed; only data that the kernel has remains.
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    }
}
