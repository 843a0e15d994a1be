//! `cargo xtask dist`: builds the release archive, and compares its program with that of a plain build.
//!
//! The program of the archive is built with fat LTO and with a profile of its own runs, and contains a small static
//! executor. A plain `cargo build --release` needs none of that; the archive's build takes an hour on two cores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cargo, root, steps, target};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Name of the cargo profile of the archive's build.
const PROFILE: &str = "dist";
/// Scenarios whose runs are profiled; the run of the first one is timed.
const SCENARIOS: [&str; 2] = ["xtask/dist/small.toml", "xtask/dist/large.toml"];
/// Benchmarks with real daemons that are profiled, with their options.
const BENCHMARKS: [&[&str]; 6] = [
    &["tasks", "--quick"],
    &["agent", "--quick", "--only=short"],
    &["fake_agents", "--quick"],
    &["offers", "--quick"],
    &["reads", "--quick"],
    &["failover", "--quick"],
];
/// Weights of the profiles: the demo processes video frames, whose counts would dominate all others.
const WEIGHTS: [(&str, u32); 3] = [("laboratory", 20), ("live", 60), ("demo", 1)];
/// Files of the archive besides the program.
const FILES: [&str; 7] =
    ["README.md", "CHANGELOG.md", "LICENSE", "docs", "contrib", "Dockerfile", "docker-compose.yml"];
/// Unit separator, by which cargo separates encoded compiler flags.
const SEPARATOR: &str = "\u{1f}";

/// Builds the archive. `--no-profile` omits the profiled runs, for a build in minutes.
///
/// # Errors
/// Names the argument that is invalid, or the command that failed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let profiled = match arguments {
        [] => true,
        [flag] if flag == "--no-profile" => false,
        _ => bail!("invalid arguments '{}': the only flag is --no-profile", arguments.join(" ")),
    };
    let directory = target().join("dist");
    let executor = static_executor(PROFILE, &directory)?;
    let profile = if profiled { Some(profile(&directory, &executor)?) } else { None };
    let flags =
        profile.map(|path| format!("-Cprofile-use={}{SEPARATOR}-Cllvm-args=-no-pgo-warn-mismatch", path.display()));
    let program = program(&directory, &executor, flags.as_deref().unwrap_or_default())?;
    let archive = archive(&directory, &program)?;
    package(&directory, &program)?;
    steps::run(&mut cargo(&["build", "--release", "--package", "tepui"]))?;
    report(&target().join("release/tepui"), &program, &archive)
}

/// Builds the Debian package of the program.
///
/// # Errors
/// dpkg-deb is missing, or fails.
fn package(directory: &Path, program: &Path) -> Result<()> {
    let mut build = Command::new(root().join("contrib/debian/build"));
    steps::run(build.arg(program).arg(env!("CARGO_PKG_VERSION")).arg(directory))
}

/// Builds the executors' program with a cargo profile, linked statically: it starts faster, and runs in containers
/// whose image has no C library. Returns its file, below `directory`.
///
/// # Errors
/// The build failed.
pub(crate) fn static_executor(profile: &str, directory: &Path) -> Result<PathBuf> {
    let directory = directory.join("static-executor");
    let mut build =
        cargo(&["build", "--package", "executor", "--target", TARGET, "--profile", profile, "--target-dir"]);
    let flags = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"].join(SEPARATOR);
    steps::run(build.arg(&directory).env("CARGO_ENCODED_RUSTFLAGS", flags))?;
    Ok(directory.join(TARGET).join(profile).join("tepui-executor"))
}

/// Builds the whole program with `flags` for the compiler.
fn program(directory: &Path, executor: &Path, flags: &str) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--profile", PROFILE, "--package", "tepui", "--target", TARGET, "--target-dir"]);
    build.arg(directory).env("TEPUI_EXECUTOR", executor).env("CARGO_ENCODED_RUSTFLAGS", flags);
    steps::run(&mut build)?;
    Ok(directory.join(TARGET).join(PROFILE).join("tepui"))
}

