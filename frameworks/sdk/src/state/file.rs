//! A store in one file, which an embedded storage engine keeps consistent over crashes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};
use store::Access;

use super::{Change, State, StateError};

/// The only table of the file: entries by key.
const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("framework");
/// Size of the storage engine's cache in bytes; small, since the file is read once, at start.
const CACHE_BYTES: usize = 4 << 20;
/// Name of the file in the directory of [`File::open`].
const NAME: &str = "framework.redb";

/// A store in one file.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    database: Database,
}

impl File {
    /// Opens the store in `directory`, and creates both if they are missing. Only one process can open it at a time.
    ///
    /// # Errors
    /// An error of the disk; another process has the store open; or the file is not a store.
    pub fn open(directory: &Path) -> Result<File, StateError> {
        let path = directory.join(NAME);
        // The saved state of a scheduler may contain its tasks' environment variables, and passwords among them.
        store::create_directories(directory, Access::Owner).map_err(failed("open", &path))?;
        match path.exists() {
            true => store::make_private(&path),
            false => store::create_new(&path, Access::Owner).map(drop),
        }
        .map_err(failed("open", &path))?;
        let database = Builder::new().set_cache_size(CACHE_BYTES).create(&path).map_err(failed("open", &path))?;
        // The directory entry of the file must survive a crash as well as its content.
        std::fs::File::open(directory).and_then(|f| f.sync_all()).map_err(failed("open", &path))?;
        Ok(File { path, database })
    }

    /// Opens the store in `directory` if it exists.
    ///
    /// # Errors
    /// As [`open`](File::open).
    pub fn open_existing(directory: &Path) -> Result<Option<File>, StateError> {
        if directory.join(NAME).is_file() { File::open(directory).map(Some) } else { Ok(None) }
    }

    fn read(&self) -> Result<BTreeMap<String, Vec<u8>>, redb::Error> {
        let reading = self.database.begin_read()?;
        let table = match reading.open_table(ENTRIES) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
            outcome => outcome?,
        };
        let mut entries = BTreeMap::new();
        for entry in table.iter()? {
            let (key, value) = entry?;
            entries.insert(key.value().to_owned(), value.value().to_vec());
        }
        Ok(entries)
    }

    fn write(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let writing = self.database.begin_write()?;
        {
            let mut table = writing.open_table(ENTRIES)?;
            for change in changes {
                match &change.value {
                    Some(value) => table.insert(change.key.as_str(), value.as_slice())?,
                    None => table.remove(change.key.as_str())?,
                };
            }
        }
        Ok(writing.commit()?)
    }
}

impl State for File {
    fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
        self.read().map_err(failed("read", &self.path))
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StateError> {
        self.write(changes).map_err(failed("write", &self.path))
    }
}

/// Adds the action and the file to an error.
fn failed<E>(action: &'static str, path: &Path) -> impl FnOnce(E) -> StateError
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |error| StateError { action, place: path.display().to_string(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_committed_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("sdk-state-{}", std::process::id()));
        assert!(File::open_existing(&directory).unwrap().is_none());
        let mut file = File::open(&directory).unwrap();
        let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join(NAME))), (0o700, 0o600));
        assert_eq!(file.load().unwrap(), BTreeMap::new());
        file.commit(&[Change::set("a", b"1".to_vec()), Change::set("b", b"2".to_vec()), Change::gone("a")]).unwrap();
        let second = File::open(&directory).unwrap_err();
        assert!(second.to_string().contains("framework.redb"), "{second}");
        drop(file);
        let mut file = File::open_existing(&directory).unwrap().unwrap();
        assert_eq!(file.load().unwrap(), BTreeMap::from([("b".to_owned(), b"2".to_vec())]));
        drop(file);
        std::fs::write(directory.join(NAME), b"something else").unwrap();
        assert!(File::open(&directory).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
