//! `cargo xtask profile`: has a released program write down where it spends its time, for the compiler (docs/decisions.md 79).
//!
//! What comes of it, `profile/tepui.profdata`, is committed, and `.cargo/rustc` hands it to the compiler. It knows no other code than
//! what runs here: so both worlds run, the laboratory's and the real one, with each framework and each of the API's forms.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, root, steps, target};

/// What all this makes.
const JOINED: &str = "profile/tepui.profdata";
/// Beside it: the compiler that it holds for.
const COMPILER: &str = "profile/compiler";
/// Packages that it has to know: most of what runs, and on which most others stand.
const KNOWN: [&str; 6] = ["allocator", "master", "agent", "sdk", "daemon", "lab"];
/// Worlds of the laboratory, in `profile/`.
const WORLDS: [&str; 2] = ["small", "large"];
/// Where a program that counts writes what it has counted.
const INTO: &str = "LLVM_PROFILE_FILE";
/// What the counts of each kind of run weigh. Videos count points of pictures: a minute of the demo's would make all else look as
/// if it hardly ever ran.
const WEIGHTS: [(&str, u32); 3] = [("worlds", 20), ("live", 60), ("demo", 1)];
/// Functions that never ran are built for size, if the profile says that they never ran. Of those with so few branches it does
/// not: they are small whatever the compiler does, and there are so many that the file would be twice as large.
const FEW: usize = 4;
/// Benchmarks that start real daemons, with their options.
const LIVE: [&[&str]; 6] = [
    &["tasks", "--quick"],
    &["agent", "--quick", "--only=short"],
    &["fake_agents", "--quick"],
    &["offers", "--quick"],
    &["reads", "--quick"],
    &["failover", "--quick"],
];

/// Builds the program that writes profiles, runs it, and joins what it wrote.
///
/// # Errors
/// `llvm-profdata` is missing, or something does not run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(other) = arguments.first() {
        bail!("'{other}' is not known here: cargo xtask profile takes nothing");
    }
    let merge = profdata()?;
    let folder = target().join("profile");
    let raw = folder.join("raw");
    if raw.exists() {
        std::fs::remove_dir_all(&raw).with_context(|| format!("cannot remove {}", raw.display()))?;
    }
    let mut build = cargo(&["build", "--release", "--package", "tepui", "--target-dir"]);
    steps::run(build.arg(&folder).env("TEPUI_PROFILE_INTO", &raw))?;
    let program = folder.join("release/tepui");
    let into = |kind: &str| raw.join(kind).join("%m.profraw");
    for world in WORLDS {
        let mut run = Command::new(&program);
        run.args(["lab", "run"]).arg(root().join("profile").join(world).with_extension("toml"));
        steps::run(run.arg("--out").arg(folder.join(world)).env(INTO, into("worlds")))?;
    }
    let mut demo = Command::new(&program);
    steps::run(demo.arg("demo").arg("--report").arg(folder.join("demo.html")).env(INTO, into("demo")))?;
    for bench in LIVE {
        let mut run = cargo(&["bench", "--package", "tepui", "--bench", bench[0], "--"]);
        // What puts the load on need not be fast, and is built sooner.
        run.env("CARGO_PROFILE_BENCH_LTO", "off").env("CARGO_PROFILE_BENCH_CODEGEN_UNITS", "16");
        steps::run(run.args(&bench[1..]).env("TEPUI", &program).env(INTO, into("live")))?;
    }
    let joined = root().join(JOINED);
    join(&merge, &raw, &joined)?;
    std::fs::write(root().join(COMPILER), compiler()?).with_context(|| format!("cannot write {COMPILER}"))?;
    println!("written: {}; the next release build takes it", joined.display());
    Ok(())
}

/// Looks whether the profile knows the packages of the released program that run most, after a build of it.
///
/// A function that it does not know is built without it, and no compiler says so: one that is unknown may be new. But a package of
/// which no function is known has another name than it had (see `.cargo/rustc`), and the program is larger and slower than it could be.
///
/// # Errors
/// Names such a package. With another compiler than the profile's it says so, and that is no error.
pub(crate) fn check() -> Result<()> {
    let made_with =
        std::fs::read_to_string(root().join(COMPILER)).with_context(|| format!("cannot read {COMPILER}"))?;
    let now = compiler()?;
    if made_with != now {
        println!("the profile is of {}, and not used by {}: cargo xtask profile", made_with.trim(), now.trim());
        return Ok(());
    }
    let profile = std::fs::read(root().join(JOINED)).with_context(|| format!("cannot read {JOINED}"))?;
    for package in KNOWN {
        let library = newest_library(package)?;
        let code = std::fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
        let name = unit(&code, package).with_context(|| format!("no code in {}", library.display()))?;
        if !contains(&profile, name.as_bytes()) {
            bail!("{JOINED} knows no function of '{package}': it is built without; make it anew: cargo xtask profile");
        }
    }
    Ok(())
}

