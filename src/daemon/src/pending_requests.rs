//! HTTP requests that wait for a core's answer.
//!
//! It does not know what the answers mean.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base::lock;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

/// Waiting requests, by the number that the core knows them by.
#[derive(Debug)]
pub struct PendingRequests<T> {
    waiting: Mutex<FxHashMap<u64, oneshot::Sender<T>>>,
    next: AtomicU64,
}

impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        PendingRequests { waiting: Mutex::default(), next: AtomicU64::new(1) }
    }
}

impl<T> PendingRequests<T> {
    /// Returns the number of a new request, and the receiver of its answer.
    pub fn ask(&self) -> (u64, oneshot::Receiver<T>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(number, sender);
        (number, receiver)
    }

    /// Answers a request. Does nothing if its client has disconnected.
    pub fn answer(&self, number: u64, answer: T) {
        let sender = lock(&self.waiting).remove(&number);
        if let Some(sender) = sender {
            // The client may have closed its connection meanwhile.
            let _ = sender.send(answer);
        }
    }
}
