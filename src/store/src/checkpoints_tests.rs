//! Tests checkpoints on a disk that returns an error at any system call, for a while or until the end of a fault.
//!
//! Invariants: written checkpoints are read back, by the same process and by the next one, however far the disk got;
//! refused changes can be written again; at the end all files are in place, and no others exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base::Time;
use rustix::io::Errno;

use super::*;
use crate::fault_injection::{fail, heal};
use crate::meta::read_meta;

fn replace(path: &str, bytes: &[u8]) -> Change {
    Change::Replace { path: path.to_owned(), bytes: bytes.to_vec() }
}

fn append(path: &str, bytes: &[u8]) -> Change {
    Change::Append { path: path.to_owned(), at: None, bytes: bytes.to_vec() }
}

fn remove(path: &str) -> Change {
    Change::Remove { path: path.to_owned() }
}

/// Returns batches of all kinds.
fn script() -> Vec<Vec<Change>> {
    let many = (0..8).map(|n| replace(&format!("many/{n}"), b"x")).collect();
    vec![
        vec![replace("a/b/info", b"one"), append("a/b/updates", b"first ")],
        vec![append("a/b/updates", b"second "), append("a/b/updates", b"third "), append("c/updates", b"c")],
        vec![Change::Directory { path: "d/e".into() }, Change::Link { path: "latest".into(), target: "/w/a".into() }],
        many,
        vec![replace("a/b/info", b"two"), Change::Link { path: "latest".into(), target: "/w/d".into() }],
        vec![append("c/updates", b"more"), remove("c"), append("c/updates", b"again")],
        vec![append("a/b/updates", b"fourth"), remove("many")],
    ]
}

/// Returns the tree after these batches.
fn model(batches: &[Vec<Change>]) -> Tree {
    let mut tree = Tree::default();
    batches.iter().flatten().for_each(|change| {
        crate::meta::apply(&mut tree, Path::new("/nowhere"), change, Time::from_epoch(Duration::ZERO))
    });
    tree
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        // Uses a directory in memory if there is one, so that no test waits for a real disk.
        let memory = Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir());
        let path =
            memory.unwrap_or_else(std::env::temp_dir).join(format!("tepui-checkpoints-{name}-{}", std::process::id()));
        let directory = Directory(path);
        directory.clear();
        directory
    }

    /// Returns the runtime directory.
    fn runtime(&self) -> PathBuf {
        self.0.with_extension("runtime")
    }

    fn open(&self) -> Result<Checkpoints, StoreError> {
        Checkpoints::open(&self.0, &self.runtime())
    }

    /// Returns the path of the second journal, if there is one.
    fn second(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.runtime()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let second = entries.next();
        assert_eq!(entries.next(), None);
        second
    }

    /// Returns all names in the directory, without the journal.
    fn names(&self) -> BTreeSet<String> {
        fn walk(root: &Path, directory: &Path, names: &mut BTreeSet<String>) {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                names.insert(entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned());
                if entry.file_type().unwrap().is_dir() {
                    walk(root, &entry.path(), names);
                }
            }
        }
        let mut names = BTreeSet::new();
        walk(&self.0, &self.0, &mut names);
        names.remove(JOURNAL);
        names
    }
}

