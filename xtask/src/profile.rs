//! `cargo xtask profile`: has a released program write down where it spends its time, for the compiler (docs/decisions.md 79).
//!
//! What comes of it, `profile/tepui.profdata`, is committed, and `.cargo/rustc` hands it to the compiler. It knows no other code than
//! what runs here: so both worlds run, the laboratory's and the real one, with each framework and each of the API's forms.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, root, steps, target};

/// Worlds of the laboratory, in `profile/`.
const WORLDS: [&str; 2] = ["small", "large"];
/// Benchmarks that start real daemons, with their options.
const LIVE: [&[&str]; 6] = [
    &["tasks", "--quick"],
    &["agent", "--quick", "--only=short"],
    &["fake_agents", "--quick"],
    &["offers", "--quick"],
    &["reads", "--quick"],
    &["failover", "--quick"],
];

/// Builds the program that writes profiles, runs it, and joins what it wrote.
///
/// # Errors
/// `llvm-profdata` is missing, or something does not run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(other) = arguments.first() {
        bail!("'{other}' is not known here: cargo xtask profile takes nothing");
    }
    let merge = profdata()?;
    let folder = target().join("profile");
    let raw = folder.join("raw");
    if raw.exists() {
        std::fs::remove_dir_all(&raw).with_context(|| format!("cannot remove {}", raw.display()))?;
    }
    let mut build = cargo(&["build", "--release", "--package", "tepui", "--target-dir"]);
    steps::run(build.arg(&folder).env("TEPUI_PROFILE_INTO", &raw))?;
    let program = folder.join("release/tepui");
    for world in WORLDS {
        let mut run = Command::new(&program);
        run.args(["lab", "run"]).arg(root().join("profile").join(world).with_extension("toml"));
        steps::run(run.arg("--out").arg(folder.join(world)))?;
    }
    let mut demo = Command::new(&program);
    steps::run(demo.arg("demo").arg("--report").arg(folder.join("demo.html")))?;
    for bench in LIVE {
        let mut run = cargo(&["bench", "--package", "tepui", "--bench", bench[0], "--"]);
        // What puts the load on need not be fast, and is built sooner.
        run.env("CARGO_PROFILE_BENCH_LTO", "off").env("CARGO_PROFILE_BENCH_CODEGEN_UNITS", "16");
        steps::run(run.args(&bench[1..]).env("TEPUI", &program))?;
    }
    let joined = root().join("profile/tepui.profdata");
    steps::run(Command::new(merge).args(["merge", "--sparse", "-o"]).arg(&joined).arg(&raw))?;
    println!("written: {}; the next release build takes it", joined.display());
    Ok(())
}

/// The compiler's own program that joins profiles.
fn profdata() -> Result<PathBuf> {
    let mut ask = Command::new("rustc");
    let output = ask.args(["--print", "target-libdir"]).current_dir(root()).output().context("cannot run rustc")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let path = libraries.with_file_name("bin").join("llvm-profdata");
    if !path.is_file() {
        bail!("there is no {}; it comes with: rustup component add llvm-tools", path.display());
    }
    Ok(path)
}
