//! Runs the check of the same name with the bytes of a fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::etcd(data));