/// The newest library of a package that was built for release.
fn newest_library(package: &str) -> Result<PathBuf> {
    let folder = target().join("release/deps");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let prefix = format!("lib{package}-");
    let libraries = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".rlib"))
    });
    let newest = libraries.max_by_key(|entry| entry.metadata().and_then(|known| known.modified()).ok());
    newest.map(|entry| entry.path()).with_context(|| format!("{} has no {prefix}*.rlib", folder.display()))
}

/// What the compiler calls a package's only unit of code, as it stands in the library: `NAME.HASH-cgu.0`.
fn unit(library: &[u8], package: &str) -> Option<String> {
    let (prefix, rest) = (format!("{package}."), b"-cgu.0");
    let mut places = library.windows(prefix.len()).enumerate().filter(|(_, bytes)| *bytes == prefix.as_bytes());
    places.find_map(|(place, _)| {
        let after = &library[place + prefix.len()..];
        let digits = after.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let name = std::str::from_utf8(&after[..digits]).ok()?;
        (digits > 0 && after[digits..].starts_with(rest)).then(|| format!("{prefix}{name}-cgu.0"))
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Which compiler builds here, in its own words.
fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("-V").current_dir(root()).output().context("cannot run rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes one profile of the counts below `raw`.
fn join(merge: &Path, raw: &Path, joined: &Path) -> Result<()> {
    let mut all = Command::new(merge);
    let text = raw.join("all.proftext");
    all.args(["merge", "--text", "-o"]).arg(&text);
    for (kind, weight) in WEIGHTS {
        all.arg(format!("--weighted-input={weight},{}", raw.join(kind).display()));
    }
    steps::run(&mut all)?;
    let counts = std::fs::read_to_string(&text).with_context(|| format!("cannot read {}", text.display()))?;
    let kept = raw.join("kept.proftext");
    std::fs::write(&kept, shortened(&counts)).with_context(|| format!("cannot write {}", kept.display()))?;
    steps::run(Command::new(merge).args(["merge", "-o"]).arg(joined).arg(&kept))
}

/// A profile as text without the functions of few branches that never ran.
fn shortened(counts: &str) -> String {
    let kept: Vec<&str> = counts.split("\n\n").filter(|function| !is_left_out(function)).collect();
    kept.join("\n\n")
}

/// Whether a function's part of a profile says no more than that few branches never ran. What does not look like such a part is
/// kept, as is the first one: it begins with the whole file's head.
fn is_left_out(function: &str) -> bool {
    if function.starts_with('#') {
        return false;
    }
    let Some((_, rest)) = function.split_once("# Num Counters:\n") else { return false };
    let mut lines = rest.lines();
    let Some(Ok(counters)) = lines.next().map(str::parse::<usize>) else { return false };
    let mut values = lines.skip_while(|line| line.starts_with('#')).take(counters);
    counters <= FEW && values.all(|value| value == "0")
}

/// The compiler's own program that joins profiles.
fn profdata() -> Result<PathBuf> {
    let mut ask = Command::new("rustc");
    let output = ask.args(["--print", "target-libdir"]).current_dir(root()).output().context("cannot run rustc")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let path = libraries.with_file_name("bin").join("llvm-profdata");
    if !path.is_file() {
        bail!("there is no {}; it comes with: rustup component add llvm-tools", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_library_is_found() {
        let library = b"!<arch>\n//  lib.rmeta/\nlab.rs lab.9f-x lab-06e3.lab.d5345f33cfa71d74-cgu.0.rcgu.o/\n";
        assert_eq!(unit(library, "lab").as_deref(), Some("lab.d5345f33cfa71d74-cgu.0"));
        assert_eq!(unit(library, "master"), None);
        assert!(contains(library, b"d5345f33cfa71d74-cgu.0") && !contains(library, b"d5345f33cfa71d75"));
    }

    #[test]
    fn small_functions_that_never_ran_are_left_out() {
        let part = |name: &str, values: &[u64]| {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            let counters = values.len();
            format!("{name}\n# Func Hash:\n7\n# Num Counters:\n{counters}\n# Counter Values:\n{}\n", values.join("\n"))
        };
        let head = "# IR level Instrumentation Flag\n:ir\n";
        let (first, small) = (format!("{head}{}", part("first", &[0])), part("small", &[0; FEW]));
        let (ran, large) = (part("ran", &[0, 3]), part("large", &[0; FEW + 1]));
        let all = [&first, &ran, &small, &large].map(String::as_str).join("\n");
        assert_eq!(shortened(&all), [first, ran, large].join("\n"));
    }
}
