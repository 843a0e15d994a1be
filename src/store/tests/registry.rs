//! Tests the registry over restarts, in a file and in memory; and a file that is not a registry.

use std::fs;
use std::path::PathBuf;

use protos::mesos::internal::{Registry, registry};
use protos::mesos::{self, SlaveId, TimeInfo};
use store::{FileRegistry, MemoryRegistry, RegistryStore, StoreError, Update};

/// A path for one test, which is deleted when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(std::env::temp_dir().join(format!("tepui-registry-{}-{name}", std::process::id())))
    }

    fn open(&self) -> Result<FileRegistry, StoreError> {
        FileRegistry::open(&self.0.join("registry"), None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn id(text: &str) -> SlaveId {
    SlaveId { value: text.into() }
}

fn agent(text: &str) -> registry::Slave {
    let info = mesos::SlaveInfo { hostname: format!("host-{text}"), id: Some(id(text)), ..Default::default() };
    registry::Slave { info, drain_info: None, deactivated: None }
}

fn full() -> Registry {
    let time = TimeInfo { nanoseconds: 7 };
    let machine = mesos::MachineInfo {
        id: mesos::MachineId { hostname: Some("h".into()), ip: Some("10.0.0.1".into()) },
        ..Default::default()
    };
    let weight = mesos::WeightInfo { weight: 2.0, role: Some("dev/a".into()) };
    Registry {
        slaves: Some(registry::Slaves { slaves: vec![agent("S1"), agent("S2")] }),
        unreachable: Some(registry::UnreachableSlaves {
            slaves: vec![registry::UnreachableSlave {
                id: id("S3"),
                timestamp: time,
                drain_info: None,
                deactivated: None,
            }],
        }),
        gone: Some(registry::GoneSlaves { slaves: vec![registry::GoneSlave { id: id("S4"), timestamp: time }] }),
        machines: Some(registry::Machines { machines: vec![registry::Machine { info: machine }] }),
        weights: vec![registry::Weight { info: weight }],
        minimum_capabilities: vec![registry::MinimumCapability { capability: "AGENT_DRAINING".into() }],
        ..Registry::default()
    }
}

#[test]
fn a_registry_comes_back_whole() {
    let place = Place::new("whole");
    place.open().unwrap().save(&full()).unwrap();
    assert_eq!(place.open().unwrap().load().unwrap(), full());
    let mut memory = MemoryRegistry::default();
    memory.save(&full()).unwrap();
    assert_eq!(memory.load().unwrap(), full());
}

#[test]
fn changes_are_made_one_by_one() {
    let place = Place::new("changes");
    let mut file = place.open().unwrap();
    assert_eq!(file.load().unwrap(), Registry::default());
    file.commit(&[Update::agent(&agent("S1")), Update::agent(&agent("S2"))]).unwrap();
    let gone = registry::GoneSlave { id: id("S1"), timestamp: TimeInfo { nanoseconds: 1 } };
    file.commit(&[Update::no_agent(&id("S1")), Update::agent_gone(&gone)]).unwrap();
    drop(file);
    let registry = place.open().unwrap().load().unwrap();
    assert_eq!(registry.slaves.unwrap().slaves, [agent("S2")]);
    assert_eq!(registry.gone.unwrap().slaves, [gone]);
}

#[test]
fn saving_removes_what_is_not_wanted() {
    let place = Place::new("saving");
    let mut file = place.open().unwrap();
    file.save(&full()).unwrap();
    let mut less = full();
    less.slaves.as_mut().unwrap().slaves.remove(0);
    less.weights.clear();
    file.save(&less).unwrap();
    assert_eq!(file.load().unwrap(), less);
}

#[test]
fn a_second_process_or_a_foreign_file_is_refused() {
    let place = Place::new("refused");
    let first = place.open().unwrap();
    assert!(matches!(place.open(), Err(StoreError::Registry { .. })));
    drop(first);
    fs::write(place.0.join("registry"), b"this is not a registry, and long enough to have a header of some kind")
        .unwrap();
    assert!(matches!(place.open(), Err(StoreError::Lost(_))));
}

#[test]
fn a_copy_taken_while_open_is_recovered() {
    let place = Place::new("copy");
    let mut file = place.open().unwrap();
    file.save(&full()).unwrap();
    let copy = Place::new("copy-of");
    fs::create_dir_all(&copy.0).unwrap();
    for name in ["registry", "registry.commits"] {
        fs::copy(place.0.join(name), copy.0.join(name)).unwrap();
    }
    assert_eq!(copy.open().unwrap().load().unwrap(), full());
}

#[test]
fn an_entry_whose_value_is_anothers_is_damaged() {
    let (first, second) = (Update::agent(&agent("S1")), Update::agent(&agent("S2")));
    let place = std::path::Path::new("here");
    for value in [second.value().unwrap(), b"", b"\xff"] {
        let error = store::registry_of(place, [(first.key(), value)]).unwrap_err();
        assert_eq!(error.to_string(), "the registry 'here' is damaged at 'slave/S1'");
    }
    assert!(store::registry_of(place, [("master", b"".as_slice())]).is_err());
    let entries = [("of/a/later/version", b"\xff".as_slice()), (first.key(), first.value().unwrap())];
    assert_eq!(store::registry_of(place, entries).unwrap().slaves.unwrap().slaves, [agent("S1")]);
}
