//! Any text as `--resources`, `--attributes`, quantities or a role: never a panic, and what is accepted round-trips.
#![no_main]

#[path = "../../src/resources/tests/check_text/mod.rs"]
mod check_text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check_text::check_text(bytes));
