//! The master's registry, `mesos.internal.Registry`, stored in parts: one entry for each agent, role and so on.
//!
//! The cost of a change depends on its size, not on that of the registry. Implementations choose where entries are
//! stored.

mod confirmation;
mod copy;
mod digest;
mod file;
mod file_identity;
mod loss;
mod memory;
mod open;
mod parts;

use std::collections::BTreeMap;

use protos::mesos::internal::Registry;

use crate::error::StoreError;

pub use file::FileRegistry;
pub use loss::{Confirmed, Found, Loss};
pub use memory::MemoryRegistry;
pub use open::Opening;
pub use parts::{EntryError, Update, registry_of};

/// A store of a registry.
pub trait RegistryStore: Send {
    /// Reads the whole registry; a new store has an empty one.
    ///
    /// # Errors
    /// The registry cannot be read, or the store contains something else.
    fn load(&mut self) -> Result<Registry, StoreError>;

    /// Makes all these changes, or none, and returns when they are durable.
    ///
    /// # Errors
    /// The registry cannot be written. It is then unknown whether the changes are made.
    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError>;

    /// Makes the registry equal to `wanted` by changing the differences.
    ///
    /// # Errors
    /// As [`load`](RegistryStore::load) and [`commit`](RegistryStore::commit).
    fn save(&mut self, wanted: &Registry) -> Result<(), StoreError> {
        let updates = changes(&self.load()?, wanted);
        if updates.is_empty() { Ok(()) } else { self.commit(&updates) }
    }
}

/// Returns the changes that make a registry that is equal to `old` equal to `new`. Both may be parts of registries, if
/// they lack the same parts.
pub fn changes(old: &Registry, new: &Registry) -> Vec<Update> {
    let (old, new) = (entries(parts::split(old)), entries(parts::split(new)));
    let gone = old.keys().filter(|key| !new.contains_key(*key)).cloned().map(|key| Update { key, value: None });
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
    let changed = changed.map(|(key, value)| Update { key: key.clone(), value: Some(value.clone()) });
    gone.chain(changed).collect()
}

fn entries(updates: Vec<Update>) -> BTreeMap<String, Vec<u8>> {
    updates.into_iter().filter_map(|update| Some((update.key, update.value?))).collect()
}
