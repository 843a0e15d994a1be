//! The fuzz programs' corpus, replayed: every file below `fuzz/corpus/<target>` must pass the target's check.

#[path = "support/fuzzed.rs"]
#[allow(unreachable_pub, missing_docs, reason = "shared with the fuzz programs")]
mod fuzzed;

fn replay(target: &str, check: fn(&[u8])) {
    let directory = std::path::Path::new("../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 8, "{target}: {files}");
}

#[test]
fn json() {
    replay("json", fuzzed::json);
}

#[test]
fn recordio() {
    replay("recordio", fuzzed::recordio);
}

#[test]
fn binary() {
    replay("binary", fuzzed::binary);
}
