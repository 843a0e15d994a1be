//! Replicated logs that Mesos 1.11 masters have written, whole and damaged (`samples/README.md`).
//!
//! Invariants, checked by proptest: with a byte changed anywhere, or a file cut off anywhere, a log is refused or gives
//! the same registry; reading changes no file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use protos::json::{Dialect, ToJson, Value};
use replicated_log::{LogError, Options, Recovered, Status};

/// A copy of a sample in a directory.
struct Sample {
    directory: tempfile::TempDir,
}

impl Sample {
    fn unpack(name: &str) -> Sample {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name).with_extension("tar.xz");
        let file = std::io::BufReader::new(fs::File::open(path).unwrap());
        let directory = tempfile::tempdir().unwrap();
        tar::Archive::new(lzma_rust2::XzReader::new(file, false)).unpack(directory.path()).unwrap();
        Sample { directory }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("replicated_log")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.log().join(name)
    }

    /// Returns the state that the master has shown.
    fn shown(&self) -> Value {
        Value::parse(&fs::read(self.directory.path().join("registry.json")).unwrap()).unwrap()
    }

    fn read(&self) -> Result<Recovered, LogError> {
        self.read_with(Options::default())
    }

    fn read_with(&self, options: Options) -> Result<Recovered, LogError> {
        replicated_log::read(&[self.log()], options)
    }

    /// Returns the error of reading the sample, with all causes.
    fn refusal(&self) -> String {
        let error = self.read().unwrap_err();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        text.replace(self.log().to_str().unwrap(), "D")
    }

    /// Returns the names and contents of all files.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.file(name)).unwrap();
        change(&mut bytes);
        fs::write(self.file(name), bytes).unwrap();
    }
}

fn json(recovered: &Recovered) -> Value {
    Value::parse(&recovered.registry.json(Dialect::V0)).unwrap()
}

#[test]
fn a_log_gives_what_its_master_has_shown() {
    for (name, written_at, last) in [("small", 313, 314), ("compacted", 5001, 5002)] {
        let sample = Sample::unpack(name);
        let recovered = sample.read().unwrap();
        assert_eq!(json(&recovered), sample.shown(), "{name}");
        assert_eq!((recovered.written_at, recovered.last), (written_at, last), "{name}");
        assert_eq!((recovered.replicas.len(), recovered.others.len()), (1, 0));
        let replica = &recovered.replicas[0];
        assert_eq!((replica.status, replica.last_learned), (Status::Voting, Some(last)));
        assert_eq!(replica.torn, []);
    }
}

