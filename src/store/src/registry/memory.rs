//! A registry that is lost with its process (`--registry=in_memory`).

use std::collections::BTreeMap;
use std::path::Path;

use protos::mesos::internal::Registry;

use super::{RegistryStore, Update, parts};
use crate::error::StoreError;

/// A registry in memory, which is lost with its process.
#[derive(Clone, Debug, Default)]
pub struct MemoryRegistry {
    entries: BTreeMap<String, Vec<u8>>,
}

impl RegistryStore for MemoryRegistry {
    fn load(&mut self) -> Result<Registry, StoreError> {
        let entries = self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        parts::registry_of(Path::new("in memory"), entries)
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        for update in updates {
            match &update.value {
                Some(value) => self.entries.insert(update.key.clone(), value.clone()),
                None => self.entries.remove(&update.key),
            };
        }
        Ok(())
    }
}
