//! Tests `tepui registry`: the logs of Mesos masters become registries, and a master serves what the Mesos masters have
//! shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Daemon, Directory, call, free_port, tepui, until};

/// A log of a Mesos master, unpacked.
struct Sample {
    directory: Directory,
    /// State that the log's master has shown.
    shown: Value,
}

impl Sample {
    fn unpack(test: &str, name: &str) -> Sample {
        let directory = Directory::new(&format!("registry-{test}-{name}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/replicated_log/samples").join(name);
        let file = std::io::BufReader::new(fs::File::open(path.with_extension("tar.xz")).unwrap());
        let mesos = directory.path().join("mesos");
        tar::Archive::new(lzma_rust2::XzReader::new(file, false)).unpack(&mesos).unwrap();
        let shown = fs::read(mesos.join("registry.json")).unwrap();
        Sample { shown: sorted(serde_json::from_slice(&shown).unwrap()), directory }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("mesos/replicated_log")
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| (file.clone(), fs::read(file).unwrap())).collect()
    }

    /// Runs a command and returns its output, or its error.
    fn run(&self, words: &[&str]) -> Result<String, String> {
        run(tepui().current_dir(self.directory.path()).arg("registry").args(words))
    }

    fn import(&self) -> Result<String, String> {
        self.run(&["import", "--from=mesos", "--work_dir=work"])
    }

    fn export(&self, path: &str) -> Value {
        sorted(serde_json::from_str(&self.run(&["export", path]).unwrap()).unwrap())
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Returns a registry with its unordered lists sorted.
fn sorted(mut registry: Value) -> Value {
    let pointers = ["/weights", "/quota_configs", "/minimum_capabilities", "/slaves/slaves", "/machines/machines"];
    for pointer in pointers {
        if let Some(Value::Array(list)) = registry.pointer_mut(pointer) {
            list.sort_by_key(Value::to_string);
        }
    }
    registry
}

/// Starts a master on a work directory, and returns it with its address.
fn serve(directory: &Directory) -> (Daemon, String) {
    let (port, work) = (format!("--port={}", free_port()), format!("--work_dir={}", directory.join("work")));
    let words = ["master", "--ip=127.0.0.1", "--hostname=127.0.0.1", &port, &work].map(str::to_owned);
    let mut master = Daemon::start(&directory.path().join("master.log"), &words, &[]);
    let address = master.address().expect("the master starts");
    until("the master leads", || call(&address, "GET", "/registrar(1)/registry").is_some());
    (master, address)
}

#[test]
fn a_log_of_mesos_becomes_the_registry_of_a_master() {
    for name in ["small", "compacted"] {
        let sample = Sample::unpack("import", name);
        let before = sample.files();
        assert_eq!(sample.export("mesos"), sample.shown, "{name}");
        let printed = sample.import().unwrap();
        assert!(printed.contains("imported into 'work/registry.redb'"), "{printed}");
        assert_eq!(sample.export("work"), sample.shown, "{name}");
        let again = sample.import().unwrap_err();
        assert!(
            again.starts_with("tepui: there is a registry at 'work/registry.redb' already: name another"),
            "{again}"
        );

        let (mut master, address) = serve(&sample.directory);
        let get = |path: &str| call(&address, "GET", path).unwrap();
        let mut served = sorted(get("/registrar(1)/registry"));
        served["master"] = sample.shown["master"].clone();
        assert_eq!(served, sample.shown, "{name}");
        let infos: Vec<Value> = sample.shown["weights"].as_array().unwrap().iter().map(|w| w["info"].clone()).collect();
        let weights = sorted(json!({ "weights": get("/weights") }));
        assert_eq!(weights, sorted(json!({ "weights": infos })));
        if name == "small" {
            assert_eq!(get("/maintenance/schedule"), sample.shown["schedules"][0]);
            let quota = get("/quota");
            assert_eq!(quota["infos"][0]["role"], "eng");
            assert_eq!(quota["infos"][0]["guarantee"][0]["scalar"]["value"], 2.0);
            let agent = &sample.shown["slaves"]["slaves"][0]["info"]["id"]["value"];
            assert_eq!(&get("/slaves")["recovered_slaves"][0]["id"], agent);
        }
        let busy = sample.import().unwrap_err();
        assert!(busy.contains("is in use by a master that runs: nothing is imported into the registry"), "{busy}");
        let busy = sample.run(&["show", "work"]).unwrap_err();
        assert!(busy.contains("Ask that master: GET /registrar(1)/registry"), "{busy}");
        master.signal("-TERM");
        until("the master ends", || master.ended());
        assert_eq!(sample.files(), before, "{name}");
    }
}

#[test]
fn registries_are_shown_as_tables_and_as_json() {
    let sample = Sample::unpack("show", "small");
    let shown = sample.run(&["show", "mesos/replicated_log"]).unwrap();
    for line in [
        "the replicated log of Mesos: written at position 313, the last is 314",
        "agents                      1  1 deactivated, 1 drained",
        "weights                   152",
        "required capabilities       2  QUOTA_V2, AGENT_DRAINING",
        "e6a241f4-5053-41e2-b09e-cce03e5d9245-S0  localhost  7351  deactivated, drained",
        "eng   cpus:2     cpus:2     2.5",
        "h9       10.0.0.9  draining  2030-01-01T00:00:00Z",
    ] {
        assert!(shown.lines().any(|shown| shown.trim_end() == line), "'{line}' is not in:\n{shown}");
    }
    let json: Value = serde_json::from_str(&sample.run(&["show", "--json", "mesos"]).unwrap()).unwrap();
    assert_eq!(sorted(json), sample.shown);
    sample.run(&["import", "--from=mesos", "--work_dir=mesos"]).unwrap();
    let both = sample.run(&["show", "mesos"]).unwrap_err();
    assert!(
        both.contains("'mesos' has two registries: name 'mesos/registry.redb' or 'mesos/replicated_log'"),
        "{both}"
    );
    let none = sample.run(&["show", "."]).unwrap_err();
    assert!(
        none.contains("neither 'registry.redb' of a tepui master nor 'replicated_log' of a Mesos master"),
        "{none}"
    );
}

#[test]
fn logs_that_are_damaged_or_too_few_are_refused() {
    let sample = Sample::unpack("refused", "small");
    let refused = |words: &[&str]| {
        let error = sample.run(&[&["import", "--from=mesos", "--work_dir=work"], words].concat()).unwrap_err();
        assert!(!sample.directory.path().join("work").exists(), "{error}");
        error
    };
    let few = refused(&["--quorum=2"]);
    assert!(few.contains("1 of 1 replicas can vote, but a quorum needs 2"), "{few}");
    let file = sample.log().join("000004.log");
    let good = fs::read(&file).unwrap();
    fs::write(&file, &good[..300_000]).unwrap();
    let torn = refused(&[]);
    assert!(torn.contains("'mesos/replicated_log/000004.log' ends within a record after position 205"), "{torn}");
    let unlearned = refused(&["--accept-torn-log"]);
    assert!(unlearned.contains("position 205 is written but not learned"), "{unlearned}");
    let mut damaged = good;
    damaged[300_000] ^= 1;
    fs::write(&file, damaged).unwrap();
    let damaged = refused(&[]);
    assert!(
        damaged.contains("cannot be read after position 205: 'mesos/replicated_log/000004.log' is damaged"),
        "{damaged}"
    );
    assert!(damaged.contains("at byte 298284: the checksum does not match"), "{damaged}");
}
