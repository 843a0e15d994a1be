//! Checks the rules for every Rust file of the checkout: its length, its first line, and text that it must not contain.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Maximum number of lines of a file; a longer one has more than one purpose.
const LINES_MAX: usize = 800;

/// Maximum width of comments, except tables and fences: that of code in `rustfmt.toml`.
const COMMENT_WIDTH_MAX: usize = 120;

/// The only crate that may make system calls without a wrapper.
const UNSAFE_CRATE: &str = "src/containers/";

/// Texts that mark unfinished work, or leftovers of a change. They are written in parts, so that this file does not
/// contain them.
const HOLLOW: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("#[ign", "ore"),
    concat!("assert!(", "true)"),
];

/// Calls that create files and directories without a mode, so that other users could read them. `store` has functions
/// with a mode.
const NAMELESS_MODES: &[&str] = &[
    "fs::write(",
    "fs::copy(",
    "create_dir(",
    "create_dir_all",
    "File::create",
    ".create(true)",
    ".create_new(true)",
    "DirBuilder",
];

/// Files that may make such calls, and the reasons.
const MODES_EXCEPTED: &[(&str, &str)] = &[
    ("src/scenarios/", "writes into a checkout, for tests"),
    ("src/store/src/create.rs", "it is the place"),
    ("src/containers/src/cgroups/", "the kernel names the modes of control groups"),
    ("src/containerizer/src/mesos/isolators/linux/resctrl.rs", "the kernel names the modes of its groups"),
    ("src/containers/src/network.rs", "a mount hides the file"),
    ("src/executor/", "it makes directories of its task's user, in the sandbox"),
    ("src/fetcher/src/get.rs", "it makes files of the task's user, in the sandbox"),
    ("src/fetcher/src/unpack.rs", "it makes files of the task's user, in the sandbox"),
    ("src/fetcher/src/lib.rs", "it makes files of the task's user, in the sandbox"),
    ("src/fetcher/src/image/copy.rs", "copies have the modes of what an image holds"),
    ("src/lab/", "results are for people, by their umask"),
    ("src/cli/", "results are for people, by their umask"),
    ("frameworks/dag/src/task/", "it makes files of the task's user, in the sandbox and where its outputs go"),
    ("frameworks/quality/", "results are for people, by their umask"),
    ("frameworks/video/", "results are for people, by their umask"),
];

/// Returns the breaches in all Rust files that git tracks or would add, as lines that name file and rule.
///
/// # Errors
/// git does not run here, or a file cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in files(root, "*.rs")? {
        let path = root.join(&file);
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
        breaches.extend(check_one(&file.to_string_lossy(), &text));
    }
    Ok(breaches)
}

/// Returns every file that git tracks or would add and whose name matches `pattern`, by its path from `root`.
///
/// # Errors
/// git does not run here.
pub(super) fn files(root: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z", pattern];
    let output = Command::new("git").args(arguments).current_dir(root).output().context("cannot start git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    files.sort();
    Ok(files)
}

fn check_one(file: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LINES_MAX {
        breaches.push(format!("{file}: {} lines, the limit is {LINES_MAX}: split it by responsibility", lines.len()));
    }
    if !lines.first().is_some_and(|l| l.starts_with("//! ")) {
        breaches.push(format!("{file}: does not begin with `//!`: describe what it is for and what it does not do"));
    }
    for (number, line) in (1..).zip(&lines) {
        for hollow in HOLLOW.iter().filter(|h| line.contains(**h)) {
            breaches.push(format!("{file}:{number}: has `{hollow}`: finish or remove it"));
        }
    }
    breaches.extend(wide_comments(file, &lines));
    breaches.extend(nameless_modes(file, &lines));
    if is_crate_root(file) && !file.starts_with(UNSAFE_CRATE) && !text.contains("#![forbid(unsafe_code)]") {
        breaches.push(format!("{file}: a crate's root must have `#![forbid(unsafe_code)]`"));
    }
    if file.starts_with(UNSAFE_CRATE) {
        breaches.extend(unexplained_unsafe(file, &lines));
    }
    breaches
}

/// Returns the lines of comments that are too wide. rustfmt does not change comments.
fn wide_comments(file: &str, lines: &[&str]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut in_fence = false;
    for (number, line) in (1..).zip(lines) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            in_fence = false;
            continue;
        };
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        in_fence ^= text.starts_with("```");
        if line.chars().count() > COMMENT_WIDTH_MAX && !in_fence && !text.starts_with('|') {
            breaches.push(format!("{file}:{number}: wrap the comment at {COMMENT_WIDTH_MAX} columns"));
        }
    }
    breaches
}

