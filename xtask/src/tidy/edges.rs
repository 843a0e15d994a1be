//! Finds dependencies that no source of their crate names. It reads names, not types: a name in a comment counts as a
//! use.

use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::{layers, sources};

/// Packages whose library has another name.
const LIBRARIES: &[(&str, &str)] = &[("md-5", "md5")];

/// Returns the dependencies that the sources of their package do not name, as lines with package and dependency.
///
/// # Errors
/// A Cargo.toml or a source cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let packages = layers::packages(root)?;
    let files = sources::files(root, "*.rs")?;
    let mut breaches = Vec::new();
    for (name, directory) in &packages {
        let inside = directory.strip_prefix(root).context("a package outside of the checkout")?;
        let is_own = |file: &&std::path::PathBuf| {
            let nested = packages.iter().any(|(_, other)| {
                let other = other.strip_prefix(root).unwrap_or(other);
                other != inside && other.starts_with(inside) && file.starts_with(other)
            });
            file.starts_with(inside) && !nested
        };
        let mut text = String::new();
        for file in files.iter().filter(is_own) {
            // A file that is deleted and not committed is still in git's list.
            text.push_str(&std::fs::read_to_string(root.join(file)).unwrap_or_default());
        }
        let manifest = layers::manifest(directory)?;
        breaches.extend(unnamed(&manifest, &text).map(|dependency| {
            format!("{name}: depends on {dependency} but does not use it: remove the line from Cargo.toml")
        }));
    }
    Ok(breaches)
}

/// Returns the dependencies of any kind in `manifest` that `text` does not name.
fn unnamed<'a>(manifest: &'a Table, text: &str) -> impl Iterator<Item = &'a str> {
    let own = std::iter::once(manifest);
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(|t| t.values()).filter_map(Value::as_table);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let tables = own.chain(platforms).flat_map(move |table| kinds.map(|kind| table.get(kind)));
    let names = tables.flatten().filter_map(Value::as_table).flat_map(Table::keys).map(String::as_str);
    names.filter(|name| {
        let library = LIBRARIES.iter().find(|(package, _)| package == name).map_or(*name, |(_, library)| library);
        !names_crate(text, &library.replace('-', "_"))
    })
}

/// Returns whether `text` has the path `name::`, or imports `name` as a whole.
fn names_crate(text: &str, name: &str) -> bool {
    let starts_word = |at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let is_path = after.starts_with("::") || after.starts_with(';') || after.starts_with(" as ");
        is_path && starts_word(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unnamed_in(manifest: &str, text: &str) -> usize {
        unnamed(&toml::from_str(manifest).unwrap(), text).count()
    }

    #[test]
    fn dependencies_of_every_kind_are_named() {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let manifest = format!("[{kind}]\nhyper-util.workspace = true");
            assert_eq!(unnamed_in(&manifest, "use hyper_util::rt;"), 0, "{kind}");
            assert_eq!(unnamed_in(&manifest, "use hyper::rt; use my_hyper_util::x; fn hyper_util() {}"), 1, "{kind}");
        }
    }

    #[test]
    fn an_import_of_the_whole_crate_names_it() {
        assert_eq!(unnamed_in("[dependencies]\nbase.workspace = true", "use base;"), 0);
        assert_eq!(unnamed_in("[dependencies]\nbase.workspace = true", "use base as b;"), 0);
        assert_eq!(unnamed_in("[dependencies]\nbase.workspace = true", "let base = 1;"), 1);
    }
}