#[test]
fn reading_changes_nothing() {
    for name in ["small", "compacted"] {
        let sample = Sample::unpack(name);
        let before = sample.files();
        for file in before.keys() {
            fs::set_permissions(sample.file(file), fs::Permissions::from_mode(0o444)).unwrap();
        }
        fs::set_permissions(sample.log(), fs::Permissions::from_mode(0o555)).unwrap();
        let changed = || fs::metadata(sample.log()).unwrap().modified().unwrap();
        let time = changed();
        sample.read().unwrap();
        assert_eq!((sample.files(), changed()), (before, time), "{name}");
        fs::set_permissions(sample.log(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_log_in_use_is_refused() {
    let sample = Sample::unpack("small");
    // A lock of another process, as LevelDB locks the file.
    let lock = format!(
        "import fcntl, sys\nfile = open('{}', 'r+')\nfcntl.lockf(file, fcntl.LOCK_EX)\nprint('locked', flush=True)\nsys.stdin.read()",
        sample.file("LOCK").display()
    );
    let mut process = std::process::Command::new("python3")
        .args(["-c", &lock])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.take().unwrap()), &mut line).unwrap();
    let expected = format!(
        "the replicated log 'D' cannot be read: 'D' is in use by process {}: stop that master first",
        process.id()
    );
    assert_eq!(sample.refusal(), expected);
    drop(process.stdin.take());
    process.wait().unwrap();
    sample.read().unwrap();
}

#[test]
fn replicas_are_joined_and_counted() {
    let (one, two) = (Sample::unpack("small"), Sample::unpack("small"));
    // The second replica has missed the last batches.
    let short = Options { quorum: Some(2), accepts_torn: true };
    two.change("000004.log", |bytes| bytes.truncate(bytes.len() - 9000));
    let both = [two.log(), one.log()];
    let recovered = replicated_log::read(&both, short).unwrap();
    assert_eq!((json(&recovered), recovered.last), (one.shown(), 314));
    assert!(recovered.replicas[0].last_learned < Some(314));
    let refused = |logs: &[PathBuf], options| replicated_log::read(logs, options).unwrap_err();
    assert!(matches!(refused(&[one.log()], short), LogError::NoQuorum { voting: 1, given: 1, quorum: 2, .. }));
    let twice = [one.log(), one.log().join(".")];
    assert!(matches!(refused(&twice, Options::default()), LogError::Twice { .. }));
}

#[test]
fn damage_is_refused_with_the_position_and_the_reason() {
    let sample = Sample::unpack("small");
    sample.change("000004.log", |bytes| bytes[300_000] ^= 0x10);
    assert_eq!(
        sample.refusal(),
        "the replicated log 'D' cannot be read after position 205: 'D/000004.log' is damaged at byte 298284: the \
         checksum does not match"
    );
    let sample = Sample::unpack("compacted");
    sample.change("000024.ldb", |bytes| bytes[2_000_000] ^= 1);
    assert_eq!(
        sample.refusal(),
        "the replicated log 'D' cannot be read after position 4331: 'D/000024.ldb' is damaged at byte 1997654: the \
         checksum does not match"
    );
    for (file, why) in [
        ("000022.ldb", "'D/000022.ldb' is missing, which MANIFEST-000002 names"),
        ("000023.log", "'D/000023.log' is missing, which MANIFEST-000002 names"),
        ("MANIFEST-000002", "'D/MANIFEST-000002' is missing, which CURRENT names"),
        ("CURRENT", "'D' is not a LevelDB directory: it has no file 'CURRENT'"),
    ] {
        let sample = Sample::unpack("compacted");
        fs::remove_file(sample.file(file)).unwrap();
        assert_eq!(sample.refusal(), format!("the replicated log 'D' cannot be read: {why}"));
    }
}

#[test]
fn a_log_that_ends_within_a_write_is_refused_unless_that_is_accepted() {
    let sample = Sample::unpack("small");
    sample.change("000004.log", |bytes| bytes.truncate(300_000));
    assert_eq!(
        sample.refusal(),
        "'D/000004.log' ends within a record after position 205: the 1716 bytes from byte 298284 on are an unfinished write, \
         or what follows was lost"
    );
    // LevelDB ignores the record, which said that position 205 is learned.
    let error = sample.read_with(Options { accepts_torn: true, quorum: None }).unwrap_err();
    assert!(error.to_string().starts_with("position 205 is written but not learned: the masters ended"), "{error}");
}

#[test]
fn a_replica_that_is_not_voting_is_no_quorum() {
    let sample = Sample::unpack("small");
    // All but the first record: the replica is starting.
    sample.change("000004.log", |bytes| bytes.truncate(0x28));
    assert_eq!(
        sample.refusal(),
        "0 of 1 replicas can vote, but a quorum needs 1: what the masters have written last may be in the others; 'D' is \
         starting"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_byte_never_gives_another_registry(
        file in prop::sample::select(vec!["000004.log", "CURRENT", "MANIFEST-000002"]),
        at in any::<prop::sample::Index>(),
        bits in 1..=255u8,
        accepts_torn in any::<bool>(),
    ) {
        let sample = Sample::unpack("small");
        sample.change(file, |bytes| {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        });
        if let Ok(recovered) = sample.read_with(Options { accepts_torn, quorum: None }) {
            prop_assert!(json(&recovered) == sample.shown() || accepts_torn && !recovered.replicas[0].torn.is_empty());
        }
    }

    #[test]
    fn a_log_that_is_cut_off_within_a_record_is_refused(at in any::<prop::sample::Index>()) {
        let sample = Sample::unpack("small");
        let mut length = 0;
        sample.change("000004.log", |bytes| {
            length = at.index(bytes.len());
            bytes.truncate(length);
        });
        if let Ok(recovered) = sample.read() {
            // A file that is cut off between two records does not show that there were more.
            prop_assert!(recovered.last < 314, "{}", length);
        }
    }
}
