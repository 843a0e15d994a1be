//! Durable state of a member: a file of records, each with a checksum (`records.rs`).
//!
//! The file starts with the whole content, followed by changes. When the log is compacted, a new file is written and
//! replaces the former one. A record that a crash has cut off at the end was never relied on, and is left out. Any
//! other mismatch is damage, and an error: a member that forgets promises may break the group's.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use store::Access;

use crate::log::LogChange;
use crate::records::{RecordError, Records, Stored, Write};

/// Name of the file.
const FILE: &str = "journal";

/// Error of reading or writing a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation has failed.
    #[error("cannot {action} '{}'", path.display())]
    Disk {
        /// Operation that has failed.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process uses the journal.
    #[error("'{}' is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The file is not a journal, or one of a later version.
    #[error("'{}' is not a journal of a group of this version of tepui", .0.display())]
    Format(PathBuf),
    /// A record was modified.
    #[error("'{}' is damaged at byte {offset}: {rule}. Remove this master from the group, delete the directory, and add it again", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the record in bytes.
        offset: usize,
        /// Rule that the record breaks.
        rule: &'static str,
    },
}

/// An open journal, which no other process can open.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    file: File,
    /// Lock file, held as long as the journal is open. The journal itself is replaced by renaming.
    _lock: File,
    records: Records,
    /// Number of bytes at the end of the file that were left out when it was opened.
    torn: usize,
}

impl Journal {
    /// Opens the journal in a directory, and creates both if they are missing. `disk` is the number of a new one.
    ///
    /// # Errors
    /// It is in use or damaged, or a file operation fails.
    pub fn open(directory: &Path, disk: u64) -> Result<(Journal, Stored), JournalError> {
        let at = |action, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Disk { action, path, source }
        };
        store::create_private(directory).map_err(at("create the directory", directory))?;
        let path = directory.join("lock");
        let lock = store::create_file(&path, Access::Owner).map_err(at("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(JournalError::Locked(path)),
            Err(fs::TryLockError::Error(error)) => return Err(at("lock", &path)(error)),
        }
        let path = directory.join(FILE);
        let (mut stored, torn) = match fs::read(&path) {
            Ok(bytes) => {
                let (stored, length) = read(&path, &bytes)?;
                (stored, bytes.len() - length)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Stored::new(disk), 0),
            Err(error) => return Err(at("read", &path)(error)),
        };
        stored.starts += 1;
        let file = create(directory, &stored.file())?;
        Ok((Journal { directory: directory.to_owned(), file, _lock: lock, records: Records::default(), torn }, stored))
    }

    /// Returns the number of bytes of an interrupted write that were left out at the start.
    pub fn torn(&self) -> usize {
        self.torn
    }

    /// Makes changes of the log durable. `whole` returns the content with these changes; the file is written `anew`
    /// with it if more than the log has changed.
    ///
    /// # Errors
    /// A file operation fails. Then the content of the disk is unknown, and the member must exit.
    pub fn write(
        &mut self,
        anew: bool,
        changes: Vec<LogChange>,
        whole: impl FnOnce() -> Stored,
    ) -> Result<(), JournalError> {
        match self.records.next(anew, changes, whole) {
            None => Ok(()),
            Some(Write::Anew(bytes)) => {
                self.file = create(&self.directory, &bytes)?;
                Ok(())
            }
            Some(Write::Append(bytes)) => {
                let path = self.directory.join(FILE);
                let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
                written.map_err(|source| JournalError::Disk { action: "write", path, source })
            }
        }
    }
}

/// Writes a new file, which replaces the former one.
fn create(directory: &Path, bytes: &[u8]) -> Result<File, JournalError> {
    let (path, new) = (directory.join(FILE), directory.join("journal.new"));
    let at = |action, path: &Path| {
        let path = path.to_owned();
        move |source| JournalError::Disk { action, path, source }
    };
    let mut file = store::create_file(&new, Access::Owner).map_err(at("create", &new))?;
    let written = file.set_len(0).and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
    written.map_err(at("write", &new))?;
    fs::rename(&new, &path).map_err(at("replace", &path))?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at("sync", directory))?;
    Ok(file)
}

