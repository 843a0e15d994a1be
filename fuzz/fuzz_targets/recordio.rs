//! Feeds arbitrary bytes to the check of the same name, which `protos/tests/corpus.rs` runs over the corpus.
#![no_main]

#[path = "../../protos/tests/support/fuzzed.rs"]
#[allow(dead_code)]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::recordio(data));
