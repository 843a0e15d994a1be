//! Distributes events to all followers. A follower that does not keep up is notified of the gap.

use std::sync::Arc;

use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

/// Maximum number of events that wait for the slowest follower.
const WAITING_MAX: usize = 4_096;

/// This many events were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were missed")]
pub struct Lagged(pub u64);

/// Where events come from.
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
    pub fn tell(&self, happening: E) {
        // There may be no follower.
        let _ = self.0.send(Arc::new(happening));
    }

    /// A follower of what happens from now on.
    pub fn follow(&self) -> Follower<E> {
        Follower(self.0.subscribe())
    }
}

/// Receives events.
#[derive(Debug)]
pub struct Follower<E>(broadcast::Receiver<Arc<E>>);

impl<E: Clone> Follower<E> {
    /// The next event that is there already, if there is one. What was missed is passed over.
    pub fn waiting(&mut self) -> Option<Arc<E>> {
        loop {
            match self.0.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// The next event; none when the framework has ended.
    ///
    /// # Errors
    /// Events were missed because they were not taken in time; those after them can be.
    pub async fn next(&mut self) -> Result<Option<Arc<E>>, Lagged> {
        match self.0.recv().await {
            Ok(event) => Ok(Some(event)),
            Err(RecvError::Closed) => Ok(None),
            Err(RecvError::Lagged(missed)) => Err(Lagged(missed)),
        }
    }
}
