//! Calls the driver's store on a thread of its own, since the calls block.

use std::collections::BTreeMap;

use tokio::task::JoinError;

use crate::saved::Damaged;
use crate::state::{Change, State, StateError};

/// An error of reading or writing the state.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// The store is in use by another call, or was lost with the thread of one.
    #[error("the framework's state is in use")]
    InUse,
    /// The thread of the call failed.
    #[error(transparent)]
    Thread(#[from] JoinError),
    /// The store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// An entry of the store is damaged.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

/// The driver's store; `None` while a call uses it, and after its thread was lost.
#[derive(Debug)]
pub(super) struct Store(Option<Box<dyn State>>);

impl Store {
    pub(super) fn new(state: Box<dyn State>) -> Store {
        Store(Some(state))
    }

    /// Reads all entries.
    pub(super) async fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        self.aside(|state| state.load()).await
    }

    /// Writes the changes, and returns when they are durable.
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
