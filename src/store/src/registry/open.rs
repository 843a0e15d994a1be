//! Opens a registry's file, after comparing its content with the file that confirms its commits.
//!
//! A commit is written to the registry's file first and confirmed second. So a crash leaves a registry that is
//! confirmed up to its newest commit, or up to the one before it. Everything else is a [`Loss`].

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableError};

use super::confirmation::{Commit, Confirmation, Reading, path_of};
use super::digest::Content;
use super::file::{COMMITS, ENTRIES, FileRegistry, failed};
use super::file_identity::FileIdentity;
use super::loss::{Found, Loss};
use super::{RegistryStore, Update};
use crate::create::{Access, create_directories, create_new, make_private};
use crate::error::StoreError;
use crate::replace::{directory_of, sync_directory};

/// Size of the storage engine's cache in bytes; small, since the file is read once, at start.
const CACHE_BYTES: usize = 4 << 20;
/// Maximum wait at the start for another process to release the file, and the interval of attempts.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// State of a registry when it was opened.
#[derive(Debug)]
pub enum Opening {
    /// There was no registry.
    New,
    /// The newest commit was confirmed.
    Confirmed,
    /// The newest commit was not confirmed: the process before ended between the two writes. It is confirmed now.
    Unconfirmed {
        /// Number of that commit.
        last: u64,
    },
    /// The registry was written by a version that does not confirm commits. From now on they are confirmed.
    Older,
    /// A part of the registry was lost, and the caller has accepted that.
    Accepted {
        /// Loss that was found.
        loss: Loss,
        /// New path of the registry's file if it cannot be read; an empty registry is in its place.
        kept: Option<PathBuf>,
    },
}

/// State of the file at a registry's path.
enum ExistingFile {
    Absent,
    Empty,
    Unreadable(Box<redb::Error>),
    Readable(Readable),
}

/// A registry's file that can be read.
struct Readable {
    database: Database,
    identity: FileIdentity,
    /// Newest commit; `None` if the registry was written by a version that does not count commits.
    commit: Option<Commit>,
    /// Checksum of the registry's entries.
    content: Content,
}

/// How to open a registry without a loss.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OpenAction {
    /// Open it as it is.
    Confirmed,
    /// Confirm its newest commit first.
    Confirm(Commit),
    /// Confirm its content as commit 0 first.
    Begin,
}

/// Opens the registry at `path`, or creates a new one. `accept` is the [number](Loss::number) of a loss that is
/// accepted.
pub(super) fn open(path: &Path, accept: Option<u64>) -> Result<FileRegistry, StoreError> {
    let (directory, confirmations) = (directory_of(path), path_of(path));
    create_directories(directory, Access::All).map_err(StoreError::io("create the directory", directory))?;
    for file in [path, &confirmations] {
        make_private(file).map_err(StoreError::io("restrict the access to", file))?;
    }
    let reading = Confirmation::read(&confirmations)?;
    let confirmed = match &reading {
        Reading::Confirms { confirmed, .. } => Some(*confirmed),
        Reading::Absent | Reading::Damaged => None,
    };
    let (found, source, readable) = match ExistingFile::read(path)? {
        ExistingFile::Absent if reading == Reading::Absent => return create(path, 0, Opening::New),
        ExistingFile::Absent => (Found::Missing(confirmed), None, None),
        ExistingFile::Empty => (Found::Empty(confirmed), None, None),
        ExistingFile::Unreadable(source) => (Found::Unreadable(confirmed), Some(source), None),
        ExistingFile::Readable(readable) => {
            match check_confirmation(readable.commit.as_ref(), &readable.content, &reading) {
                Ok(usage) => return readable.into_registry(path, usage),
                Err(found) => (found, None, Some(readable)),
            }
        }
    };
    let loss = Loss { path: path.to_owned(), found, source };
    match accept == Some(loss.number()) {
        true => open_after_loss(path, loss, readable),
        false => Err(StoreError::Lost(Box::new(loss))),
    }
}

/// Compares the content of a registry with its confirmations.
pub(super) fn check_confirmation(
    held: Option<&Commit>,
    content: &Content,
    reading: &Reading,
) -> Result<OpenAction, Found> {
    let last = held.map_or(0, |commit| commit.number);
    let (commit, confirmed, is_whole) = match reading {
        Reading::Confirms { commit, confirmed, is_whole } => (commit, *confirmed, *is_whole),
        Reading::Damaged => return Err(Found::ConfirmationsDamaged { last }),
        Reading::Absent if held.is_some_and(|held| held.content != *content) => return Err(Found::Changed { last }),
        Reading::Absent if last == 0 => return Ok(OpenAction::Begin),
        Reading::Absent => return Err(Found::Unconfirmed { last }),
    };
    let Some(held) = held.filter(|held| held.number >= commit.number) else {
        return Err(Found::RolledBack { last, confirmed });
    };
    match held.number - commit.number {
        0 | 1 if held.content != *content => Err(Found::Changed { last }),
        0 if !is_whole => Err(Found::ConfirmationsDamaged { last }),
        0 if held != commit => Err(Found::Changed { last }),
        0 => Ok(OpenAction::Confirmed),
        1 => Ok(OpenAction::Confirm(*held)),
        _ => Err(Found::ConfirmationsOld { last, confirmed }),
    }
}

