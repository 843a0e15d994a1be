//! `cargo xtask reproducible`: builds a program of the last commit twice, in two directories, and compares the bytes.
//!
//! With the commit and the toolchain of `rust-toolchain.toml` anyone can check that a program was made from them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, root, steps, target};

/// Names of the two directories, whose paths differ in length, too.
const DIRECTORIES: [&str; 2] = ["one", "another"];
/// Path that replaces those of the sources and of cargo's home in the program, whose panics name files.
const SOURCES: &str = "/tepui";
const HOME: &str = "/cargo";
/// Unit separator, by which cargo separates encoded compiler flags.
const SEPARATOR: &str = "\u{1f}";

/// Builds the release program, or that of a package, twice and compares the results. Uncommitted changes are not
/// included.
///
/// # Errors
/// A build failed, or the programs differ.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (package, program) = match arguments {
        [] => ("tepui", "tepui"),
        [package] if package == "executor" => ("executor", "tepui-executor"),
        _ => bail!("usage: cargo xtask reproducible [executor]"),
    };
    let directory = target().join("reproducible");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    let mut built = Vec::new();
    for name in DIRECTORIES {
        let path = build(&directory.join(name), package)?.join(program);
        built.push(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    let leaks = [&directory.to_string_lossy(), &*home().to_string_lossy()].map(|path| holds(&built[0], path));
    if built[0] != built[1] {
        let (length, other) = (built[0].len(), built[1].len());
        let first = built[0].iter().zip(&built[1]).position(|(one, two)| one != two).unwrap_or(length.min(other));
        bail!(
            "the programs have {length} and {other} bytes, and differ from byte {first} on, in {}",
            directory.display()
        );
    }
    println!("{program}: both builds have the same {} bytes", built[0].len());
    ensure!(leaks == [false, false], "the program names directories of its build");
    Ok(())
}

/// Copies the last commit to a directory and builds a package there. Returns the directory of its programs.
fn build(directory: &Path, package: &str) -> Result<PathBuf> {
    let sources = directory.join("sources");
    std::fs::create_dir_all(&sources).with_context(|| format!("cannot create {}", sources.display()))?;
    let mut archive = Command::new("git");
    let mut archive = archive.args(["archive", "HEAD"]).current_dir(root()).stdout(Stdio::piped()).spawn()?;
    let mut unpack = Command::new("tar");
    unpack.arg("-x").current_dir(&sources).stdin(archive.stdout.take().context("git has no output")?);
    steps::run(&mut unpack)?;
    ensure!(archive.wait()?.success(), "git archive failed");
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [remap(&sources, SOURCES), remap(&home(), HOME)].join(SEPARATOR);
    let target = directory.join("target");
    let mut build = cargo(&["build", "--release", "--locked", "--package", package, "--target-dir"]);
    build.arg(&target).current_dir(&sources).env("CARGO_ENCODED_RUSTFLAGS", flags);
    steps::run(&mut build)?;
    Ok(target.join("release"))
}

/// Returns cargo's home, which contains the sources of dependencies.
fn home() -> PathBuf {
    let default = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
