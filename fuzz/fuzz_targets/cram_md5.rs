//! Fuzz target `cram_md5`: runs the check of that name in the crate `fuzzed` with the bytes of a fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::cram_md5(data));