/// Opens the rest of a registry. Its next commit has a higher number than every commit before, so that older copies of
/// its files are detected.
fn open_after_loss(path: &Path, loss: Loss, readable: Option<Readable>) -> Result<FileRegistry, StoreError> {
    let number = loss.number().saturating_add(1);
    if let Some(readable) = readable {
        let mut registry = readable.number(path, number)?;
        match registry.load() {
            Ok(_) => {
                registry.opening = Opening::Accepted { loss, kept: None };
                return Ok(registry);
            }
            Err(StoreError::Damaged { .. }) => drop(registry),
            Err(error) => return Err(error),
        }
    }
    let kept = put_aside(path)?;
    create(path, number, Opening::Accepted { loss, kept })
}

/// Renames a file that cannot be read to an unused name. Returns that name; `None` if there is no file.
fn put_aside(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let names = (0..).map(|number: u32| match number {
        0 => appended(path, ".damaged"),
        number => appended(path, &format!(".damaged.{number}")),
    });
    for name in names.take_while(|_| path.exists()) {
        if !name.exists() {
            fs::rename(path, &name).map_err(StoreError::io("rename", path))?;
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Creates an empty registry. A crash leaves none, or the whole file, which gets its name when all of it is durable.
fn create(path: &Path, number: u64, opening: Opening) -> Result<FileRegistry, StoreError> {
    let (new, readable) = unnamed(path)?;
    readable.write(&new, number)?;
    fs::rename(&new, path).map_err(StoreError::io("rename", &new))?;
    sync_directory(directory_of(path))?;
    let commit = Commit { number, content: readable.content };
    readable.confirm(path, &commit, opening)
}

/// Creates a registry with these entries at a path without one.
pub(super) fn create_with(path: &Path, updates: &[Update]) -> Result<FileRegistry, StoreError> {
    let directory = directory_of(path);
    create_directories(directory, Access::All).map_err(StoreError::io("create the directory", directory))?;
    let (new, mut readable) = unnamed(path)?;
    readable.fill(&new, updates)?;
    readable.write(&new, 0)?;
    // Unlike a rename, a link does not replace a registry that another process has created meanwhile. A crash before
    // the confirmation below leaves commit 0, which needs none.
    match fs::hard_link(&new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(StoreError::Exists { path: path.to_owned() });
        }
        linked => linked.map_err(StoreError::io("link", path))?,
    }
    fs::remove_file(&new).map_err(StoreError::io("remove", &new))?;
    sync_directory(directory)?;
    let commit = Commit { number: 0, content: readable.content };
    readable.confirm(path, &commit, Opening::New)
}

/// Creates an empty registry under a temporary name, and returns the name.
fn unnamed(path: &Path) -> Result<(PathBuf, Readable), StoreError> {
    let new = appended(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::io("remove", &new)(error)),
        _ => create_new(&new, Access::Owner).map_err(StoreError::io("create", &new))?,
    };
    let file = open_file(&new)?;
    let identity = FileIdentity::of(path, &file)?;
    let database = Builder::new().set_cache_size(CACHE_BYTES).create_file(file).map_err(failed(&new))?;
    Ok((new, Readable { database, identity, commit: None, content: Content::default() }))
}

impl ExistingFile {
    fn read(path: &Path) -> Result<ExistingFile, StoreError> {
        let file = match open_file(path) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(ExistingFile::Absent);
            }
            opened => opened?,
        };
        if file.metadata().map_err(StoreError::io("read the metadata of", path))?.len() == 0 {
            return Ok(ExistingFile::Empty);
        }
        let identity = FileIdentity::of(path, &file)?;
        match examine(file) {
            Ok((database, commit, content)) => {
                Ok(ExistingFile::Readable(Readable { database, identity, commit, content }))
            }
            Err(error) if is_damage(&error) => Ok(ExistingFile::Unreadable(Box::new(error))),
            Err(error) => Err(failed(path)(error)),
        }
    }
}

/// Reads the whole content of a file.
fn examine(file: File) -> Result<(Database, Option<Commit>, Content), redb::Error> {
    mark_as_not_closed(&file)?;
    let database = Builder::new().set_cache_size(CACHE_BYTES).create_file(file)?;
    let (commit, content) = contents(&database)?;
    Ok((database, commit, content))
}

