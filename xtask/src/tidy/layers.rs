//! Checks which crates depend on which: dependencies point downwards only, and the pure crates do no I/O.
//!
//! It reads what is linked into a program: dependencies and build-dependencies. Tests may depend on higher crates. The
//! parts of the crate `daemon` are modules, so there it reads the paths that their files name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

/// Every crate of the workspace, from the bottom up, with the crates that it may depend on.
///
/// A new crate gets its line here, above all crates that it depends on.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("stdio", &[]),
    ("scenarios", &[]),
    ("base", &[]),
    ("cores", &["base"]),
    ("protos", &["base"]),
    ("resources", &["base", "protos"]),
    ("advice", &["base", "resources"]),
    ("allocator", &["base", "protos", "resources"]),
    ("authorizer", &["protos"]),
    ("master", &["base", "cores", "protos", "resources", "allocator", "authorizer"]),
    ("agent", &["base", "cores", "protos", "resources", "authorizer"]),
    ("containers", &["base", "protos"]),
    ("executor", &["stdio", "base", "protos", "containers"]),
    ("store", &["base", "cores", "protos"]),
    ("peers", &["base", "store"]),
    ("fetcher", &["stdio", "base", "protos", "store"]),
    ("containerizer", &["base", "protos", "resources", "agent", "containers", "executor", "store", "fetcher"]),
    ("wire", &["base", "protos"]),
    ("detector", &["base", "protos", "wire"]),
    ("replicated_log", &["protos"]),
    ("plot", &[]),
    ("sdk", &["base", "protos", "resources", "wire", "store", "detector"]),
    ("jobs", &["base", "protos", "resources", "wire", "sdk"]),
    ("binpack", &["base", "protos", "resources", "advice", "wire", "sdk", "jobs"]),
    ("dag", &["base", "protos", "resources", "wire", "sdk", "jobs"]),
    ("quality", &["base", "protos", "resources", "wire", "sdk", "plot"]),
    ("video", &["base", "protos", "resources", "wire", "sdk", "quality"]),
    ("training", &["base", "protos", "resources", "wire", "sdk", "jobs", "dag", "plot"]),
    (
        "daemon",
        &[
            "stdio",
            "base",
            "cores",
            "protos",
            "resources",
            "allocator",
            "authorizer",
            "master",
            "peers",
            "agent",
            "containers",
            "containerizer",
            "wire",
            "store",
            "detector",
        ],
    ),
    (
        "lab",
        &[
            "base",
            "cores",
            "protos",
            "resources",
            "advice",
            "allocator",
            "master",
            "peers",
            "agent",
            "store",
            "wire",
            "sdk",
            "daemon",
            "plot",
        ],
    ),
    ("learning", &["base", "resources", "allocator", "dag", "video", "lab"]),
    (
        "cli",
        &[
            "stdio",
            "base",
            "protos",
            "resources",
            "advice",
            "containers",
            "executor",
            "wire",
            "store",
            "replicated_log",
            "sdk",
            "jobs",
            "binpack",
            "dag",
            "quality",
            "video",
            "daemon",
            "lab",
            "learning",
            "plot",
            "training",
        ],
    ),
    (
        "fuzzed",
        &[
            "base",
            "protos",
            "resources",
            "master",
            "peers",
            "agent",
            "executor",
            "store",
            "fetcher",
            "containerizer",
            "wire",
            "detector",
            "binpack",
            "dag",
            "quality",
            "video",
            "daemon",
            "lab",
            "learning",
        ],
    ),
    ("tepui", &["base", "executor", "fetcher", "containers", "daemon", "cli"]),
    ("xtask", &[]),
    ("site", &["cli", "daemon"]),
];

/// Crates whose code only computes: the same inputs give the same outputs, byte for byte.
const PURE: &[&str] = &[
    "base",
    "cores",
    "protos",
    "resources",
    "advice",
    "allocator",
    "authorizer",
    "master",
    "agent",
    "sdk",
    "jobs",
    "binpack",
    "dag",
    "quality",
    "training",
];

/// Dependencies that a pure crate must not have, because they do I/O, read a clock or draw random numbers.
const WORLDLY: &[&str] = &[
    "tokio",
    "tokio-util",
    "hyper",
    "hyper-util",
    "axum",
    "tower",
    "mio",
    "socket2",
    "reqwest",
    "async-trait",
    "futures",
    "futures-util",
    "rand",
    "getrandom",
    "fastrand",
    "nix",
    "rustix",
    "libc",
    "chrono",
    "jiff",
    "redb",
    "rayon",
    "crossbeam",
    "parking_lot",
];

/// Sources of the daemons: the master's and the agent's have a directory each, the rest serves both.
const DAEMONS: &str = "src/daemon/src";
/// Files that start a daemon of either kind, and so may name both.
const STARTS: &[&str] = &["lib.rs", "local.rs", "process.rs"];

/// Returns name and directory of every package of the workspace, including the root package.
///
/// # Errors
/// A Cargo.toml cannot be read.
pub(crate) fn packages(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let workspace = manifest(root)?;
    let members = workspace.get("workspace").and_then(|w| w.get("members")).and_then(Value::as_array);
    let members = members.into_iter().flatten().filter_map(Value::as_str);
    let mut packages = Vec::new();
    for directory in std::iter::once(root.to_path_buf()).chain(members.map(|m| root.join(m))) {
        let manifest = manifest(&directory)?;
        let name = manifest.get("package").and_then(|p| p.get("name")).and_then(Value::as_str);
        let name = name.with_context(|| format!("{} has no package.name", directory.join("Cargo.toml").display()))?;
        packages.push((name.to_owned(), directory));
    }
    Ok(packages)
}

