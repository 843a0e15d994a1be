//! Checks licences, versions and sources of all dependencies by `deny.toml`.
//!
//! It checks what `cargo deny check licenses bans sources` checks with the settings that this file has; other settings
//! of cargo-deny are not read. Advisories need their database and are left to cargo-deny.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::cargo;

/// Source of every package that is not of the workspace.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A version of a package that is allowed besides another one.
#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    package: String,
}

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Source of the package; `None` for packages of the workspace.
    source: Option<String>,
}

/// Returns every dependency that `deny.toml` forbids, and every exception there that is not needed.
///
/// # Errors
/// `deny.toml` cannot be read, or cargo cannot list the dependencies.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    let output = cargo(&["metadata", "--format-version", "1", "--locked"]).output().context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(breaches(&rules, &metadata.packages))
}

fn breaches(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let foreign = || packages.iter().filter(|package| package.source.is_some());
    let mut breaches = Vec::new();
    for package in foreign() {
        let (name, version) = (&package.name, &package.version);
        if package.source.as_deref() != Some(REGISTRY) {
            breaches.push(format!("{name}@{version}: is not from crates.io"));
        }
        match package.license.as_deref() {
            Some(license) if is_allowed(license, &rules.licenses.allow) => {}
            Some(license) => breaches.push(format!("{name}@{version}: deny.toml does not allow the license {license}")),
            None => breaches.push(format!("{name}@{version}: has no license")),
        }
    }
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(format!("{}@{}", package.name, package.version));
    }
    let mut skipped: BTreeSet<&str> = rules.bans.skip.iter().map(|skip| skip.package.as_str()).collect();
    for versions in versions.values().filter(|versions| versions.len() > 1) {
        let left: Vec<&str> = versions.iter().map(String::as_str).filter(|version| !skipped.remove(version)).collect();
        if left.len() > 1 {
            breaches.push(format!("{}: several versions of one package", left.join(", ")));
        }
    }
    breaches.extend(skipped.iter().map(|version| format!("{version}: deny.toml skips it, but it is not a duplicate")));
    breaches
}

/// Returns whether the allowed licences alone satisfy an SPDX expression.
fn is_allowed(license: &str, allowed: &[String]) -> bool {
    let expression = Expression::parse_mode(license, ParseMode::LAX);
    expression.is_ok_and(|expression| {
        expression.evaluate(|requirement| allowed.iter().any(|allowed| *allowed == requirement.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str, license: &str, source: Option<&str>) -> Package {
        let (name, version) = text.split_once('@').unwrap();
        let [name, version, license] = [name, version, license].map(str::to_owned);
        Package {
            name,
            version,
            license: Some(license).filter(|text| !text.is_empty()),
            source: source.map(str::to_owned),
        }
    }

    fn found(skip: &[&str], packages: &[Package]) -> Vec<String> {
        let allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec();
        let skip = skip.iter().map(|package| Skip { package: (*package).to_owned() }).collect();
        breaches(&Rules { licenses: Licenses { allow }, bans: Bans { skip } }, packages)
    }

    #[test]
    fn licences_are_expressions() {
        let checked = |license| found(&[], &[package("a@1.0.0", license, Some(REGISTRY))]).len();
        for good in ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception AND MIT"] {
            assert_eq!(checked(good), 0, "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "", "what?"] {
            assert_eq!(checked(bad), 1, "{bad}");
        }
    }

    #[test]
    fn versions_and_sources() {
        let two = || [package("a@1.0.0", "MIT", Some(REGISTRY)), package("a@2.0.0", "MIT", Some(REGISTRY))];
        assert_eq!(found(&[], &two()), ["a@1.0.0, a@2.0.0: several versions of one package"]);
        assert!(found(&["a@1.0.0"], &two()).is_empty());
        assert_eq!(found(&["a@1.0.0", "b@1.0.0"], &two()).len(), 1);
        assert_eq!(found(&[], &[package("a@1.0.0", "MIT", Some("git+https://example.org"))]).len(), 1);
        assert!(found(&[], &[package("own@1.0.0", "", None)]).is_empty());
    }
}
