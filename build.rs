//! How the program is linked: an executor runs beside every task, so that what a start touches counts.
//!
//! It generates nothing.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Packed, the table of relocations takes some kilobytes instead of one megabyte that every start would read
    // (glibc 2.36, binutils 2.38).
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Generic code comes out the same for many types: one copy is enough. Rust's own linker for this target knows the option.
    let target = std::env::var("TARGET").unwrap_or_default();
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") && target == "x86_64-unknown-linux-gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
