//! `cargo xtask test`: all that must hold before a change is shown to others.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{binary, cargo, machine, steps, target, tidy};

/// Runs the steps in the order in which a failure is cheapest to find.
///
/// # Errors
/// Names the steps that failed.
pub(crate) fn run(install: bool) -> Result<()> {
    let mut steps = steps::Steps::default();
    steps.run("format", || steps::run(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("house rules", tidy::run);
    let python = steps.run("programs that the tests need", || machine::prepare(install));
    steps.run("lints", || {
        steps::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    });
    steps.run("release binary", || steps::run(&mut cargo(&["build", "--release", "--package", "tepui"])));
    steps.run("fault campaign", || {
        steps::run(Command::new(binary()).args(["lab", "faults", "--from", "1", "--seeds", "4000"]))
    });
    steps.run("demo", || {
        let report = target().join("demo.html");
        steps::run(Command::new(binary()).args(["demo", "--policy=both", "--report"]).arg(report))
    });
    steps.run("tests", || steps::run(with_programs(&mut cargo(&["test", "--workspace"]), python.as_deref())));
    steps.finish()
}

/// Tells the end-to-end tests where the release binary and the Python with the clients are.
fn with_programs<'a>(command: &'a mut Command, python: Option<&Path>) -> &'a mut Command {
    command.env("TEPUI", binary());
    if let Some(python) = python {
        command.env("TEPUI_PYTHON", python);
    }
    command
}