/// Returns the content of a file, and the number of its bytes that are complete records.
fn read(path: &Path, bytes: &[u8]) -> Result<(Stored, usize), JournalError> {
    let path = || path.to_owned();
    Stored::read(bytes).map_err(|error| match error {
        RecordError::Format => JournalError::Format(path()),
        RecordError::Damaged { offset, rule } => JournalError::Damaged { path: path(), offset, rule },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Claim, LogEntry};

    fn change(number: u64) -> LogChange {
        let claim = Claim { member: number, start: number, info: vec![7; 20] };
        LogChange::Append(vec![LogEntry::Lead { epoch: number, claim }])
    }

    fn written(count: u64) -> (tempfile::TempDir, Vec<Stored>) {
        let place = tempfile::tempdir().unwrap();
        let (mut journal, mut stored) = Journal::open(place.path(), 9).unwrap();
        let mut contents = vec![stored.clone()];
        for number in 1..=count {
            stored.log.apply(change(number));
            contents.push(stored.clone());
            journal.write(false, vec![change(number)], || unreachable!("nothing is compacted")).unwrap();
        }
        (place, contents)
    }

    #[test]
    fn what_is_written_is_read() {
        let (place, contents) = written(3);
        let (mut journal, mut stored) = Journal::open(place.path(), 1).unwrap();
        assert_eq!(stored.starts, 2);
        stored.starts = 1;
        assert_eq!(Some(&stored), contents.last());
        assert!(matches!(Journal::open(place.path(), 1), Err(JournalError::Locked(_))));
        // A new file replaces the old one.
        let snapshot = LogChange::Snapshot(None);
        journal.write(false, vec![snapshot], || Stored::new(5)).unwrap();
        journal.write(false, vec![change(1)], || unreachable!()).unwrap();
        drop(journal);
        let mut wanted = Stored::new(5);
        wanted.starts = 1;
        wanted.log.apply(change(1));
        assert_eq!(Journal::open(place.path(), 1).unwrap().1, wanted);
    }

    #[test]
    fn numbers_of_decided_entries_wait_for_the_next_write() {
        let (place, _) = written(1);
        let file = place.path().join(FILE);
        let (mut journal, mut stored) = Journal::open(place.path(), 1).unwrap();
        let length = fs::metadata(&file).unwrap().len();
        stored.starts += 1;
        for number in 1..100 {
            journal.write(false, vec![LogChange::Decided(number)], || unreachable!()).unwrap();
        }
        assert_eq!(fs::metadata(&file).unwrap().len(), length);
        journal.write(false, vec![change(2)], || unreachable!()).unwrap();
        drop(journal);
        [LogChange::Decided(99), change(2)].into_iter().for_each(|change| stored.log.apply(change));
        assert_eq!(Journal::open(place.path(), 1).unwrap().1, stored);
    }

    proptest! {
        /// Checks that with any number of bytes missing at the end, the content is that after a number of complete
        /// records.
        #[test]
        fn a_torn_end_is_left_out(cut in 0usize..400) {
            let (place, contents) = written(4);
            let bytes = fs::read(place.path().join(FILE)).unwrap();
            let kept = bytes.len().saturating_sub(cut);
            match read(Path::new("j"), &bytes[..kept]) {
                Ok((stored, length)) => {
                    prop_assert!(length <= kept && contents.contains(&stored));
                    fs::write(place.path().join(FILE), &bytes[..kept]).unwrap();
                    let (mut journal, again) = Journal::open(place.path(), 1).unwrap();
                    let mut wanted = Stored { starts: 2, ..stored };
                    prop_assert_eq!((&again, journal.torn()), (&wanted, kept - length));
                    journal.write(false, vec![change(7)], || unreachable!()).unwrap();
                    drop(journal);
                    wanted.starts = 3;
                    wanted.log.apply(change(7));
                    prop_assert_eq!(Journal::open(place.path(), 1).unwrap().1, wanted);
                }
                Err(JournalError::Format(_) | JournalError::Damaged { .. }) => {
                    let first = contents[0].file().len();
                    prop_assert!(kept < first);
                }
                Err(error) => panic!("{error}"),
            }
        }

        /// Checks that a modified byte before the last record is an error, and that one in the last record leaves out
        /// at most that record.
        #[test]
        fn a_changed_byte_is_noticed(at in 0usize..10_000, bit in 0u8..8) {
            let (place, contents) = written(4);
            let mut bytes = fs::read(place.path().join(FILE)).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            match read(Path::new("j"), &bytes) {
                Ok((stored, _)) => prop_assert!(contents.contains(&stored) && stored != contents[4]),
                Err(JournalError::Format(_) | JournalError::Damaged { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn damage_is_named() {
        let (place, _) = written(2);
        let mut bytes = fs::read(place.path().join(FILE)).unwrap();
        bytes[20] ^= 1;
        let error = read(Path::new("/w/journal"), &bytes).unwrap_err().to_string();
        assert!(error.starts_with("'/w/journal' is damaged at byte 8: the checksum of a record is wrong"), "{error}");
        // The same applies to the only record of a file.
        let mut bytes = Stored::new(5).file();
        *bytes.last_mut().unwrap() ^= 1;
        let error = read(Path::new("/w/journal"), &bytes).unwrap_err().to_string();
        assert!(error.starts_with("'/w/journal' is damaged at byte 8: the checksum of a record is wrong"), "{error}");
        let error = read(Path::new("/w/journal"), b"tepui-p\x02").unwrap_err().to_string();
        assert_eq!(error, "'/w/journal' is not a journal of a group of this version of tepui");
    }
}
