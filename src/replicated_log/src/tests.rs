//! Complete logs that `leveldb::writer` writes, with contents of the state store and the registry. Logs of Mesos are in
//! `tests/samples.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use protos::mesos;
use protos::mesos::internal::{Registry, registry};

use crate::leveldb::writer::{self, Edit};
use crate::messages::{
    Action, ActionType, Append, Entry, Metadata, Operation, OperationType, Record, RecordType, Status, Stored, Truncate,
};
use crate::{LogError, Options, Recovered, read};

/// Returns the record of a position that is learned, or only written.
fn action(position: u64, is_learned: bool, kind: ActionType, bytes: Option<Vec<u8>>, to: Option<u64>) -> Record {
    let action = Action {
        position: Some(position),
        promised: Some(1),
        performed: Some(1),
        learned: Some(is_learned),
        r#type: Some(kind as i32),
        nop: None,
        append: bytes.map(|bytes| Append { bytes: Some(bytes) }),
        truncate: to.map(|to| Truncate { to: Some(to) }),
    };
    Record { r#type: Some(RecordType::Action as i32), action: Some(action), metadata: None }
}

/// Returns an operation of the state store on the registry.
fn stored(kind: OperationType, value: Vec<u8>) -> Vec<u8> {
    let entry = Entry { name: Some("registry".to_owned()), uuid: Some(vec![1; 16]), value: Some(value) };
    let entry = Some(Stored { entry: Some(entry) });
    let (snapshot, diff) = match kind {
        OperationType::Diff => (None, entry),
        _ => (entry, None),
    };
    Operation { r#type: Some(kind as i32), snapshot, diff, expunge: None }.encode_to_vec()
}

/// Creates a voting replica with these records by position.
fn make(path: &Path, records: &[(u64, Record)]) -> PathBuf {
    let metadata = Metadata { status: Some(Status::Voting as i32), promised: Some(1) };
    let metadata = Record { r#type: Some(RecordType::Metadata as i32), action: None, metadata: Some(metadata) };
    let entries =
        [(0, metadata)].into_iter().chain(records.iter().map(|(position, record)| (position + 1, record.clone())));
    let entries: Vec<(String, Vec<u8>)> =
        entries.map(|(key, record)| (format!("{key:010}"), record.encode_to_vec())).collect();
    let changes: Vec<writer::Change<'_>> =
        entries.iter().map(|(key, value)| (key.as_str(), Some(value.as_slice()))).collect();
    let batches: Vec<Vec<u8>> =
        (1..).zip(&changes).map(|(sequence, change)| writer::batch(sequence, &[*change])).collect();
    fs::write(path.join("CURRENT"), "MANIFEST-000002\n").unwrap();
    fs::write(path.join("MANIFEST-000002"), writer::manifest(vec![Edit::default().number(2, 3)])).unwrap();
    fs::write(path.join("000003.log"), writer::records(&batches)).unwrap();
    path.to_owned()
}

/// Reads one log with these values, learned from position 0 on.
fn replayed(values: &[Vec<u8>]) -> Result<Recovered, LogError> {
    let directory = tempfile::tempdir().unwrap();
    let records = values.iter().map(|bytes| Some(bytes.clone()));
    let records: Vec<(u64, Record)> = (0..)
        .zip(records)
        .map(|(position, bytes)| (position, action(position, true, ActionType::Append, bytes, None)))
        .collect();
    read(&[make(directory.path(), &records)], Options::default())
}

fn refusal(values: &[Vec<u8>]) -> String {
    let error = replayed(values).unwrap_err();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn some() -> Registry {
    let weight = registry::Weight { info: mesos::WeightInfo { role: Some("r".into()), weight: 2.0 } };
    Registry { weights: vec![weight], ..Registry::default() }
}

#[test]
fn the_newest_registry_counts_whole_or_as_a_difference() {
    let snapshot = |registry: &Registry| stored(OperationType::Snapshot, registry.encode_to_vec());
    let recovered = replayed(&[snapshot(&Registry::default()), snapshot(&some())]).unwrap();
    assert_eq!((recovered.registry, recovered.written_at, recovered.last), (some(), 1, 1));
    // A difference that keeps the source, and appends a capability.
    let length = some().encoded_len();
    let more = Registry {
        minimum_capabilities: vec![registry::MinimumCapability { capability: "X".to_owned() }],
        ..Registry::default()
    };
    let more = more.encode_to_vec();
    let header = [0, length, length + more.len(), 3, more.len(), length, 0, 0x80 | more.len()];
    let header: Vec<u8> = header.iter().map(|number| u8::try_from(*number).unwrap()).collect();
    let diff = [b"SVN\0".to_vec(), header, more].concat();
    let recovered = replayed(&[snapshot(&some()), stored(OperationType::Diff, diff)]).unwrap();
    assert_eq!((recovered.registry.weights, recovered.registry.minimum_capabilities.len()), (some().weights, 1));
}

#[test]
fn a_registry_that_is_not_understood_is_refused() {
    let snapshot = |value: Vec<u8>| stored(OperationType::Snapshot, value);
    // Field 100, a number.
    let unknown = [some().encode_to_vec(), vec![0xa0, 0x06, 0x01]].concat();
    let total = unknown.len();
    assert_eq!(
        refusal(&[snapshot(Vec::new()), snapshot(unknown)]),
        format!(
            "position 1 cannot be applied: 3 of the registry's {total} bytes are of fields that Mesos 1.11 does not have: \
             they would be lost"
        )
    );
    assert_eq!(refusal(&[snapshot(vec![0x0a, 0x00])]), "position 0 cannot be applied: the registry is invalid");
    assert_eq!(refusal(&[]), "no position is learned: no master has led with this log");
    let other = Entry { name: Some("other".to_owned()), uuid: Some(vec![]), value: Some(vec![]) };
    let other = Operation {
        r#type: Some(OperationType::Snapshot as i32),
        snapshot: Some(Stored { entry: Some(other) }),
        ..Operation::default()
    };
    assert_eq!(refusal(&[other.encode_to_vec()]), "there is no registry in the log, which ends at position 0");
}

#[test]
fn a_tail_that_is_not_learned_is_refused_unless_another_replica_has_learned_it() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let value = Some(stored(OperationType::Snapshot, some().encode_to_vec()));
    let records = |is_learned| {
        [
            (0, action(0, true, ActionType::Nop, None, None)),
            (1, action(1, true, ActionType::Append, Some(stored(OperationType::Snapshot, Vec::new())), None)),
            (2, action(2, is_learned, ActionType::Append, value.clone(), None)),
        ]
    };
    let one = make(one.path(), &records(false));
    let error = read(std::slice::from_ref(&one), Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("position 2 is written but not learned: the masters ended while"), "{error}");
    let two = make(two.path(), &records(true));
    let recovered = read(&[one, two], Options { quorum: Some(2), accepts_torn: false }).unwrap();
    assert_eq!((recovered.registry, recovered.last), (some(), 2));
    assert_eq!(recovered.replicas[0].last_learned, Some(1));
}

#[test]
fn a_record_of_another_position_or_without_its_value_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let refused = |records: &[(u64, Record)]| {
        let error = read(&[make(path, records)], Options::default()).unwrap_err();
        error.to_string().replace(path.to_str().unwrap(), "D")
    };
    assert_eq!(
        refused(&[(4, action(5, true, ActionType::Nop, None, None))]),
        "the replicated log 'D' is damaged at position 4: it is the action of another position"
    );
    assert_eq!(
        refused(&[(4, action(4, true, ActionType::Truncate, None, None))]),
        "the replicated log 'D' is damaged at position 4: its value is missing"
    );
    assert_eq!(
        refused(&[(4, action(4, true, ActionType::Truncate, None, Some(3)))]),
        "position 3 is missing: the log goes from position 3 to 4"
    );
}
