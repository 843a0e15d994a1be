//! A registry in one file below the master's work directory, with a second file that confirms each commit.
//!
//! The storage engine keeps the entries; this file defines their form. `open.rs` checks an existing file.

use std::fs;
use std::path::Path;

use protos::mesos::internal::Registry;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::confirmation::{Commit, Confirmation, path_of};
use super::digest::{BYTES, Content};
use super::file_identity::FileIdentity;
use super::open::{self, Opening};
use super::{RegistryStore, Update, changes, copy, parts};
use crate::error::StoreError;

/// Table of entries by key.
pub(super) const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("registry");
/// Table of the newest commit: its number, and the checksum of the entries after it.
pub(super) const COMMITS: TableDefinition<'_, (), (u64, &[u8; BYTES])> = TableDefinition::new("commits");

/// A registry in one file.
#[derive(Debug)]
pub struct FileRegistry {
    pub(super) database: Database,
    pub(super) identity: FileIdentity,
    pub(super) confirmation: Confirmation,
    pub(super) opening: Opening,
}

impl FileRegistry {
    /// Name of the registry in a master's work directory.
    pub const NAME: &str = "registry.redb";

    /// Creates a registry with the content of `registry`, at a path without one. A crash leaves no registry, or all of
    /// it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] or [`StoreError::InUse`] if there is a registry, or a part of one. An error of the
    /// system.
    pub fn create(path: &Path, registry: &Registry) -> Result<FileRegistry, StoreError> {
        if FileRegistry::is_at(path) {
            let is_locked = |file: fs::File| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
            let in_use = fs::File::open(path).is_ok_and(is_locked);
            let path = path.to_owned();
            return Err(if in_use { StoreError::InUse { path } } else { StoreError::Exists { path } });
        }
        open::create_with(path, &changes(&Registry::default(), registry))
    }

    /// Reads the registry at `path` without changing its files.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if a process has it open, [`StoreError::Lost`] if it does not contain the last commit. An
    /// error of the system.
    pub fn read(path: &Path) -> Result<Registry, StoreError> {
        copy::read(path)
    }

    /// Opens the registry at `path`, or creates one if there is no trace of an earlier one. Only one process can open
    /// it at a time.
    ///
    /// `accept` is the [number](super::Loss::number) of a loss that the operator accepts.
    ///
    /// # Errors
    /// [`StoreError::Lost`] if the registry does not contain, or may not contain, the last commit, and that is not
    /// accepted. An error of the system; another process has it open.
    pub fn open(path: &Path, accept: Option<u64>) -> Result<FileRegistry, StoreError> {
        open::open(path, accept)
    }

    /// Returns whether there is a registry at `path`, or a part of one.
    pub fn is_at(path: &Path) -> bool {
        path.exists() || path_of(path).exists()
    }

    /// Renames a registry that is not open. If a crash interrupts it, the next call completes it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
        for (from, to) in [(from.to_owned(), to.to_owned()), (path_of(from), path_of(to))] {
            match fs::rename(&from, to) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(StoreError::io("rename", &from))?,
            }
        }
        Ok(())
    }

    /// Returns the state of the registry when it was opened.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Writes a commit, and returns when it is durable in the registry's file.
    fn write(&self, updates: &[Update]) -> Result<Commit, redb::Error> {
        let writing = self.database.begin_write()?;
        let next = {
            let (mut table, mut commits) = (writing.open_table(ENTRIES)?, writing.open_table(COMMITS)?);
            let last = commits.get(())?.map(|last| Commit::from(last.value()));
            let Some(Commit { number, mut content }) = last else {
                return Err(redb::Error::Corrupted("the number of the last commit is missing".to_owned()));
            };
            for update in updates {
                let key = update.key.as_str();
                let before = match &update.value {
                    Some(value) => table.insert(key, value.as_slice())?,
                    None => table.remove(key)?,
                };
                if let Some(before) = before {
                    content.toggle(key, before.value());
                }
                if let Some(value) = &update.value {
                    content.toggle(key, value);
                }
            }
            let next = Commit { number: number.saturating_add(1), content };
            commits.insert((), (next.number, &next.content.0))?;
            next
        };
        writing.commit()?;
        Ok(next)
    }
}

/// Joins the entries of the database to a registry; `path` is for errors.
pub(super) fn load(database: &Database, path: &Path) -> Result<Registry, StoreError> {
    let reading = database.begin_read().map_err(failed(path))?;
    let mut registry = Registry::default();
    let table = match reading.open_table(ENTRIES) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(registry),
        outcome => outcome.map_err(failed(path))?,
    };
    for entry in table.iter().map_err(failed(path))? {
        let (key, value) = entry.map_err(failed(path))?;
        parts::put(&mut registry, key.value(), value.value()).map_err(|source| StoreError::Damaged {
            path: path.to_owned(),
            key: key.value().to_owned(),
            source,
        })?;
    }
    Ok(registry)
}

/// Adds the file to an error of the engine.
pub(super) fn failed<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Registry { path: path.to_owned(), source: Box::new(error.into()) }
}

impl From<(u64, &[u8; BYTES])> for Commit {
    fn from((number, content): (u64, &[u8; BYTES])) -> Commit {
        Commit { number, content: Content(*content) }
    }
}

impl RegistryStore for FileRegistry {
    fn load(&mut self) -> Result<Registry, StoreError> {
        load(&self.database, self.identity.path())
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        if !updates.is_empty() {
            let commit = self.write(updates).map_err(failed(self.identity.path()))?;
            // Before the commit has any effect, both files contain it and are at their paths.
            self.confirmation.write(&commit, self.identity.modified()?)?;
        }
        self.identity.check().map(drop)
    }
}
