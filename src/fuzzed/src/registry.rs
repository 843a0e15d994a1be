//! Checks registries of masters: entries, and the registry file with its commit file.

use std::path::Path;
use std::sync::LazyLock;

use protos::mesos::internal::{Registry, registry as parts};
use protos::mesos::{MasterInfo, SlaveId, WeightInfo};
use store::{FileRegistry, RegistryStore, StoreError, changes, registry_of};

use crate::files;
use crate::pieces::Pieces;

/// Bytes of a registry's file and of its commit file.
type Written = [Vec<u8>; 2];

const FILE: &str = "registry.redb";
const COMMITS: &str = "registry.redb.commits";

/// The two files of a registry, and its content after each of its commits.
struct Sample {
    written: Written,
    held: Vec<Registry>,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let directory = files::scratch();
    let path = directory.path().join(FILE);
    let mut store = FileRegistry::open(&path, None).expect("a new registry");
    let mut held = vec![Registry::default()];
    let mut registry = Registry { master: Some(parts::Master { info: MasterInfo::default() }), ..Registry::default() };
    for number in 0..3 {
        registry.weights.push(parts::Weight {
            info: WeightInfo { weight: f64::from(number), role: Some(format!("role{number}")) },
        });
        let id = SlaveId { value: format!("S{number}").into() };
        let gone = parts::GoneSlave { id, timestamp: Default::default() };
        registry.gone.get_or_insert_default().slaves.push(gone);
        store.save(&registry).expect("a commit");
        held.push(registry.clone());
    }
    drop(store);
    let read = |name: &str| std::fs::read(directory.path().join(name)).expect("a file");
    Sample { written: [read(FILE), read(COMMITS)], held }
});

/// Checks that entries make a registry that has the same entries. A file with any change is rejected, or has the
/// content after one of its last two commits.
pub fn registry(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    match pieces.byte() {
        b'f' => file(pieces),
        _ => entries(pieces),
    }
}

fn entries(mut pieces: Pieces<'_>) {
    let mut entries = Vec::new();
    while !pieces.is_empty() {
        let key = String::from_utf8_lossy(pieces.line()).into_owned();
        entries.push((key, pieces.bytes()));
    }
    let all = entries.iter().map(|(key, value)| (key.as_str(), *value));
    let Ok(registry) = registry_of(Path::new("registry"), all) else { return };
    // In the registry, entries of the same key follow each other; stores have one entry of a key.
    let written = changes(&Registry::default(), &registry);
    let again =
        registry_of(Path::new("registry"), written.iter().filter_map(|update| Some((update.key(), update.value()?))));
    let again = again.expect("what was written is read");
    assert_eq!(changes(&Registry::default(), &again), written);
}

fn file(mut pieces: Pieces<'_>) {
    let mut written = SAMPLE.written.clone();
    while !pieces.is_empty() {
        let which = pieces.byte();
        let at = (0..3).fold(0, |at, _| at << 8 | usize::from(pieces.byte()));
        let value = pieces.byte();
        let bytes = &mut written[usize::from(which & 1)];
        if bytes.is_empty() {
            continue;
        }
        let at = at % bytes.len();
        match which & 2 {
            0 => bytes[at] = value,
            _ => bytes.truncate(at),
        }
    }
    let directory = files::scratch();
    let path = directory.path().join(FILE);
    files::write(&path, &written[0]);
    files::write(&directory.path().join(COMMITS), &written[1]);
    match FileRegistry::open(&path, None) {
        Ok(mut store) => {
            let registry = store.load().expect("a registry whose files agree is read");
            assert!(SAMPLE.held.iter().rev().take(2).any(|held| same(held, &registry)), "{registry:?}");
        }
        Err(StoreError::Lost(loss)) => {
            let number = loss.number();
            drop(loss);
            let mut store = FileRegistry::open(&path, Some(number)).expect("an accepted loss");
            let _ = store.load();
        }
        Err(_) => {}
    }
}

fn same(one: &Registry, two: &Registry) -> bool {
    changes(one, two).is_empty()
}
