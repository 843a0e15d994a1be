//! Tests registries that are created as a whole, and registries that are read without a change.

use std::fs;
use std::path::PathBuf;

use protos::mesos;
use protos::mesos::internal::{Registry, registry};
use store::{FileRegistry, Opening, RegistryStore, StoreError, Update};

/// A directory for one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("tepui-registry-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn registry(&self) -> PathBuf {
        self.0.join(FileRegistry::NAME)
    }

    fn commits(&self) -> PathBuf {
        self.0.join("registry.redb.commits")
    }

    /// Returns the names and the content of all files.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn weight(role: &str) -> registry::Weight {
    registry::Weight { info: mesos::WeightInfo { role: Some(role.into()), weight: 2.0 } }
}

fn some() -> Registry {
    Registry { weights: ["a", "b"].map(weight).into(), ..Registry::default() }
}

#[test]
fn a_registry_is_made_as_a_whole_and_opened_as_any_other() {
    let place = Place::new("made");
    drop(FileRegistry::create(&place.registry(), &some()).unwrap());
    assert_eq!(place.files().len(), 2, "{:?}", place.files());
    let mut opened = FileRegistry::open(&place.registry(), None).unwrap();
    assert!(matches!(opened.opening(), Opening::Confirmed));
    assert_eq!(opened.load().unwrap(), some());
    opened.commit(&[Update::weight(&weight("c"))]).unwrap();
    drop(opened);
    assert_eq!(FileRegistry::open(&place.registry(), None).unwrap().load().unwrap().weights.len(), 3);
}

#[test]
fn a_crash_before_the_confirmation_leaves_the_whole_registry() {
    let place = Place::new("made-unconfirmed");
    drop(FileRegistry::create(&place.registry(), &some()).unwrap());
    fs::remove_file(place.commits()).unwrap();
    assert_eq!(FileRegistry::open(&place.registry(), None).unwrap().load().unwrap(), some());
}

#[test]
fn a_registry_is_not_made_where_one_is() {
    let place = Place::new("made-twice");
    let open = FileRegistry::create(&place.registry(), &some()).unwrap();
    let error = FileRegistry::create(&place.registry(), &some()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(open);
    let before = place.files();
    let error = FileRegistry::create(&place.registry(), &Registry::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("there is a registry at '{}'", place.registry().display()));
    fs::remove_file(place.registry()).unwrap();
    let error = FileRegistry::create(&place.registry(), &Registry::default()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "what is left of one: {error}");
    assert_eq!(place.files(), before[1..]);
}

#[test]
fn reading_changes_nothing() {
    let place = Place::new("read");
    let path = place.registry();
    assert!(matches!(FileRegistry::read(&path).unwrap_err(), StoreError::Io { .. }));
    let mut open = FileRegistry::create(&path, &some()).unwrap();
    open.commit(&[Update::weight(&weight("c"))]).unwrap();
    assert!(matches!(FileRegistry::read(&path).unwrap_err(), StoreError::InUse { .. }));
    // These are the files of a master that was killed.
    let killed = place.files();
    drop(open);
    for (path, bytes) in &killed {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(FileRegistry::read(&path).unwrap().weights.len(), 3);
    assert_eq!(place.files(), killed);
    drop(FileRegistry::open(&path, None).unwrap());
    let closed = place.files();
    assert_eq!(FileRegistry::read(&path).unwrap().weights.len(), 3);
    assert_eq!(place.files(), closed);
}

#[test]
fn a_damaged_registry_is_not_read() {
    let place = Place::new("read-damaged");
    let path = place.registry();
    let mut open = FileRegistry::create(&path, &some()).unwrap();
    drop(open);
    let copy = fs::read(&path).unwrap();
    open = FileRegistry::open(&path, None).unwrap();
    open.commit(&[Update::weight(&weight("c"))]).unwrap();
    drop(open);
    for bytes in [copy.as_slice(), &copy[..copy.len() / 2], b"", b"text"] {
        fs::write(&path, bytes).unwrap();
        let error = FileRegistry::read(&path).unwrap_err();
        assert!(matches!(error, StoreError::Lost(_)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
