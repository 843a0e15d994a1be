//! Packs the executors' own program into the agent, if the environment variable `TEPUI_EXECUTOR` names its file. `cargo
//! xtask dist` sets it to a small static program; without it an agent runs executors from its own program.
//!
//! It compiles nothing.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TEPUI_EXECUTOR");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?);
    let packed = File::create(out.join("tepui-executor.z"))?;
    match std::env::var_os("TEPUI_EXECUTOR").filter(|path| !path.is_empty()) {
        Some(program) => {
            println!("cargo::rerun-if-changed={}", Path::new(&program).display());
            let mut packed = ZlibEncoder::new(packed, Compression::best());
            io::copy(&mut File::open(program)?, &mut packed)?;
            packed.finish().map(drop)
        }
        None => Ok(()),
    }
}
