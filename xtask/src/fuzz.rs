//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, which need a nightly toolchain and cargo-fuzz.
//!
//! `src/fuzzed` has the checks, and replays the corpora as ordinary tests, so that earlier findings are tested without
//! this command.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{root, steps};

/// Runs one target, or all, for some seconds each.
///
/// # Errors
/// A target found a failure, or the tools are missing.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (name, seconds) = match arguments {
        [] => (None, "60"),
        [name] => (Some(name), "60"),
        [name, seconds] => (Some(name), seconds.as_str()),
        _ => bail!("usage: cargo xtask fuzz [TARGET] [SECONDS]"),
    };
    let seconds: u32 = seconds.parse().with_context(|| format!("'{seconds}' is not a number of seconds"))?;
    let mut targets = targets()?;
    if let Some(name) = name {
        if !targets.contains(name) {
            bail!("unknown fuzz target '{name}': must be one of {}", targets.join(", "));
        }
        targets = vec![name.clone()];
    }
    for target in targets {
        let limit = format!("-max_total_time={seconds}");
        let mut command = Command::new("cargo");
        // Unused code is left out, since it would be counted, and sanitizers are off: there is no unsafe code to check.
        command
            .args(["+nightly", "fuzz", "run", "-s", "none", "--strip-dead-code=true", &target, "--", &limit])
            .current_dir(root());
        steps::run(&mut command)
            .context("cargo-fuzz is installed with: rustup toolchain install nightly && cargo install cargo-fuzz")?;
    }
    Ok(())
}

/// Returns the names of the files in `fuzz/fuzz_targets`, sorted.
fn targets() -> Result<Vec<String>> {
    let directory = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") {
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
