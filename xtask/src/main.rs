//! The house work: `cargo xtask test|ci|bench|tidy`.
#![forbid(unsafe_code)]

fn main() {}
