//! How the program is linked: an executor runs beside every task, so that what a start touches counts.
//!
//! It generates nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Packed, the table of relocations takes some kilobytes instead of one megabyte that every start would read
    // (glibc 2.36, binutils 2.38).
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