impl Directory {
    fn clear(&self) {
        for path in [&self.0, &self.runtime()] {
            let _ = fs::remove_dir_all(path);
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Writes the batches to a disk that fails `bad` calls after `good` ones. The process that dies after batch `dies` is
/// followed by another one. Returns whether any call failed.
fn play(directory: &Directory, journal: bool, good: u32, bad: u32, error: Errno, dies: usize) -> bool {
    directory.clear();
    let case = format!("journal {journal}, {good} calls are good, {bad} bad, {error}, dies after {dies}");
    let mut checkpoints = directory.open().unwrap();
    if journal {
        checkpoints.complete_pending().unwrap();
    }
    let script = script();
    fail(good, bad, error.raw_os_error());
    let mut refused = false;
    for (index, batch) in script.iter().enumerate() {
        let mut tries = 0;
        while let Err(error) = checkpoints.write(batch) {
            assert!(error.is_transient(), "{case}: {error}");
            tries += 1;
            if tries > 4 {
                refused |= heal(bad);
            }
        }
        assert_eq!(checkpoints.read().unwrap(), model(&script[..=index]), "{case}: after batch {index}");
        if index % 3 == 2 {
            let _ = checkpoints.complete_pending();
        }
        if index == dies {
            checkpoints = directory.open().unwrap();
            assert_eq!(checkpoints.read().unwrap(), model(&script[..=index]), "{case}: opened after batch {index}");
        }
    }
    refused |= heal(bad);
    checkpoints.complete_pending().unwrap();
    assert!(checkpoints.in_journal.is_empty() && checkpoints.disk_failure().is_none(), "{case}");
    let wanted = model(&script);
    let names: BTreeSet<String> =
        wanted.files.keys().chain(wanted.links.keys()).chain(&wanted.directories).cloned().collect();
    assert_eq!(read_meta(&directory.0).unwrap(), wanted, "{case}");
    assert_eq!(directory.names(), names, "{case}");
    assert_eq!(directory.second(), None, "{case}");
    refused
}

#[test]
fn nothing_is_lost_wherever_the_disk_refuses() {
    let directory = Directory::new("refuses");
    let mut cases = 0;
    for journal in [true, false] {
        for error in [Errno::NOSPC, Errno::MFILE, Errno::IO] {
            for bad in [1, 2, 7, 10_000] {
                for good in 0.. {
                    cases += 1;
                    if !play(&directory, journal, good, bad, error, good as usize % 7) {
                        break;
                    }
                }
            }
        }
    }
    assert!(cases > 500, "{cases}");
}

#[test]
fn what_is_aside_survives_until_there_is_room_and_the_journal_is_used_again() {
    let directory = Directory::new("aside");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    for round in 0..3 {
        // Only the journal's own calls succeed, as on a full disk.
        let batch = [append("updates", format!("round {round} ").as_bytes())];
        fail(0, 1, Errno::NOSPC.raw_os_error());
        let written = checkpoints.write(&batch).unwrap();
        assert_eq!(written, Written::InJournal);
        let full = DiskFailure { why: "No space left on device".to_owned(), lacks_space: true };
        assert_eq!(checkpoints.disk_failure(), Some(&full));
        heal(1);
        assert_eq!(checkpoints.write(&[append("updates", b"and ")]).unwrap(), Written::InJournal);
        let text = |tree: Tree| String::from_utf8(tree.files["updates"].clone()).unwrap();
        let wanted: String = (0..=round).map(|n| format!("round {n} and ")).collect();
        assert_eq!(text(checkpoints.read().unwrap()), wanted);
        checkpoints.complete_pending().unwrap();
        assert_eq!(text(read_meta(&directory.0).unwrap()), wanted);
        assert!(matches!(checkpoints.write(&[replace("other", b"x")]).unwrap(), Written::InPlace));
    }
}

#[test]
fn a_journal_that_is_full_refuses_and_loses_nothing() {
    let directory = Directory::new("full");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    let (mut taken, piece) = (0, vec![b'x'; 5000]);
    fail(0, 1, Errno::NOSPC.raw_os_error());
    while (taken + 1) * 5120 < crate::journal::SIZE {
        assert!(matches!(checkpoints.write(&[append("resources/updates", &piece)]), Ok(Written::InJournal)), "{taken}");
        taken += 1;
    }
    // The journal is full, and the disk returns an error.
    fail(0, 1, Errno::NOSPC.raw_os_error());
    assert!(checkpoints.write(&[append("resources/updates", &piece)]).unwrap_err().is_transient());
    heal(1);
    // The disk has space again, so two more batches are written in place, after those in the journal.
    for _ in 0..2 {
        checkpoints.write(&[append("resources/updates", &piece)]).unwrap();
        taken += 1;
    }
    assert_eq!(checkpoints.read().unwrap().files["resources/updates"].len() as u64, taken * 5000);
    checkpoints.complete_pending().unwrap();
    assert_eq!(fs::metadata(directory.0.join("resources/updates")).unwrap().len(), taken * 5000);
}

#[test]
fn what_does_not_pass_is_an_error_at_once() {
    let directory = Directory::new("stays");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    fs::write(directory.0.join("file"), b"").unwrap();
    let error = checkpoints.write(&[replace("file/below", b"x")]).unwrap_err();
    assert!(!error.is_transient(), "{error}");
}

/// Fails a write in place and one to its journal, as a read-only file system does.
fn refuse_twice() {
    fail(0, 2, Errno::ROFS.raw_os_error());
}

#[test]
fn the_second_journal_takes_what_the_first_refuses() {
    let directory = Directory::new("second");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    fail(0, 1, Errno::NOSPC.raw_os_error());
    assert_eq!(checkpoints.write(&[append("updates", b"first ")]).unwrap(), Written::InJournal);
    fail(0, 1, Errno::ROFS.raw_os_error());
    assert_eq!(checkpoints.write(&[append("updates", b"second ")]).unwrap(), Written::InJournal);
    let second = directory.second().expect("the second journal exists");
    // The first journal would accept this batch, but its records are read before those of the second one.
    heal(1);
    assert_eq!(checkpoints.write(&[append("updates", b"third ")]).unwrap(), Written::InJournal);

    // One of the calls is the one for reserved descriptors.
    refuse_twice();
    let mut checkpoints = directory.open().unwrap();
    assert_eq!(checkpoints.read().unwrap().files["updates"], b"first second third ");
    assert_eq!(directory.second().as_ref(), Some(&second));
    heal(2);
    let copy = fs::read(&second).unwrap();
    checkpoints.complete_pending().unwrap();
    assert_eq!(directory.second(), None);
    assert_eq!(read_meta(&directory.0).unwrap().files["updates"], b"first second third ");

    // A process that is killed before it deletes the second journal applies it once more.
    fs::write(&second, copy).unwrap();
    let checkpoints = directory.open().unwrap();
    assert_eq!(checkpoints.read().unwrap().files["updates"], b"first second third ");
    assert_eq!(directory.second(), None);
}

#[test]
fn reservations_are_not_written_to_the_second_journal() {
    let directory = Directory::new("reservations");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    refuse_twice();
    assert_eq!(checkpoints.write(&[append("updates", b"one ")]).unwrap(), Written::InJournal);
    fail(0, 1, Errno::ROFS.raw_os_error());
    let error = checkpoints.write(&[replace("resources/resources.info", b"x")]).unwrap_err();
    assert!(error.is_transient(), "{error}");
    heal(1);
    assert_eq!(checkpoints.write(&[replace("resources/resources.info", b"x")]).unwrap(), Written::InPlace);
    assert_eq!(directory.second(), None);
    assert_eq!(read_meta(&directory.0).unwrap().files["updates"], b"one ");
}

#[test]
fn a_new_meta_directory_does_not_read_the_second_journal_of_an_old_one() {
    let directory = Directory::new("renewed");
    let mut checkpoints = directory.open().unwrap();
    checkpoints.complete_pending().unwrap();
    refuse_twice();
    assert_eq!(checkpoints.write(&[append("updates", b"old ")]).unwrap(), Written::InJournal);
    heal(2);
    assert!(directory.second().is_some());
    drop(checkpoints);
    fs::remove_dir_all(&directory.0).unwrap();
    for _ in 0..2 {
        let mut checkpoints = directory.open().unwrap();
        assert_eq!(checkpoints.read().unwrap(), Tree::default());
        checkpoints.complete_pending().unwrap();
    }
}
