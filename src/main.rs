//! A table of contents: parse, pick the role, run.
#![forbid(unsafe_code)]

fn main() {}
