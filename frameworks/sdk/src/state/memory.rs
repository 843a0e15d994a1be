//! A store in memory, for tests, and for laboratories that restart schedulers within one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Change, State, StateError};

/// A store in memory. Clones share its entries, so a test can pass the state of one scheduler to its successor.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl State for Memory {
    fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StateError> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match &change.value {
                Some(value) => entries.insert(change.key.clone(), value.clone()),
                None => entries.remove(&change.key),
            };
        }
        Ok(())
    }
}
