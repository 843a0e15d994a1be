//! Reader of a LevelDB directory that writes nothing, and accepts no damage.
//!
//! LevelDB writes when it opens a database, and continues without the parts that it cannot read. This reader changes
//! nothing, verifies every checksum, and stops at the first fault with its position. It has no order of keys of its
//! own, no cache and no iterators: it returns what is stored.

mod batch;
mod bytes;
mod manifest;
mod records;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use batch::Change;
use manifest::Manifest;
use records::Records;

/// Longest file that is read, in bytes. The file is held in memory while it is read.
const FILE_MAX: u64 = 1 << 30;
/// Maximum number of files of a directory that are examined.
const FILES_MAX: usize = 100_000;
/// Maximum number of bytes of keys and values that are held.
const HELD_MAX: usize = 2 << 30;

/// Reasons why a directory cannot be read as a LevelDB.
#[derive(Debug, thiserror::Error)]
pub enum LevelDbError {
    /// A system call has failed.
    #[error("cannot {action} '{}'", path.display())]
    Io {
        /// Operation that has failed.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The directory is not a LevelDB.
    #[error("'{}' is not a LevelDB directory: it has no file 'CURRENT'", .0.display())]
    NotLevelDb(PathBuf),
    /// Another process uses the database.
    #[error("'{}' is in use by {}: stop that master first", path.display(), Process(*process))]
    InUse {
        /// Path of the directory.
        path: PathBuf,
        /// Process that has it open, if the system knows it.
        process: Option<i32>,
    },
    /// A file is missing.
    #[error("'{}' is missing, which {needed_by} names", path.display())]
    Missing {
        /// Path of the file.
        path: PathBuf,
        /// Name of the file that refers to it.
        needed_by: String,
    },
    /// A file has content that LevelDB does not write.
    #[error("'{}' is damaged at byte {at}: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the fault in bytes.
        at: u64,
        /// Last key that was read before the fault.
        after: Option<Vec<u8>>,
        /// Rule that the content breaks.
        why: String,
    },
    /// A file or the database exceeds a limit of this reader.
    #[error("'{}' is too large: {why}", path.display())]
    TooLarge {
        /// Path of the file or directory.
        path: PathBuf,
        /// Limit that is exceeded.
        why: String,
    },
}

/// `Display` of the process that has a directory open.
struct Process(Option<i32>);

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(process) => write!(out, "process {process}"),
            None => write!(out, "a process of another host or container"),
        }
    }
}

/// A file that ends within a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Path of the file.
    pub path: PathBuf,
    /// Offset of the unfinished record in bytes.
    pub at: u64,
    /// Number of bytes from there to the end of the file.
    pub length: u64,
    /// Last key before the record.
    pub after: Option<Vec<u8>>,
}

/// Content of a database.
#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Files that end within a record: the manifest, and the last write-ahead log. LevelDB ignores such a record, which
    /// a process leaves that exits while it writes.
    pub(crate) torn: Vec<Torn>,
}

/// Reads a database.
///
/// # Errors
/// The database is in use, or damaged, or too large.
pub(crate) fn read(directory: &Path) -> Result<Database, LevelDbError> {
    let mut reader = Reader { directory, newest: BTreeMap::new(), held: 0, highest: 0, torn: Vec::new() };
    let name = reader.current()?;
    check_unused(directory)?;
    let manifest = reader.manifest(&name)?;
    // The newest changes are read first, so that older values of the same keys need not be held.
    reader.logs(&manifest, &name)?;
    for (number, length) in manifest.tables.iter().rev() {
        reader.table(*number, *length, &name)?;
    }
    if reader.highest < manifest.last_sequence {
        let why = format!(
            "it names change {}, but the last one in the tables and logs is {}: the end of a log is missing",
            manifest.last_sequence, reader.highest
        );
        return Err(LevelDbError::Damaged { path: directory.join(&name), at: 0, after: None, why });
    }
    let Reader { newest, torn, .. } = reader;
    let entries = newest.into_iter().filter_map(|(key, (_, value))| Some((key, value?))).collect();
    Ok(Database { entries, torn })
}

