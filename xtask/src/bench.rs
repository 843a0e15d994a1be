//! `cargo xtask bench`: the benchmarks, each a program that prints its figures.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{binary, cargo, root, steps};

/// Runs the benchmarks whose name has `filter` in it, one after the other.
///
/// # Errors
/// A benchmark failed, or none has that name.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    let mut found = benches()?;
    found.retain(|(_, name)| filter.is_none_or(|f| name.contains(f)));
    if found.is_empty() {
        bail!("no benchmark has '{}' in its name", filter.unwrap_or_default());
    }
    // Only the benchmarks of the whole start the binary.
    if found.iter().any(|(package, _)| package == "tepui") {
        steps::run(&mut cargo(&["build", "--release", "--package", "tepui"]))?;
    }
    let mut steps = steps::Steps::default();
    for (package, name) in &found {
        let step: &'static str = name.clone().leak();
        steps.run(step, || {
            let mut command = cargo(&["bench", "--package", package, "--bench", name]);
            steps::run(command.env("TEPUI", binary()))
        });
    }
    steps.finish()
}

/// Package and name of every file in a `benches` folder, sorted.
fn benches() -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (package, folder) in crate::tidy::packages(&root())? {
        let benches = folder.join("benches");
        for path in rust_files(&benches)? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((package.clone(), name));
        }
    }
    found.sort();
    Ok(found)
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|e| e.map(|e| e.path())).collect();
    Ok(paths?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "rs")).collect())
}