/// Returns the calls that create files without a mode, outside tests.
fn nameless_modes(file: &str, lines: &[&str]) -> Vec<String> {
    let is_program = (file.starts_with("src/") || file.starts_with("frameworks/")) && file.contains("/src/");
    let is_test = file.contains("/testing/") || file.contains("/tests/") || file.ends_with("tests.rs");
    if !is_program || is_test || MODES_EXCEPTED.iter().any(|(place, _)| file.starts_with(place)) {
        return Vec::new();
    }
    let code = (1..).zip(lines).take_while(|(_, line)| **line != "#[cfg(test)]");
    let nameless = code.filter(|(_, line)| !line.contains(".mode(") && !line.trim_start().starts_with("//"));
    let found = nameless.filter_map(|(number, line)| {
        let call = NAMELESS_MODES.iter().find(|call| line.contains(**call))?;
        Some(format!("{file}:{number}: has `{call}`: create it with a mode, with the functions of `store`"))
    });
    found.collect()
}

fn is_crate_root(file: &str) -> bool {
    file.ends_with("src/lib.rs") || file.ends_with("src/main.rs")
}

/// Returns unsafe blocks and implementations without a comment above them that starts with `SAFETY`.
fn unexplained_unsafe(file: &str, lines: &[&str]) -> Vec<String> {
    let mut breaches = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if !code.contains("unsafe {") && !code.contains("unsafe impl") {
            continue;
        }
        let above = lines[..at].iter().rev().take_while(|l| l.trim_start().starts_with("//"));
        let explained = line.contains("SAFETY") || above.into_iter().any(|l| l.contains("SAFETY"));
        if !explained {
            breaches.push(format!("{file}:{}: an unsafe block must have a SAFETY comment above it", at + 1));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "//! For tests.\n#![forbid(unsafe_code)]\n";

    #[test]
    fn a_good_file_passes() {
        assert_eq!(check_one("src/master/src/lib.rs", GOOD), Vec::<String>::new());
    }

    #[test]
    fn length_and_first_line() {
        assert_eq!(check_one("src/x.rs", &format!("{GOOD}{}", "\n".repeat(LINES_MAX))).len(), 1);
        assert_eq!(check_one("src/x.rs", "use std::fmt;\n").len(), 1);
        assert_eq!(check_one("src/x.rs", "").len(), 1);
    }

    #[test]
    fn comments_are_wrapped() {
        let breaches = |line: &str| check_one("src/x.rs", &format!("{GOOD}{line}\n")).len();
        let wide = "x".repeat(COMMENT_WIDTH_MAX);
        assert_eq!(breaches(&format!("    /// {wide}")), 1);
        assert_eq!(breaches(&format!("// ```text\n// ```\n// {wide}")), 1);
        assert_eq!(breaches(&format!("// ```text\n// {wide}\n// ```")), 0);
        assert_eq!(breaches(&format!("// | {wide} |")), 0);
        assert_eq!(breaches(&format!("let url = \"https://{wide}\";")), 0);
        assert_eq!(breaches(&format!("// {}", &wide[3..])), 0);
    }

    #[test]
    fn hollow_places() {
        for hollow in HOLLOW {
            assert_eq!(check_one("src/x.rs", &format!("{GOOD}    {hollow})\n")).len(), 1, "{hollow}");
        }
    }

    #[test]
    fn files_have_modes() {
        let breaches = |file: &str, line: &str| check_one(file, &format!("{GOOD}{line}\n")).len();
        for call in NAMELESS_MODES {
            assert_eq!(breaches("src/daemon/src/x.rs", call), 1, "{call}");
            assert_eq!(breaches("src/daemon/src/x.rs", &format!("#[cfg(test)]\n{call}")), 0, "{call}");
            assert_eq!(breaches("src/daemon/src/x.rs", &format!("{call}.mode(0o600)")), 0, "{call}");
        }
        assert_eq!(breaches("tests/end_to_end/x.rs", "fs::write("), 0);
        assert_eq!(breaches("src/containers/src/cgroups/x.rs", "fs::write("), 0);
    }

    #[test]
    fn unsafe_only_in_its_crate_and_explained() {
        assert_eq!(check_one("src/master/src/lib.rs", "//! For tests.\n").len(), 1);
        let explained = "//! For tests.\n// SAFETY: the list is not empty.\nlet x = unsafe { f() };\n";
        assert_eq!(check_one("src/containers/src/lib.rs", explained), Vec::<String>::new());
        let bare = "//! For tests.\nlet x = unsafe { f() };\n";
        assert_eq!(check_one("src/containers/src/lib.rs", bare).len(), 1);
    }
}
