//! A registry whose entries are not in a file of this master: in ZooKeeper, in etcd, or in the log of a group of
//! masters.
//!
//! The writers decide where and how the entries are written.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use protos::mesos::internal::Registry;
use store::{RegistryStore, StoreError, Update};

/// The key of an entry and its new value; `None` deletes the entry.
pub(super) type Change = (String, Option<Vec<u8>>);

/// A writer of the registry's entries.
pub(super) trait Writer: Send {
    /// Name of the place of the entries, for messages.
    const PLACE: &'static str;

    /// Makes all changes durable, or none. Blocks.
    ///
    /// # Errors
    /// It is unknown whether the changes are durable.
    fn write(&mut self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// A registry that this master has taken over.
pub(super) struct EntriesRegistry<W> {
    writer: W,
    /// Copy of the entries: no other process writes them while this master leads.
    entries: BTreeMap<String, Vec<u8>>,
}

impl<W: Writer> EntriesRegistry<W> {
    /// Creates a registry with these entries.
    pub(super) fn new(writer: W, entries: BTreeMap<String, Vec<u8>>) -> EntriesRegistry<W> {
        EntriesRegistry { writer, entries }
    }
}

/// Converts an error of the place of the entries.
pub(super) fn entries_error<W: Writer>(error: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Elsewhere { place: W::PLACE, source: error.into() }
}

impl<W: Writer> RegistryStore for EntriesRegistry<W> {
    fn load(&mut self) -> Result<Registry, StoreError> {
        let entries = self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        store::registry_of(Path::new(W::PLACE), entries)
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        let change = |update: &Update| (update.key().to_owned(), update.value().map(<[u8]>::to_vec));
        self.writer.write(updates.iter().map(change).collect()).map_err(entries_error::<W>)?;
        for update in updates {
            match update.value() {
                Some(value) => drop(self.entries.insert(update.key().to_owned(), value.to_vec())),
                None => drop(self.entries.remove(update.key())),
            }
        }
        Ok(())
    }
}