/// Returns the breaches of the layers, as lines that name crate and rule.
///
/// # Errors
/// A Cargo.toml cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for (name, directory) in packages(root)? {
        let manifest = manifest(&directory)?;
        // Within the workspace, crates are named without the prefix of their packages.
        breaches.extend(check_one(name.strip_prefix("tepui-").unwrap_or(&name), &manifest));
    }
    let daemons = root.join(DAEMONS);
    for file in super::sources::files(root, "*.rs")? {
        let Ok(inside) = file.strip_prefix(DAEMONS) else { continue };
        let Ok(text) = std::fs::read_to_string(daemons.join(inside)) else { continue };
        breaches.extend(check_part(inside, &text));
    }
    Ok(breaches)
}

/// Returns the breach of a file of the daemons that names a part which it must not use, if it does.
fn check_part(inside: &Path, text: &str) -> Option<String> {
    let own = inside.iter().next()?.to_str()?;
    if STARTS.contains(&own) {
        return None;
    }
    let others = ["master", "agent"].into_iter().filter(|part| *part != own);
    let names =
        |part: &&str| text.contains(&format!("crate::{part}::")) || text.contains(&format!("use crate::{part};"));
    let part = others.into_iter().find(names)?;
    Some(format!("{DAEMONS}/{}: must not import the {part}'s daemon", inside.display()))
}

/// Reads the Cargo.toml of a directory.
pub(super) fn manifest(directory: &Path) -> Result<Table> {
    let path = directory.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
}

fn check_one(name: &str, manifest: &Table) -> Vec<String> {
    let Some((_, may_know)) = MAY_KNOW.iter().find(|(n, _)| *n == name) else {
        return vec![format!(
            "{name}: has no entry in MAY_KNOW (xtask/src/tidy/layers.rs): add its permitted dependencies"
        )];
    };
    let mut breaches = Vec::new();
    for (dependency, optional) in linked(manifest) {
        let inside = MAY_KNOW.iter().any(|(n, _)| *n == dependency);
        if inside && !may_know.contains(&dependency) {
            breaches.push(format!("{name}: must not depend on {dependency}: dependencies point to lower layers only"));
        }
        if PURE.contains(&name) && WORLDLY.contains(&dependency) && !optional {
            breaches.push(format!("{name}: is pure and must not depend on {dependency}"));
        }
    }
    breaches
}

/// Returns the linked dependencies, and whether each is optional.
fn linked(manifest: &Table) -> impl Iterator<Item = (&str, bool)> {
    let own = std::iter::once(manifest);
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(|t| t.values()).filter_map(Value::as_table);
    let tables = own.chain(platforms).flat_map(|t| [t.get("dependencies"), t.get("build-dependencies")]);
    tables.flatten().filter_map(Value::as_table).flatten().map(|(name, value)| {
        let package = value.get("package").and_then(Value::as_str).unwrap_or(name);
        (package, value.get("optional").and_then(Value::as_bool).unwrap_or(false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(name: &str, text: &str) -> Vec<String> {
        check_one(name, &toml::from_str(text).unwrap())
    }

    #[test]
    fn the_table_itself_points_down() {
        for (place, (name, may_know)) in MAY_KNOW.iter().enumerate() {
            for known in *may_know {
                assert!(MAY_KNOW[..place].iter().any(|(n, _)| n == known), "{name} -> {known}");
            }
        }
    }

    #[test]
    fn an_edge_that_points_up_is_found() {
        assert_eq!(breaches("wire", "[dependencies]\nbase.workspace = true").len(), 0);
        assert_eq!(breaches("wire", "[dependencies]\nmaster.workspace = true").len(), 1);
        assert_eq!(breaches("wire", "[target.'cfg(unix)'.dependencies]\nmaster.workspace = true").len(), 1);
        assert_eq!(breaches("wire", "[dependencies]\nm = { package = \"master\", path = \"x\" }").len(), 1);
        assert_eq!(breaches("wire", "[dev-dependencies]\nmaster.workspace = true").len(), 0);
    }

    #[test]
    fn a_pure_crate_reaches_no_world() {
        assert_eq!(breaches("master", "[dependencies]\ntokio.workspace = true").len(), 1);
        assert_eq!(breaches("sdk", "[dependencies]\ntokio = { workspace = true, optional = true }").len(), 0);
        assert_eq!(breaches("daemon", "[dependencies]\ntokio.workspace = true").len(), 0);
    }

    #[test]
    fn parts_of_the_daemons_do_not_know_each_other() {
        let is_breach = |file: &str, text: &str| check_part(Path::new(file), text).is_some();
        assert!(
            is_breach("agent/mod.rs", "use crate::master::config;") && is_breach("files.rs", "use crate::agent::Stop;")
        );
        assert!(is_breach("master/mod.rs", "use crate::agent;"));
        assert!(
            !is_breach("agent/mod.rs", "use crate::agent::config;") && !is_breach("agent/mod.rs", "use crate::driver;")
        );
        assert!(!is_breach("process.rs", "use crate::master::start;"));
    }

    #[test]
    fn a_crate_without_a_line_is_found() {
        assert_eq!(breaches("newcomer", "").len(), 1);
    }
}
