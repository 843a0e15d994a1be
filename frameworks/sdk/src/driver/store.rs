//! The store of the driver. Its calls block, so they run on a thread of their own.

use std::collections::BTreeMap;

use crate::state::{Change, State, StateError};

/// A store that is not in use just now; empty while it is, and after a thread with it was lost.
#[derive(Debug)]
pub(super) struct Store(Option<Box<dyn State>>);

impl Store {
    pub(super) fn new(state: Box<dyn State>) -> Store {
        Store(Some(state))
    }

    /// Returns all entries. The error is a text.
    pub(super) async fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        self.aside(|state| state.load()).await
    }

    /// Returns when the changes are durable. The error is a text.
    pub(super) async fn commit(&mut self, changes: Vec<Change>) -> Result<(), String> {
        self.aside(move |state| state.commit(&changes)).await
    }

    async fn aside<T, F>(&mut self, work: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn State) -> Result<T, StateError> + Send + 'static,
    {
        let Some(mut state) = self.0.take() else { return Err("the framework's state is in use".to_owned()) };
        let thread = tokio::task::spawn_blocking(move || {
            let result = work(&mut *state);
            (state, result)
        });
        let (state, result) = thread.await.map_err(|error| base::error_chain(&error))?;
        self.0 = Some(state);
        result.map_err(|error| base::error_chain(&error))
    }
}
