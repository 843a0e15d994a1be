//! Development tasks: `cargo xtask test|ci|conformance|bench|papers|dist|reproducible|site|tidy|fuzz`.
//!
//! It contains everything that a checkout needs besides cargo itself, so that a developer and CI run the same commands.
//! It does not depend on the other crates: it reads their files and runs their programs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "nothing depends on it but its reader")]
#![forbid(unsafe_code)]

mod bench;
mod conformance;
mod dist;
mod fuzz;
mod machine;
mod reproducible;
mod retry;
mod steps;
mod test;
mod tidy;
mod unified;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--no-install]      format, source rules, lints, release build, all tests; installs what the tests need
                           (--no-install: only say what is missing)
  conformance [--profile linux|unified] [TEXT...]
                           the conformance cases of tests/conformance.txt, or those whose name has a TEXT; with
                           agents that isolate their tasks, if wanted: those of agents, then (unified: in an
                           emulated machine with cgroups v2 alone, a quarter of an hour)
  ci [--no-install]        test, then conformance with both profiles
  bench [NAME...] [--FLAG...]
                           the benchmarks whose name has a NAME, printed; `frameworks`: all of the frameworks'; flags,
                           and what follows `--`, are for the benchmark, if it is only one
  papers [TEXT...]         runs the scenarios of lab/papers (or those whose name has a TEXT), and writes what came out into the
                           pages of docs/papers
  dist [--no-profile]      the release archive: fat LTO, a profile of the program's own runs, a static executor; takes an
                           hour (without the profile: a quarter)
  reproducible [executor]  builds the last commit twice, in two directories, and compares the programs; takes twice a release
                           build (executor: the executors' own program alone)
  site                     the documentation as a site, with a reference of commands and flags: target/site/html
  tidy                     the source rules alone
  fuzz [TARGET] [SECONDS]  the fuzz targets, or one, each for SECONDS (60); needs cargo-fuzz and a nightly toolchain
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("--help", arguments),
    };
    match command {
        "test" => test::run(install_wanted(rest)?),
        "ci" => {
            test::run(install_wanted(rest)?)?;
            conformance::run(&[])?;
            conformance::run(&["--profile".to_owned(), "linux".to_owned()])
        }
        "conformance" => conformance::run(rest),
        "bench" => bench::run(rest),
        "papers" => {
            let mut run =
                cargo(&["run", "--release", "--package", "cli", "--features", "lab", "--example", "papers", "--"]);
            steps::run(run.args(rest))
        }
        "dist" => dist::run(rest),
        "reproducible" => reproducible::run(rest),
        "site" => site(),
        "tidy" => tidy::run(),
        "fuzz" => fuzz::run(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("unknown command '{other}'\n\n{USAGE}"),
    }
}

/// Builds the documentation's site and checks its links.
///
/// # Errors
/// As of the program `site`.
fn site() -> Result<()> {
    let mut make = cargo(&["run", "--quiet", "--package", "site", "--"]);
    steps::run(make.arg(root()).arg(target().join("site")))
}

/// Returns whether missing programs may be installed. Every other argument is an error.
fn install_wanted(arguments: &[String]) -> Result<bool> {
    match arguments {
        [] => Ok(true),
        [flag] if flag == "--no-install" => Ok(false),
        [other, ..] => bail!("unknown argument '{other}': the only flag is --no-install"),
    }
}

/// Returns the top directory of the checkout from which `cargo` runs this program; it may be another one than that in
/// which this program was built.
fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_path_buf()
}

/// Returns the directory of cargo's build output: `CARGO_TARGET_DIR`, or `target` in the checkout.
fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Returns the path of the release binary, which the end-to-end tests and the conformance suite start.
fn binary() -> PathBuf {
    match std::env::var_os("TEPUI") {
        Some(path) => root().join(path),
        None => target().join("release/tepui"),
    }
}

/// Returns a command of the cargo that runs this program, in the checkout's top directory.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}
