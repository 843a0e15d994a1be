//! Builds the executors' own small program, which an optimised agent carries with it.
//!
//! An executor is started for every task. What a start costs is what the program touches, and a dynamic loader with its
//! relocations touches several times as much as the executor itself: so this one is linked statically, at fixed addresses.
//! Cargo cannot link one program of a package in another way than the others; hence a build within the build. Where it
//! fails (a C library without its static form), agents run executors from the whole program, and the build says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() {
    for path in ["build.rs", "../executor", "../containers", "../base", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let program = out.join("tepui-executor");
    // Without optimisation it would be no smaller, and building it would take longer than the tests that use it.
    let built = if variable("PROFILE") == "release" { build(&out.join("executor")) } else { Ok(None) };
    let placed = match built {
        Ok(Some(built)) => fs::copy(built, &program).map(drop),
        Ok(None) => fs::write(&program, []),
        Err(error) => {
            println!("cargo::warning=agents will run executors from the whole program: {error}");
            fs::write(&program, [])
        }
    };
    placed.unwrap_or_else(|error| panic!("cannot write {}: {error}", program.display()));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// The program's file.
fn build(folder: &Path) -> io::Result<Option<PathBuf>> {
    let target = variable("TARGET");
    let output = Command::new(variable("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--package=executor", "--bin=tepui-executor"])
        .arg(format!("--target={target}"))
        .arg("--target-dir")
        .arg(folder)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        // The unit separator is how cargo parts them.
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\u{1f}-Crelocation-model=static")
        .envs(
            [("LTO", "fat"), ("CODEGEN_UNITS", "1"), ("PANIC", "abort"), ("STRIP", "symbols"), ("DEBUG", "none")]
                .map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)),
        )
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).replace('\n', " ")));
    }
    Ok(Some(folder.join(target).join("release/tepui-executor")))
}
