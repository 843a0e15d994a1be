//! Builds the executors' own small program, which an agent carries with it.
//!
//! An executor is started for every task. What a start costs is what the program touches, and a dynamic loader with its
//! relocations touches several times as much as the executor itself: so this one is linked statically, at fixed addresses. And
//! only a static program can run in a container whose image has no C library.
//! Cargo cannot link one program of a package in another way than the others; hence a build within the build. Where it
//! fails (a C library without its static form), agents run executors from the whole program, and the build says so.
//! It is kept packed, at half its size, and unpacked once, when an agent starts.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    for path in ["build.rs", "../executor", "../containers", "../base", "../stdio", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let program = out.join("tepui-executor.z");
    let optimised = variable("PROFILE") == "release";
    // Beside the folders of all packages, so that checks and builds share it.
    let shared = out.ancestors().nth(3).unwrap_or(&out).join("static-executor");
    let packed = build(&shared, optimised).and_then(|built| pack(&built, optimised)).unwrap_or_else(|error| {
        println!("cargo::warning=agents will run executors from the whole program: {error}");
        Vec::new()
    });
    fs::write(&program, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", program.display()));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn pack(program: &Path, well: bool) -> io::Result<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), if well { Compression::best() } else { Compression::fast() });
    packed.write_all(&fs::read(program)?)?;
    packed.finish()
}

/// Builds it; the program's file. Unoptimised it builds faster.
fn build(folder: &Path, optimised: bool) -> io::Result<PathBuf> {
    let target = variable("TARGET");
    let mut flags = vec!["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
    // Code and constants in one part, which begins where a large page does: copies of a template share it (template/hand_down.rs
    // in containers). Rust's own linker for this target knows the options.
    if target == "x86_64-unknown-linux-gnu" {
        flags.push("-Clink-arg=-Wl,--no-rosegment,-z,max-page-size=2097152");
    }
    let mut command = Command::new(variable("CARGO"));
    command
        .args(["build", "--quiet", "--locked", "--package=executor", "--bin=tepui-executor"])
        .arg(format!("--target={target}"))
        .arg("--target-dir")
        .arg(folder)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        // The unit separator is how cargo parts them.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    if optimised {
        command.arg("--release").envs(
            [("LTO", "fat"), ("CODEGEN_UNITS", "1"), ("PANIC", "abort"), ("STRIP", "symbols"), ("DEBUG", "none")]
                .map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)),
        );
    } else {
        command.envs([("CARGO_PROFILE_DEV_DEBUG", "none"), ("CARGO_PROFILE_DEV_STRIP", "symbols")]);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).replace('\n', " ")));
    }
    let profile = if optimised { "release" } else { "debug" };
    Ok(folder.join(target).join(profile).join("tepui-executor"))
}
