//! Distributes events to all followers. A follower that does not keep up is notified of the gap.

use std::sync::Arc;

use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use crate::core::Happening;

/// Maximum number of events that wait for the slowest follower.
const WAITING_MAX: usize = 4_096;

/// An event, shared by all followers.
pub type Event = Arc<Happening>;

/// Something was missed: so many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were missed")]
pub struct Lagged(pub u64);

/// Where events come from.
#[derive(Clone, Debug)]
pub(super) struct Followers(broadcast::Sender<Event>);

impl Default for Followers {
    fn default() -> Followers {
        Followers(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Followers {
    pub(super) fn tell(&self, happening: Happening) {
        // Nobody may follow.
        let _ = self.0.send(Arc::new(happening));
    }

    pub(super) fn follow(&self) -> Follower {
        Follower(self.0.subscribe())
    }
}

/// Hears what happens.
#[derive(Debug)]
pub struct Follower(broadcast::Receiver<Event>);

impl Follower {
    /// The next event that is there already, if there is one. What was missed is passed over.
    pub fn waiting(&mut self) -> Option<Event> {
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
    pub async fn next(&mut self) -> Result<Option<Event>, Lagged> {
        match self.0.recv().await {
            Ok(event) => Ok(Some(event)),
            Err(RecvError::Closed) => Ok(None),
            Err(RecvError::Lagged(missed)) => Err(Lagged(missed)),
        }
    }
}
