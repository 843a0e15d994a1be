//! Finds files of a crate that import each other in a circle.
//!
//! It follows paths that start with `crate`, `self` or `super` to the file of their module. Two files that import each
//! other are allowed: mostly a type and the file of one of its parts. Tests and re-exports are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::sources;

/// Allowed circles that one type causes: the sources of the crate, the module of that type, and the reason.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("frameworks/binpack/src", "core::requests", "one core: calls, updates and the view of its jobs"),
    ("frameworks/quality/src", "learn::model", "a model is an enum of the algorithms, and each algorithm makes one"),
    ("frameworks/quality/src", "scheduler::entry", "the state of one job"),
    ("frameworks/video/src", "core::scheduler", "one core: its state and its steps"),
    ("protos/src", "json", "the mapping is one table that all forms of a message use"),
    ("src/agent/src", "agent", "the agent's state and the handlers that it calls"),
    ("src/agent/src", "state::executor", "an executor has containers, whose limits come from its tasks"),
    ("src/allocator/src", "allocator", "the allocator's state and the steps of an allocation run"),
    (
        "src/containerizer/src",
        "composing",
        "the containerizer starts the launcher, which reports to it through its reaper and isolators",
    ),
    (
        "src/daemon/src",
        "agent::outputs",
        "outputs answer reads with views, and views show the files that outputs attach",
    ),
    ("src/lab/src", "faults::checker", "the checker has the log, and rules for volumes write to it"),
    ("src/lab/src", "faults::plan", "a plan is a list of faults, and each kind of fault draws its own"),
    ("src/master/src", "master", "the master's state, its settings, and the inputs and outputs that name them"),
];

/// Returns the circles of three files and more that are not allowed, and allowed circles that do not exist.
///
/// # Errors
/// A source cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut crates: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in sources::files(root, "*.rs")? {
        let text = file.to_string_lossy();
        // Crates are in `src`, and have their sources in a `src` of their own.
        if let Some(at) = text.rfind("/src/") {
            let sources = PathBuf::from(&text[..at]).join("src");
            crates.entry(sources).or_default().push(file);
        }
    }
    let mut breaches = Vec::new();
    let mut used = BTreeSet::new();
    for (sources, files) in &crates {
        let name = sources.display().to_string();
        for circle in circles(&imports(root, sources, files)) {
            let reason = EXPLAINED.iter().position(|(crate_, module, _)| *crate_ == name && circle.contains(*module));
            match reason {
                Some(entry) => _ = used.insert(entry),
                None => breaches.push(format!("{name}: files import each other in a circle: {}", join(&circle))),
            }
        }
    }
    let idle = EXPLAINED.iter().enumerate().filter(|(entry, _)| !used.contains(entry));
    breaches
        .extend(idle.map(|(_, (name, module, _))| format!("{name}: no circle of {module}: remove its explanation")));
    Ok(breaches)
}

fn join(circle: &BTreeSet<String>) -> String {
    circle.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns the modules that each module of a crate imports, by the paths of both below the crate; the root is empty.
fn imports(root: &Path, sources: &Path, files: &[PathBuf]) -> BTreeMap<String, BTreeSet<String>> {
    let module = |file: &Path| {
        let inside = file.strip_prefix(sources).unwrap_or(file).with_extension("");
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let parts = match parts.split_last() {
            Some((last, rest)) if matches!(&**last, "mod" | "lib" | "main") => rest,
            _ => &parts,
        };
        parts.join("::")
    };
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    let mut imports = BTreeMap::new();
    for file in files {
        let (name, text) = (module(file), std::fs::read_to_string(root.join(file)).unwrap_or_default());
        let is_test = name.rsplit("::").next().is_some_and(|last| last.ends_with("tests"));
        let found = if is_test { BTreeSet::new() } else { targets(&name, &text, &modules) };
        imports.insert(name, found);
    }
    imports
}

/// Returns the modules of `modules` that the module `name` with this text imports.
fn targets(name: &str, text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        for start in ["crate::", "self::", "super::"] {
            for (at, _) in line.match_indices(start) {
                if line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let path = line[at..].split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next();
                let path: Vec<&str> = path.unwrap_or_default().split("::").filter(|part| !part.is_empty()).collect();
                found.extend(resolve(name, &path, modules));
            }
        }
    }
    found.remove(name);
    found
}

/// Returns the module of a path in the module `name`: the longest prefix that is a module; `None` for the root.
fn resolve(name: &str, path: &[&str], modules: &BTreeSet<String>) -> Option<String> {
    let mut base: Vec<&str> = name.split("::").filter(|part| !part.is_empty()).collect();
    for part in path {
        match *part {
            "crate" => base.clear(),
            "self" => {}
            "super" => _ = base.pop(),
            part => base.push(part),
        }
    }
    while !base.is_empty() {
        let candidate = base.join("::");
        if modules.contains(&candidate) {
            return Some(candidate);
        }
        base.pop();
    }
    None
}

/// Returns the sets of three modules and more in which every module reaches every other one.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reach(module, imports))).collect();
    let mut circles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (module, others) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|reached| reached.contains(module));
        let circle: BTreeSet<String> = others.iter().filter(back).map(|other| (*other).to_owned()).collect();
        if circle.len() > 2 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Returns every module that `module` imports, directly and indirectly.
fn reach<'a>(module: &str, imports: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![module]);
    while let Some(next) = open.pop() {
        for target in imports.get(next).into_iter().flatten() {
            if reached.insert(target.as_str()) {
                open.push(target);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let modules = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        let imports = files.iter().map(|(name, text)| ((*name).to_owned(), targets(name, text, &modules))).collect();
        circles(&imports).iter().map(join).collect()
    }

    #[test]
    fn a_circle_of_three_is_found_by_every_kind_of_path() {
        let files = [
            ("a", "use crate::b::Thing;"),
            ("b", "fn f() { super::b::inner::g(); }"),
            ("b::inner", "use super::super::a::{Other, Third};\nuse crate::d;"),
            ("d", "use std::fmt;"),
        ];
        assert_eq!(circles_of(&files), ["a, b, b::inner"]);
    }

    #[test]
    fn two_files_tests_comments_and_longer_names_are_no_circle() {
        assert!(circles_of(&[("a", "use crate::b;"), ("b", "use crate::a;")]).is_empty());
        let files = [
            ("a", "use crate::b;"),
            ("b", "use crate::c;\nuse my_crate::a;"),
            ("c", "// crate::a\n#[cfg(test)]\nmod tests {\n use crate::a; }"),
        ];
        assert!(circles_of(&files).is_empty());
    }
}
