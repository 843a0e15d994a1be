//! The store of the driver. Its calls block, so they run on a thread of their own.

use std::collections::BTreeMap;

use tokio::task::JoinError;

use crate::saved::Damaged;
use crate::state::{Change, State, StateError};

/// Why the state cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// Another call uses the store, or has lost it.
    #[error("the framework's state is in use")]
    InUse,
    /// The thread of the call.
    #[error(transparent)]
    Thread(#[from] JoinError),
    /// The store.
    #[error(transparent)]
    State(#[from] StateError),
    /// The entries.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

/// A store that is not in use just now; empty while it is, and after a thread with it was lost.
#[derive(Debug)]
pub(super) struct Store(Option<Box<dyn State>>);

impl Store {
    pub(super) fn new(state: Box<dyn State>) -> Store {
        Store(Some(state))
    }

    /// Returns all entries.
    pub(super) async fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        self.aside(|state| state.load()).await
    }

    /// Returns when the changes are durable.
    pub(super) async fn commit(&mut self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.aside(move |state| state.commit(&changes)).await
    }

    async fn aside<T, F>(&mut self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn State) -> Result<T, StateError> + Send + 'static,
    {
        let Some(mut state) = self.0.take() else { return Err(StoreError::InUse) };
        let thread = tokio::task::spawn_blocking(move || {
            let result = work(&mut *state);
            (state, result)
        });
        let (state, result) = thread.await?;
        self.0 = Some(state);
        Ok(result?)
    }
}
