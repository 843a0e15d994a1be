//! What a member must not forget: a file of records, each with a checksum (`records.rs`).
//!
//! The file begins with the whole content and goes on with changes; where the log is compacted, it is written anew and
//! takes the place of the former one. A record that a crash has cut off at the end was never relied on, and is left
//! out. Anything else that does not fit is damage, and an error: a member that forgets promises may break the group's.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use store::Access;

use crate::log::LogChange;
use crate::records::{RecordError, Records, Stored, Write};

/// The name of the file.
const FILE: &str = "journal";

/// A journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk refuses.
    #[error("cannot {action} '{}'", path.display())]
    Disk {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process uses it.
    #[error("'{}' is in use by another process", .0.display())]
    Locked(PathBuf),
    /// It is not a journal, or one of a later version.
    #[error("'{}' is not a journal of a group of this version of tepui", .0.display())]
    Format(PathBuf),
    /// A record has been changed.
    #[error("'{}' is damaged at byte {offset}: {rule}. Remove this master from the group, delete the directory, and add it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: usize,
        /// What does not hold.
        rule: &'static str,
    },
}

/// An open journal. No other process has it.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    file: File,
    /// Held as long as the journal is open: the journal itself is replaced.
    _lock: File,
    records: Records,
    /// Bytes at the end of the file that were left out when it was opened.
    torn: usize,
}

impl Journal {
    /// Opens the journal in a directory, and makes both if they are missing; `disk` is the number of a new one.
    ///
    /// # Errors
    /// It is in use or damaged, or the disk refuses.
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

    /// How many bytes of an interrupted write were left out at the start.
    pub fn torn(&self) -> usize {
        self.torn
    }

    /// Makes changes of the log durable. `whole` is the content with these changes; the file is written `anew` with it
    /// where more than the log has changed.
    ///
    /// # Errors
    /// The disk refuses: it is unknown what is on it, and the member must end.
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

/// Writes a new file in the place of a former one.
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

/// The content of a file, and how many of its bytes are whole records.
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
        // A new file takes the place of the old one.
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
        /// However many bytes of the end are missing, the content is that after a number of whole records.
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

        /// A changed byte before the last record is an error, and one in it leaves that record out at most.
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
        // Also where there is no other record.
        let mut bytes = Stored::new(5).file();
        *bytes.last_mut().unwrap() ^= 1;
        let error = read(Path::new("/w/journal"), &bytes).unwrap_err().to_string();
        assert!(error.starts_with("'/w/journal' is damaged at byte 8: the checksum of a record is wrong"), "{error}");
        let error = read(Path::new("/w/journal"), b"tepui-p\x02").unwrap_err().to_string();
        assert_eq!(error, "'/w/journal' is not a journal of a group of this version of tepui");
    }
}