/// Returns the newest commit, and the checksum of all entries.
pub(super) fn contents(database: &Database) -> Result<(Option<Commit>, Content), redb::Error> {
    let reading = database.begin_read()?;
    let mut content = Content::default();
    match reading.open_table(ENTRIES) {
        Err(TableError::TableDoesNotExist(_)) => {}
        table => {
            for entry in table?.iter()? {
                let (key, value) = entry?;
                content.toggle(key.value(), value.value());
            }
        }
    }
    let commit = match reading.open_table(COMMITS) {
        Err(TableError::TableDoesNotExist(_)) => None,
        table => table?.get(())?.map(|commit| Commit::from(commit.value())),
    };
    Ok((commit, content))
}

/// Makes the storage engine verify the checksums of all pages. It does so in files that were not closed, and trusts the
/// others: it panics if a page of such a file is damaged.
fn mark_as_not_closed(file: &File) -> Result<(), redb::Error> {
    // The engine locks the file in the same way; this lock becomes its own.
    lock(file)?;
    let mut head = [0; HEAD];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => match not_closed(&head) {
            Some(flags) => Ok(file.write_all_at(&[flags], FLAGS as u64)?),
            // The engine reports the error.
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Start of a file of the storage engine (redb's design document, "Database header").
const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// Offset of the byte with flags.
pub(super) const FLAGS: usize = MAGIC.len();
const HEAD: usize = FLAGS + 1;

/// Returns the flags of a file that was not closed. Returns `None` if it does not start like a file of the engine.
pub(super) fn not_closed(head: &[u8]) -> Option<u8> {
    const RECOVERY_REQUIRED: u8 = 2;
    const TWO_PHASE_COMMIT: u8 = 4;
    let flags = head.strip_prefix(MAGIC)?.first()?;
    Some(flags & !TWO_PHASE_COMMIT | RECOVERY_REQUIRED)
}

/// Locks a file, and waits for a process that is ending: a master that received SIGTERM keeps its registry open for
/// some moments.
#[expect(
    clippy::disallowed_methods,
    reason = "the system has no lock with a time limit, and nothing else runs at a start"
)]
fn lock(file: &File) -> Result<(), redb::Error> {
    let begin = Instant::now();
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        if begin.elapsed() > LOCK_WAIT {
            return Err(redb::Error::DatabaseAlreadyOpen);
        }
        std::thread::sleep(LOCK_INTERVAL);
    }
    Ok(())
}

/// Returns whether an error is about the content of the file: not about the system, or another process.
fn is_damage(error: &redb::Error) -> bool {
    match error {
        redb::Error::Io(error) => matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen | redb::Error::PreviousIo => false,
        _ => true,
    }
}

impl Readable {
    fn into_registry(self, path: &Path, usage: OpenAction) -> Result<FileRegistry, StoreError> {
        match usage {
            OpenAction::Confirmed => {
                let confirmation = Confirmation::open(&path_of(path))?;
                Ok(FileRegistry {
                    database: self.database,
                    identity: self.identity,
                    confirmation,
                    opening: Opening::Confirmed,
                })
            }
            OpenAction::Confirm(commit) => self.confirm(path, &commit, Opening::Unconfirmed { last: commit.number }),
            OpenAction::Begin => {
                // A new registry has commit numbers from the start.
                let opening = if self.commit.is_none() { Opening::Older } else { Opening::New };
                let mut registry = self.number(path, 0)?;
                registry.opening = opening;
                Ok(registry)
            }
        }
    }

    /// Adds entries.
    fn fill(&mut self, path: &Path, updates: &[Update]) -> Result<(), StoreError> {
        let writing = self.database.begin_write().map_err(failed(path))?;
        {
            let mut table = writing.open_table(ENTRIES).map_err(failed(path))?;
            for Update { key, value } in updates {
                let Some(value) = value else { continue };
                table.insert(key.as_str(), value.as_slice()).map_err(failed(path))?;
                self.content.toggle(key, value);
            }
        }
        writing.commit().map_err(failed(path))
    }

    /// Records the content as the commit with this number, and confirms it.
    fn number(self, path: &Path, number: u64) -> Result<FileRegistry, StoreError> {
        self.write(path, number)?;
        let commit = Commit { number, content: self.content };
        self.confirm(path, &commit, Opening::Confirmed)
    }

    /// Writes the commit number of the content.
    fn write(&self, path: &Path, number: u64) -> Result<(), StoreError> {
        let writing = self.database.begin_write().map_err(failed(path))?;
        writing
            .open_table(COMMITS)
            .map_err(failed(path))?
            .insert((), (number, &self.content.0))
            .map_err(failed(path))?;
        writing.commit().map_err(failed(path))
    }

    /// Creates the file that confirms the registry's commits.
    fn confirm(self, path: &Path, commit: &Commit, opening: Opening) -> Result<FileRegistry, StoreError> {
        let time = self.identity.modified()?;
        let confirmation = Confirmation::create(&path_of(path), commit, time)?;
        Ok(FileRegistry { database: self.database, identity: self.identity, confirmation, opening })
    }
}

fn open_file(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new().read(true).write(true).open(path).map_err(StoreError::io("open", path))
}

fn appended(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
