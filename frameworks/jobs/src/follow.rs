//! Distributes events to all followers. A follower that does not keep up is notified of the gap.

use std::sync::Arc;

use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

/// Maximum number of events that are queued for the slowest follower.
const WAITING_MAX: usize = 4_096;

/// The number of events that a follower missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were missed")]
pub struct Lagged(pub u64);

/// The sender of events to all followers.
#[derive(Debug)]
pub struct Followers<E>(broadcast::Sender<Arc<E>>);

impl<E> Clone for Followers<E> {
    fn clone(&self) -> Followers<E> {
        Followers(self.0.clone())
    }
}

impl<E: Clone> Default for Followers<E> {
    fn default() -> Followers<E> {
        Followers(broadcast::Sender::new(WAITING_MAX))
    }
}

impl<E: Clone> Followers<E> {
    /// Sends an event to all followers.
    pub fn send(&self, event: E) {
        // There may be no follower.
        let _ = self.0.send(Arc::new(event));
    }

    /// Returns a follower of all events from now on.
    pub fn follow(&self) -> Follower<E> {
        Follower(self.0.subscribe())
    }
}

/// The receiver of events.
#[derive(Debug)]
pub struct Follower<E>(broadcast::Receiver<Arc<E>>);

impl<E: Clone> Follower<E> {
    /// Returns the next queued event; `None` if there is none. Missed events are skipped silently.
    pub fn waiting(&mut self) -> Option<Arc<E>> {
        loop {
            match self.0.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// Waits for the next event; `None` when the framework has ended.
    ///
    /// # Errors
    /// Returns the number of missed events if the follower was too slow. Later events can still be received.
    pub async fn next(&mut self) -> Result<Option<Arc<E>>, Lagged> {
        match self.0.recv().await {
            Ok(event) => Ok(Some(event)),
            Err(RecvError::Closed) => Ok(None),
            Err(RecvError::Lagged(missed)) => Err(Lagged(missed)),
        }
    }
}
