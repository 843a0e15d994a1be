//! `cargo xtask conformance`: the black-box suite that lies beside the checkout, where there is one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{binary, root, steps};

/// Runs the cases whose name starts with one of `texts`, or those of `tests/conformance.txt`, with the release binary.
///
/// # Errors
/// The suite ended with a failed case, or the binary is not built.
pub(crate) fn run(texts: &[String]) -> Result<()> {
    let Some(suite) = suite() else {
        println!("conformance: no suite in ../shared/conformance or $TEPUI_CONFORMANCE, nothing to run");
        return Ok(());
    };
    let binary = binary();
    if !binary.exists() {
        bail!("{} is not there; build it with: cargo build --release", binary.display());
    }
    let texts = if texts.is_empty() { listed()? } else { texts.to_vec() };
    let mut command = Command::new("python3");
    command.arg(suite.join("run")).arg("--profile").arg(suite.join("profiles/tepui.json"));
    for text in &texts {
        command.arg("--only").arg(text);
    }
    steps::run(command.env("TEPUI", binary).current_dir(root()))
}

fn suite() -> Option<PathBuf> {
    let folder = match std::env::var_os("TEPUI_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => root().join("../shared/conformance"),
    };
    folder.join("run").is_file().then_some(folder)
}

/// The lines of `tests/conformance.txt` without comments.
fn listed() -> Result<Vec<String>> {
    let path = root().join("tests/conformance.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    Ok(text.lines().map(line).filter(|l| !l.is_empty()).collect())
}