/// Checks that no process has the database open: LevelDB locks the file `LOCK`.
fn check_unused(directory: &Path) -> Result<(), LevelDbError> {
    let path = directory.join("LOCK");
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(io_error("open", &path))?,
    };
    let whole = Flock { start: 0, length: 0, pid: None, typ: FlockType::WriteLock, offset_type: FlockOffsetType::Set };
    let lock = fcntl_getlk(&file, &whole).map_err(|error| io_error("examine", &path)(error.into()))?;
    match lock {
        Some(Flock { pid, .. }) => {
            // There is no pid for another container, and a negative one for another host.
            let process = pid.map(|pid| pid.as_raw_nonzero().get()).filter(|process| *process > 0);
            Err(LevelDbError::InUse { path: directory.to_owned(), process })
        }
        None => Ok(()),
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LevelDbError {
    move |source| LevelDbError::Io { action, path: path.to_owned(), source }
}

/// State of reading a database: the newest change of each key so far.
struct Reader<'d> {
    directory: &'d Path,
    newest: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
    /// Number of bytes of keys and values in `newest`.
    held: usize,
    /// Highest number of a change so far.
    highest: u64,
    torn: Vec<Torn>,
}

impl Reader<'_> {
    /// Returns the name of the manifest.
    fn current(&self) -> Result<String, LevelDbError> {
        let path = self.directory.join("CURRENT");
        let bytes = match self.load(&path) {
            Err(LevelDbError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Err(LevelDbError::NotLevelDb(self.directory.to_owned()));
            }
            loaded => loaded?,
        };
        let text = str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
        let is_manifest = |text: &&str| {
            let number = text.strip_prefix("MANIFEST-");
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        text.filter(is_manifest).map(str::to_owned).ok_or_else(|| LevelDbError::Damaged {
            path,
            at: 0,
            after: None,
            why: "it does not name a manifest".to_owned(),
        })
    }

    fn manifest(&mut self, name: &str) -> Result<Manifest, LevelDbError> {
        let path = self.directory.join(name);
        let bytes = self.load_named(&path, "CURRENT")?;
        let mut manifest = Manifest::default();
        let fault = |at: usize, why: &str| LevelDbError::Damaged {
            path: path.clone(),
            at: at as u64,
            after: None,
            why: why.to_owned(),
        };
        let mut records = Records::new(&bytes);
        let mut count = 0;
        while let Some(record) = records.next().map_err(|found| fault(found.at, found.why))? {
            manifest.apply(&record.data).map_err(|why| fault(record.at, why))?;
            count += 1;
        }
        self.note(&path, bytes.len(), records.torn(), None);
        if count == 0 {
            return Err(fault(0, "it holds no version"));
        }
        Ok(manifest)
    }

    /// Reads the write-ahead logs that are not in tables.
    fn logs(&mut self, manifest: &Manifest, name: &str) -> Result<(), LevelDbError> {
        let mut numbers = self.numbers_of_logs()?;
        numbers.retain(|number| *number >= manifest.log || *number == manifest.previous_log);
        for needed in [manifest.log, manifest.previous_log] {
            // The newest log exists from the time on at which the manifest names it.
            if needed != 0 && !numbers.contains(&needed) {
                return Err(LevelDbError::Missing { path: self.log_path(needed), needed_by: name.to_owned() });
            }
        }
        // The first change may be in a table already, but none is missing between the two.
        let mut expected = First::AtMost(manifest.last_sequence.saturating_add(1));
        for (place, number) in numbers.iter().enumerate() {
            expected = self.log(*number, expected, place + 1 == numbers.len())?;
        }
        Ok(())
    }

    /// Returns the numbers of the existing write-ahead logs, in order.
    fn numbers_of_logs(&self) -> Result<Vec<u64>, LevelDbError> {
        let mut numbers = Vec::new();
        let listed = fs::read_dir(self.directory).map_err(io_error("list", self.directory))?;
        for (place, entry) in listed.enumerate() {
            let name = entry.map_err(io_error("list", self.directory))?.file_name();
            if place == FILES_MAX {
                return Err(self.too_large(self.directory, format!("it has more than {FILES_MAX} files")));
            }
            let digits = name.to_str().and_then(|name| name.strip_suffix(".log"));
            numbers.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn log_path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:06}.log"))
    }

    /// Reads a write-ahead log. Returns the number with which the next log must start.
    fn log(&mut self, number: u64, mut expected: First, is_last: bool) -> Result<First, LevelDbError> {
        let path = self.log_path(number);
        let bytes = self.load(&path)?;
        let mut last: Option<Vec<u8>> = None;
        let fault = |at: usize, after: &Option<Vec<u8>>, why: String| LevelDbError::Damaged {
            path: path.clone(),
            at: at as u64,
            after: after.clone(),
            why,
        };
        let mut records = Records::new(&bytes);
        while let Some(record) = records.next().map_err(|found| fault(found.at, &last, found.why.to_owned()))? {
            let batch = batch::changes(&record.data);
            let (first, changes) =
                batch.ok_or_else(|| fault(record.at, &last, "a record holds no changes".to_owned()))?;
            if let Some(before) = expected.missing(first) {
                return Err(fault(record.at, &last, format!("change {before} is followed by change {first}")));
            }
            expected = First::Exactly(first.saturating_add(changes.len() as u64));
            for change in &changes {
                self.put(change)?;
                last = Some(change.key.to_vec());
            }
        }
        if let Some(at) = records.torn().filter(|_| !is_last) {
            return Err(fault(at, &last, "it ends within a record, but there is a later log".to_owned()));
        }
        self.note(&path, bytes.len(), records.torn(), last);
        Ok(expected)
    }

    fn table(&mut self, number: u64, length: u64, name: &str) -> Result<(), LevelDbError> {
        // Tables of old versions end in `.sst`.
        let [new, old] = ["ldb", "sst"].map(|end| self.directory.join(format!("{number:06}.{end}")));
        let path = if !new.exists() && old.exists() { old } else { new };
        let bytes = self.load_named(&path, name)?;
        let damaged = |at: usize, after, why| LevelDbError::Damaged { path: path.clone(), at: at as u64, after, why };
        if bytes.len() as u64 != length {
            let why = format!("it has {} bytes, but {name} says {length}", bytes.len());
            return Err(damaged(bytes.len(), None, why));
        }
        let visited = table::read(&bytes, |change| self.put(change).map_err(Stop::Reader));
        visited.map_err(|stop| match stop {
            Stop::Fault(table::Fault { at, after, why }) => damaged(at, after, why.to_owned()),
            Stop::Reader(error) => error,
        })
    }

    /// Keeps a change if it is the newest of its key.
    fn put(&mut self, change: &Change<'_>) -> Result<(), LevelDbError> {
        self.highest = self.highest.max(change.sequence);
        let value_of = |change: &Change<'_>| change.value.map(<[u8]>::to_vec);
        let added = change.value.map_or(0, <[u8]>::len);
        match self.newest.get_mut(change.key) {
            Some((sequence, _)) if *sequence >= change.sequence => return Ok(()),
            Some(known) => {
                self.held -= known.1.as_ref().map_or(0, Vec::len);
                *known = (change.sequence, value_of(change));
            }
            None => {
                self.held += change.key.len();
                self.newest.insert(change.key.to_vec(), (change.sequence, value_of(change)));
            }
        }
        self.held += added;
        match self.held > HELD_MAX {
            true => Err(self.too_large(self.directory, format!("its entries have more than {HELD_MAX} bytes"))),
            false => Ok(()),
        }
    }

    fn note(&mut self, path: &Path, length: usize, torn: Option<usize>, after: Option<Vec<u8>>) {
        let torn = torn.map(|at| Torn { path: path.to_owned(), at: at as u64, length: (length - at) as u64, after });
        self.torn.extend(torn);
    }

    /// Reads a file that another one refers to.
    fn load_named(&self, path: &Path, needed_by: &str) -> Result<Vec<u8>, LevelDbError> {
        match self.load(path) {
            Err(LevelDbError::Io { source, path, .. }) if source.kind() == ErrorKind::NotFound => {
                Err(LevelDbError::Missing { path, needed_by: needed_by.to_owned() })
            }
            loaded => loaded,
        }
    }

    fn load(&self, path: &Path) -> Result<Vec<u8>, LevelDbError> {
        let length = fs::metadata(path).map_err(io_error("read", path))?.len();
        if length > FILE_MAX {
            return Err(self.too_large(path, format!("it has more than {FILE_MAX} bytes")));
        }
        fs::read(path).map_err(io_error("read", path))
    }

    fn too_large(&self, path: &Path, why: String) -> LevelDbError {
        LevelDbError::TooLarge { path: path.to_owned(), why }
    }
}

/// Constraint on the sequence number of the first change in a record.
#[derive(Clone, Copy)]
enum First {
    AtMost(u64),
    Exactly(u64),
}

impl First {
    /// Returns the number of the change before a gap, if there is a gap before `found`.
    fn missing(self, found: u64) -> Option<u64> {
        match self {
            First::AtMost(most) if found > most => Some(most.saturating_sub(1)),
            First::Exactly(expected) if found != expected => Some(expected.saturating_sub(1)),
            First::AtMost(_) | First::Exactly(_) => None,
        }
    }
}

/// Reasons why a table is not read to its end.
enum Stop {
    Fault(table::Fault),
    Reader(LevelDbError),
}

impl From<table::Fault> for Stop {
    fn from(fault: table::Fault) -> Stop {
        Stop::Fault(fault)
    }
}
