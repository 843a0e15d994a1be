//! `cargo xtask site`: builds a site from the pages of this repository, with a search, and a reference of all commands
//! and flags.
//!
//! The pages keep their paths, so their links to each other work in both places. It changes no page: files that a page
//! links to are copied beside it, and every link of the result is checked.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is for a person")]
#![forbid(unsafe_code)]

mod contents;
mod links;
mod reference;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

const USAGE: &str = "usage: site REPOSITORY DIRECTORY (which is replaced)";

/// Settings of the book; the rest are mdBook's defaults.
const SETTINGS: &str = r#"
[book]
title = "tepui"
description = "A cluster manager in one binary, the successor of Apache Mesos"
language = "en"
src = "pages"

[build]
build-dir = "html"
create-missing = false
use-default-preprocessors = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
smart-punctuation = false

[output.html.fold]
enable = true
level = 0

[output.html.search]
limit-results = 30
heading-split-level = 3

[output.html.print]
enable = false
"#;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let result = match arguments.as_slice() {
        [repository, directory] => build(repository, directory),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("site: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the site of `repository` in `directory`/html.
///
/// # Errors
/// A page is in no part of the contents, a link of the result is dead, or a file cannot be read or written.
fn build(repository: &Path, directory: &Path) -> Result<()> {
    let pages = directory.join("pages");
    if directory.exists() {
        // The whole directory is removed below: files that this program has not made must not be lost.
        ensure!(pages.is_dir(), "'{}' exists and is not a site", directory.display());
        std::fs::remove_dir_all(directory).with_context(|| format!("cannot replace '{}'", directory.display()))?;
    }
    copy_pages(repository, &pages)?;
    reference::write(&pages)?;
    std::fs::write(pages.join("SUMMARY.md"), contents::summary())?;

    let config: Config = SETTINGS.parse().context("invalid settings of the book")?;
    let book = MDBook::load_with_config(directory, config).context("cannot read the pages")?;
    book.build().context("cannot build the site")?;

    let html = directory.join("html");
    let (checked, dead) = links::check(&html)?;
    if !dead.is_empty() {
        bail!("{} dead links:\n{}", dead.len(), dead.join("\n"));
    }
    println!("{} pages, {checked} links: {}", contents::pages().count(), html.join("index.html").display());
    Ok(())
}

/// Copies the pages of the contents to `pages`, with all files that they may link to.
fn copy_pages(repository: &Path, pages: &Path) -> Result<()> {
    let tracked = tracked(repository)?;
    let listed: BTreeSet<PathBuf> = contents::pages().map(PathBuf::from).collect();
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    let forgotten: Vec<String> = tracked
        .iter()
        .filter(|path| is_page(path) && !listed.contains(*path))
        .map(|path| path.display().to_string())
        .collect();
    ensure!(forgotten.is_empty(), "pages without an entry in xtask/site/src/contents.rs: {}", forgotten.join(", "));

    for path in tracked.iter().filter(|path| is_page(path) || contents::is_shown(path)) {
        let to = pages.join(path);
        std::fs::create_dir_all(to.parent().unwrap_or(pages))?;
        std::fs::copy(repository.join(path), &to).with_context(|| format!("cannot copy '{}'", path.display()))?;
    }
    Ok(())
}

/// Returns the files that git tracks in `repository`.
fn tracked(repository: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git").arg("-C").arg(repository).args(["ls-files", "-z"]).output();
    let output = output.context("cannot start git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let files = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    // A file that is deleted and not committed is still in git's list.
    Ok(files.filter(|path| repository.join(path).exists()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_of_this_repository_has_no_dead_link() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let directory = std::env::temp_dir().join(format!("tepui-site-{}", std::process::id()));
        let result = build(repository, &directory);
        // A build that fails early has made no directory.
        let removed = std::fs::remove_dir_all(&directory);
        result.unwrap();
        removed.unwrap();
    }
}
