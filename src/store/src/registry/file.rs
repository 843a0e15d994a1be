//! A registry in one file below the master's work folder.
//!
//! The storage engine keeps it whole over crashes; this file only says what is in it.

use std::path::{Path, PathBuf};

use protos::mesos::internal::Registry;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{RegistryStore, Update, parts};
use crate::create::{Access, create_directories, create_new, make_private};
use crate::error::StoreError;
use crate::replace::{folder_of, sync_folder};

/// The only table: entries by key.
const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("registry");
/// How much of the file is kept in memory, in bytes: it is read once, at start.
const CACHE_BYTES: usize = 4 << 20;

/// A registry in one file.
#[derive(Debug)]
pub struct FileRegistry {
    path: PathBuf,
    database: Database,
}

impl FileRegistry {
    /// Opens or makes the registry's file. Only one process can have it open.
    ///
    /// # Errors
    /// When the disk refuses, another process has it, or it is no such file.
    pub fn open(path: &Path) -> Result<FileRegistry, StoreError> {
        let folder = folder_of(path);
        create_directories(folder, Access::All).map_err(StoreError::io("create the folder", folder))?;
        let fresh = !path.exists();
        // The engine would make a file that others can read; an older version has.
        match fresh {
            true => create_new(path, Access::Owner).map(drop),
            false => make_private(path),
        }
        .map_err(StoreError::io("take the access of others away from", path))?;
        let database = Builder::new().set_cache_size(CACHE_BYTES).create(path).map_err(failed(path))?;
        if fresh {
            sync_folder(folder)?;
        }
        Ok(FileRegistry { path: path.to_owned(), database })
    }
}

/// Says which file an error of the engine is about.
fn failed<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Registry { path: path.to_owned(), source: Box::new(error.into()) }
}

impl RegistryStore for FileRegistry {
    fn load(&mut self) -> Result<Registry, StoreError> {
        let path = &self.path;
        let reading = self.database.begin_read().map_err(failed(path))?;
        let mut registry = Registry::default();
        let table = match reading.open_table(ENTRIES) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(registry),
            outcome => outcome.map_err(failed(path))?,
        };
        for entry in table.iter().map_err(failed(path))? {
            let (key, value) = entry.map_err(failed(path))?;
            parts::put(&mut registry, key.value(), value.value()).map_err(|source| StoreError::Damaged {
                path: path.clone(),
                key: key.value().to_owned(),
                source,
            })?;
        }
        Ok(registry)
    }

    fn commit(&mut self, updates: &[Update]) -> Result<(), StoreError> {
        let path = &self.path;
        let writing = self.database.begin_write().map_err(failed(path))?;
        {
            let mut table = writing.open_table(ENTRIES).map_err(failed(path))?;
            for update in updates {
                match &update.value {
                    Some(value) => table.insert(update.key.as_str(), value.as_slice()),
                    None => table.remove(update.key.as_str()),
                }
                .map_err(failed(path))?;
            }
        }
        writing.commit().map_err(failed(path))
    }
}
