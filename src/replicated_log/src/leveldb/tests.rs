//! Tests of the reader with files of `writer`, complete and damaged. Databases of Mesos are in `tests/samples.rs`.
//!
//! Invariants, checked by proptest: a database that is read has exactly the content that was written; with any byte
//! changed, or any file cut off anywhere, it is refused, reported as torn, or equal.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::writer::{self, Change, Edit};
use super::{Database, LevelDbError, Torn, read};

const VALUE: &[u8] = b"value";

fn place() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Creates a directory with the manifest of these edits, without data files.
fn make(path: &Path, edits: Vec<Edit>) {
    fs::write(path.join("CURRENT"), "MANIFEST-000002\n").unwrap();
    fs::write(path.join("LOCK"), "").unwrap();
    fs::write(path.join("MANIFEST-000002"), writer::manifest(edits)).unwrap();
}

/// Creates a database with a log of these batches.
fn with_log(path: &Path, batches: &[&[Change<'_>]]) {
    make(path, vec![Edit::default().number(2, 3)]);
    let mut next = 1;
    let mut records = Vec::new();
    for changes in batches {
        records.push(writer::batch(next, changes));
        next += changes.len() as u64;
    }
    fs::write(path.join("000003.log"), writer::records(&records)).unwrap();
}

/// Creates a database with a table and a log. The log replaces one entry of the table and removes another.
fn with_table(path: &Path, kind: u8) {
    let keys: Vec<String> = (0..20).map(|number| format!("{number:010}")).collect();
    let entries: Vec<(u64, Change<'_>)> = (1..).zip(keys.iter().map(|key| (key.as_str(), Some(VALUE)))).collect();
    let table = writer::table(&entries, kind);
    make(
        path,
        vec![
            Edit::default().number(2, 3).add(1, 7),
            Edit::default().number(2, 4).number(4, 20).remove(1).add(5, table.len()),
        ],
    );
    fs::write(path.join("000005.ldb"), table).unwrap();
    let changes: [Change<'_>; 2] = [(&keys[3], Some(b"new")), (&keys[4], None)];
    fs::write(path.join("000004.log"), writer::records(&[writer::batch(21, &changes)])).unwrap();
}

fn whole(path: &Path) -> Database {
    let database = read(path).unwrap();
    assert_eq!(database.torn, []);
    database
}

fn error(path: &Path) -> String {
    read(path).unwrap_err().to_string().replace(path.to_str().unwrap(), "D")
}

fn change(file: PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(&file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_log_is_read_to_its_end() {
    let directory = place();
    let path = directory.path();
    // Records that fill a block to its last bytes, and that span three blocks.
    let (almost, long) = (vec![1; 32_768 - 7 - 12 - 1 - 2 - 3 - 4], vec![2; 70_000]);
    with_log(
        path,
        &[&[("a", Some(&almost))], &[("b", Some(&long)), ("c", Some(VALUE))], &[("c", None), ("d", Some(b""))]],
    );
    let database = whole(path);
    assert_eq!(database.entries.len(), 3);
    assert_eq!((&database.entries[b"a".as_slice()], &database.entries[b"b".as_slice()]), (&almost, &long));
    assert_eq!(database.entries[b"d".as_slice()], b"");
}

#[test]
fn tables_and_logs_are_joined_by_the_numbers_of_changes() {
    for kind in [0, 1] {
        let directory = place();
        let path = directory.path();
        with_table(path, kind);
        let database = whole(path);
        assert_eq!(database.entries.len(), 19);
        assert_eq!(database.entries[b"0000000003".as_slice()], b"new");
        assert_eq!(database.entries[b"0000000019".as_slice()], VALUE);
        fs::rename(path.join("000005.ldb"), path.join("000005.sst")).unwrap();
        assert_eq!(whole(path).entries.len(), 19, "the name of old versions");
        // An older log that is no longer needed.
        fs::write(path.join("000003.log"), b"anything").unwrap();
        assert_eq!(whole(path).entries.len(), 19);
    }
}

#[test]
fn missing_files_are_named() {
    let directory = place();
    let path = directory.path();
    assert_eq!(error(path), "'D' is not a LevelDB directory: it has no file 'CURRENT'");
    with_table(path, 0);
    for (file, expected) in [
        ("000005.ldb", "'D/000005.ldb' is missing, which MANIFEST-000002 names"),
        ("000004.log", "'D/000004.log' is missing, which MANIFEST-000002 names"),
        ("MANIFEST-000002", "'D/MANIFEST-000002' is missing, which CURRENT names"),
    ] {
        let bytes = fs::read(path.join(file)).unwrap();
        fs::remove_file(path.join(file)).unwrap();
        assert_eq!(error(path), expected);
        fs::write(path.join(file), bytes).unwrap();
    }
    fs::write(path.join("CURRENT"), "MANIFEST-../x\n").unwrap();
    assert_eq!(error(path), "'D/CURRENT' is damaged at byte 0: it does not name a manifest");
}

#[test]
fn damage_is_refused_with_its_place() {
    let directory = place();
    let path = directory.path();
    with_log(path, &[&[("a", Some(VALUE))], &[("b", Some(VALUE))]]);
    let log = path.join("000003.log");
    let good = fs::read(&log).unwrap();
    // Each record has a header of 7 bytes, 12 of the batch, and 9 of its change.
    change(log.clone(), |bytes| bytes[28 + 7] ^= 1);
    assert_eq!(error(path), "'D/000003.log' is damaged at byte 28: the checksum does not match");
    let Err(LevelDbError::Damaged { after, .. }) = read(path) else { panic!("it is refused") };
    assert_eq!(after.as_deref(), Some(b"a".as_slice()));
    fs::write(&log, &good).unwrap();
    change(log.clone(), |bytes| bytes[28 + 5] = 0xff);
    assert_eq!(error(path), "'D/000003.log' is damaged at byte 28: a fragment is longer than its block");
    fs::write(&log, &good[28..]).unwrap();
    let skipped = [good.clone(), writer::records(&[writer::batch(9, &[])])].concat();
    fs::write(&log, skipped).unwrap();
    assert_eq!(error(path), "'D/000003.log' is damaged at byte 56: change 2 is followed by change 9");

    with_table(path, 0);
    let table = fs::read(path.join("000005.ldb")).unwrap();
    change(path.join("000005.ldb"), |bytes| bytes[2] ^= 1);
    assert_eq!(error(path), "'D/000005.ldb' is damaged at byte 0: the checksum does not match");
    fs::write(path.join("000005.ldb"), &table[1..]).unwrap();
    let length = table.len();
    assert_eq!(
        error(path),
        format!(
            "'D/000005.ldb' is damaged at byte {}: it has {} bytes, but MANIFEST-000002 says {length}",
            length - 1,
            length - 1
        )
    );
    fs::write(path.join("000005.ldb"), &table).unwrap();
    change(path.join("000005.ldb"), |bytes| *bytes.last_mut().unwrap() ^= 1);
    assert_eq!(
        error(path),
        format!("'D/000005.ldb' is damaged at byte {}: its footer is not that of a table", length - 48)
    );
}

#[test]
fn a_log_that_ends_before_the_manifest_says_is_refused() {
    let directory = place();
    let path = directory.path();
    with_log(path, &[&[("a", Some(VALUE))], &[("b", Some(VALUE))]]);
    make(path, vec![Edit::default().number(2, 3).number(4, 3)]);
    assert_eq!(
        error(path),
        "'D/MANIFEST-000002' is damaged at byte 0: it names change 3, but the last one in the tables and logs is 2: the \
         end of a log is missing"
    );
}

#[test]
fn an_unfinished_record_at_the_end_is_reported() {
    let directory = place();
    let path = directory.path();
    with_log(path, &[&[("a", Some(VALUE))], &[("b", Some(VALUE))]]);
    let log = path.join("000003.log");
    let good = fs::read(&log).unwrap();
    for length in 29..good.len() {
        fs::write(&log, &good[..length]).unwrap();
        let database = read(path).unwrap();
        let torn = Torn { path: log.clone(), at: 28, length: length as u64 - 28, after: Some(b"a".to_vec()) };
        assert_eq!((database.torn, database.entries.len()), (vec![torn], 1));
    }
    // The file system has allocated space, and lost the bytes.
    fs::write(&log, [&good[..28], &[0; 50]].concat()).unwrap();
    assert_eq!(read(path).unwrap().torn[0].length, 50);
    fs::write(&log, [&good[..28], &[0; 50], &good[28..]].concat()).unwrap();
    assert_eq!(error(path), "'D/000003.log' is damaged at byte 28: there are zeros in place of a record");
    // If there is a later log, this is not an interrupted write.
    fs::write(&log, &good[..40]).unwrap();
    fs::write(path.join("000004.log"), b"").unwrap();
    assert_eq!(error(path), "'D/000003.log' is damaged at byte 28: it ends within a record, but there is a later log");
}

#[test]
fn another_order_of_keys_is_refused() {
    let directory = place();
    let path = directory.path();
    with_log(path, &[]);
    make(path, vec![Edit::default().comparator("other")]);
    assert!(error(path).ends_with("the keys are in another order than Mesos's"));
}

/// Returns the names and contents of a database's files.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<(String, Vec<u8>)> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_is_read(
        batches in prop::collection::vec(
            prop::collection::vec(("[a-e]{1,2}", prop::option::of(prop::collection::vec(any::<u8>(), 0..9000))), 1..4),
            0..20,
        ),
    ) {
        let directory = place();
        let mut expected = std::collections::BTreeMap::new();
        for (key, value) in batches.iter().flatten() {
            match value {
                Some(value) => drop(expected.insert(key.clone().into_bytes(), value.clone())),
                None => drop(expected.remove(key.as_bytes())),
            }
        }
        let batches: Vec<Vec<Change<'_>>> = batches
            .iter()
            .map(|batch| batch.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect())
            .collect();
        let batches: Vec<&[Change<'_>]> = batches.iter().map(Vec::as_slice).collect();
        with_log(directory.path(), &batches);
        prop_assert_eq!(whole(directory.path()).entries, expected);
    }

    #[test]
    fn a_changed_byte_is_found(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bits in 1..=255u8, kind in 0..2u8) {
        let directory = place();
        let path = directory.path();
        with_table(path, kind);
        let (good, files) = (whole(path).entries, files(path));
        let files: Vec<_> = files.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
        let (name, bytes) = &files[file.index(files.len())];
        change(path.join(name), |bytes| {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        });
        match read(path) {
            Ok(database) if database.torn.is_empty() => prop_assert_eq!(&database.entries, &good),
            Ok(_) | Err(_) => {}
        }
        fs::write(path.join(name), &bytes[..at.index(bytes.len())]).unwrap();
        match read(path) {
            Ok(database) if database.torn.is_empty() => {
                // Cut between two records: the first one of the manifest has only the order of keys, and the log has
                // one record.
                prop_assert!(database.entries == good || name.ends_with(".log"), "{}", name);
            }
            Ok(_) | Err(_) => {}
        }
    }
}
