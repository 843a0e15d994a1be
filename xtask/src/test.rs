//! `cargo xtask test`: runs all checks that must succeed before a change is published.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::retry::Failures;
use crate::{binary, cargo, dist, machine, steps, target, tidy};

/// Runs the steps, in the order in which a failure is found at the least cost.
///
/// # Errors
/// Names the steps that failed.
pub(crate) fn run(install: bool) -> Result<()> {
    let mut steps = steps::Steps::default();
    steps.run("format", || steps::run(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("source rules", tidy::run);
    let python = steps.run("programs that the tests need", || machine::prepare(install));
    steps.run("lints", || {
        steps::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
        // Checks master, agent and commands without the other features.
        let alone = ["clippy", "--package", "tepui", "--package", "cli", "--no-default-features", "--quiet"];
        steps::run(cargo(&alone).args(["--", "-D", "warnings"]))
    });
    steps.run("release binary", release_binary);
    steps.run("fault campaign", || {
        steps::run(Command::new(binary()).args(["lab", "faults", "--from", "1", "--seeds", "4000"]))
    });
    steps.run("fault campaign of masters", || {
        steps::run(Command::new(binary()).args(["lab", "faults", "--masters", "--from", "1", "--seeds", "1000"]))
    });
    steps.run("demo", || {
        let report = target().join("demo.html");
        steps::run(Command::new(binary()).args(["demo", "--report"]).arg(report))
    });
    steps.run("tests", || tests(python.as_deref()));
    steps.run("optional features", || {
        let networks = ["test", "--package", "video", "--features", "network", "--lib", "network"];
        steps::run(&mut cargo(&networks))
    });
    steps.finish()
}

/// Builds the release binary with the static executor, which the tests of containers with images need.
fn release_binary() -> Result<()> {
    let executor = dist::static_executor("release", &target())?;
    steps::run(cargo(&["build", "--release", "--package", "tepui"]).env("TEPUI_EXECUTOR", executor))
}

/// Runs all tests. End-to-end tests that fail are repeated once by themselves: they wait for real processes, with time
/// limits that a busy machine can exceed.
fn tests(python: Option<&Path>) -> Result<()> {
    let seen = Failures::default();
    let theirs = seen.clone();
    let all = &mut cargo(&["test", "--workspace", "--no-fail-fast"]);
    let result = steps::run_seen(with_programs(all, python), move |line| theirs.see(line));
    let Some(again) = result.as_ref().err().and_then(|_| seen.to_retry()) else {
        return result.with_context(|| format!("{} tests failed: {}", seen.all().len(), seen.all().join(", ")));
    };
    println!("failed, retried one at a time: {}", again.join(", "));
    let mut alone = cargo(&["test", "--package", "tepui", "--test", "end_to_end", "--", "--exact", "--test-threads=1"]);
    steps::run(with_programs(alone.args(again), python))
}

/// Passes the paths of the release binary and of the Python with the clients to the end-to-end tests.
fn with_programs<'a>(command: &'a mut Command, python: Option<&Path>) -> &'a mut Command {
    command.env("TEPUI", binary());
    if let Some(python) = python {
        command.env("TEPUI_PYTHON", python);
    }
    command
}