/// Runs an instrumented program in the laboratory, in the demo and in benchmarks with real daemons; returns the merged
/// profile.
fn profile(directory: &Path, executor: &Path) -> Result<PathBuf> {
    let merge = llvm_profdata()?;
    let directory = directory.join("profile");
    let raw = directory.join("raw");
    if raw.exists() {
        std::fs::remove_dir_all(&raw).with_context(|| format!("cannot remove {}", raw.display()))?;
    }
    let program = program(&directory, executor, &format!("-Cprofile-generate={}", raw.display()))?;
    let into = |kind: &str| raw.join(kind).join("%m.profraw");
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        let mut lab = laboratory(&program, scenario, &directory.join(format!("results-{number}")));
        steps::run(lab.env("LLVM_PROFILE_FILE", into("laboratory")))?;
    }
    let mut demo = Command::new(&program);
    demo.args(["demo", "--policy=quality", "--report"]).arg(directory.join("demo.html"));
    steps::run(demo.env("LLVM_PROFILE_FILE", into("demo")))?;
    for benchmark in BENCHMARKS {
        let mut run = cargo(&["bench", "--package", "tepui", "--bench", benchmark[0], "--"]);
        run.args(&benchmark[1..]).env("TEPUI", &program).env("LLVM_PROFILE_FILE", into("live"));
        steps::run(&mut run)?;
    }
    let merged = directory.join("tepui.profdata");
    let mut command = Command::new(merge);
    command.args(["merge", "-o"]).arg(&merged);
    command.args(WEIGHTS.map(|(kind, weight)| format!("--weighted-input={weight},{}", raw.join(kind).display())));
    steps::run(&mut command)?;
    Ok(merged)
}

fn laboratory(program: &Path, scenario: &str, results: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["lab", "run"]).arg(root().join(scenario)).arg("--out").arg(results);
    command
}

/// Returns the path of the compiler's program that merges profiles.
fn llvm_profdata() -> Result<PathBuf> {
    let mut ask = Command::new("rustc");
    let output = ask.args(["--print", "target-libdir"]).current_dir(root()).output().context("cannot run rustc")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let path = libraries.with_file_name("bin").join("llvm-profdata");
    if !path.is_file() {
        bail!("{} is missing: rustup component add llvm-tools, or use --no-profile", path.display());
    }
    Ok(path)
}

/// Packs program and documents into one archive.
fn archive(directory: &Path, program: &Path) -> Result<PathBuf> {
    let name = format!("tepui-{}-{TARGET}", env!("CARGO_PKG_VERSION"));
    let archive = directory.join(format!("{name}.tar.gz"));
    let into = program.parent().unwrap_or(directory);
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--gzip").arg("--file").arg(&archive).arg(format!("--transform=s,^,{name}/,"));
    tar.arg("--directory").arg(into).arg("tepui").arg("--directory").arg(root()).args(FILES);
    steps::run(&mut tar)?;
    Ok(archive)
}

/// Prints size and laboratory time of the plain program and of the archive's.
fn report(plain: &Path, dist: &Path, archive: &Path) -> Result<()> {
    println!("\n{:<8} {:>12} {:>22}", "build", "size, MB", "laboratory, seconds");
    for (name, program) in [("plain", plain), ("dist", dist)] {
        let took = shortest_run(program)?.as_secs_f64();
        println!("{name:<8} {:>12.1} {took:>22.2}", megabytes(program)?);
    }
    println!("written: {} ({:.1} MB)", archive.display(), megabytes(archive)?);
    Ok(())
}

fn megabytes(file: &Path) -> Result<f64> {
    let size = file.metadata().with_context(|| format!("cannot read {}", file.display()))?.len();
    Ok(size as f64 / 1e6)
}

/// Returns the shortest time of three runs of the first scenario.
fn shortest_run(program: &Path) -> Result<Duration> {
    let results = target().join("dist/results");
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        #[expect(clippy::disallowed_methods, reason = "the duration is what is reported")]
        let start = Instant::now();
        steps::run(&mut laboratory(program, SCENARIOS[0], &results))?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}
