//! `cargo xtask conformance`: runs the black-box suite in the directory beside the checkout, if there is one.
//!
//! The profile `linux` runs the agents with control groups and namespaces; it needs root and cgroups v1. Without names
//! of cases it runs those in which agents matter.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{binary, root, steps, unified};

/// Runs the cases whose name starts with one of `texts`, or those of `tests/conformance.txt`, with the release binary.
/// `--profile linux` before them selects the other profile.
///
/// # Errors
/// The suite ended with a failed case, or the binary is not built.
pub(crate) fn run(texts: &[String]) -> Result<()> {
    match texts {
        [flag, name, rest @ ..] if flag == "--profile" => match name.as_str() {
            "linux" => run_isolated(rest),
            "unified" => run_unified(rest),
            "posix" => run_with(rest, None),
            other => bail!("unknown profile '{other}': must be posix, linux or unified"),
        },
        texts => run_with(texts, None),
    }
}

/// Runs the suite with agents that have the launcher linux, below a control group of their own, which is removed
/// afterwards.
///
/// The cases are run in two parts: most have containers in pid namespaces of their own. Cases that search for a process
/// by its own pid can find it only without pid namespaces, so they run with everything else.
fn run_isolated(texts: &[String]) -> Result<()> {
    if !can_isolate() {
        println!("conformance: NOT RUN with isolation, which needs root and cgroups v1");
        return Ok(());
    }
    let Some(cases) = Isolated::chosen(texts)? else { return run_with(texts, None) };
    let first = run_profile(&cases.with, ",namespaces/pid");
    let second = run_profile(&cases.beside, "");
    first.and(second)
}

/// Runs the suite with isolating agents on a host that has cgroups v2 alone.
fn run_unified(texts: &[String]) -> Result<()> {
    let (Some(suite), Some(mut cases)) = (suite(), Isolated::chosen(texts)?) else { return run_with(texts, None) };
    if texts.is_empty() {
        // In the other cases no agent of this binary runs, whatever it isolates with.
        cases.with.retain(|id| id.starts_with("agent.") || id.starts_with("scheduler."));
    }
    unified::run(&suite, &cases)
}

/// Cases for agents that isolate their tasks.
pub(crate) struct Isolated {
    /// Cases whose containers may be in pid namespaces of their own.
    pub(crate) with: Vec<String>,
    /// Cases that must run without pid namespaces.
    pub(crate) beside: Vec<String>,
}

impl Isolated {
    /// Returns the cases whose name contains one of `texts`, or those of agents; `None` without a suite.
    fn chosen(texts: &[String]) -> Result<Option<Isolated>> {
        let texts = if texts.is_empty() { OF_AGENTS.map(str::to_owned).to_vec() } else { texts.to_vec() };
        let Some(all) = ids(&texts)? else { return Ok(None) };
        // The suite selects cases by a text in their names: a case whose name is a part of another's must be in the
        // same part.
        let outside = |id: &String| LOOK_FOR_PIDS.iter().any(|known| known.contains(id.as_str()));
        let (beside, with) = all.into_iter().partition(outside);
        Ok(Some(Isolated { with, beside }))
    }
}

/// Returns the suite's profile for agents that isolate with `isolation`, below the control group `root`.
pub(crate) fn profile(root: &str, isolation: &str) -> String {
    PROFILE.replace("ROOT", root).replace("ISOLATION", isolation)
}

/// Returns whether this host can isolate containers as the profile requires.
fn can_isolate() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    root && std::fs::read_to_string("/proc/mounts").is_ok_and(|text| text.contains("freezer"))
}

fn run_profile(ids: &[String], more: &str) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let name = format!("tepui-conformance-{}", std::process::id());
    let profile = std::env::temp_dir().join(format!("{name}.json"));
    let text = self::profile(&name, &format!("cgroups/cpu,cgroups/mem,posix/rlimits{more}"));
    std::fs::write(&profile, text).with_context(|| format!("cannot write {}", profile.display()))?;
    let outcome = run_with(ids, Some(&profile));
    // A file left in the temporary directory is no reason to fail.
    let _ = std::fs::remove_file(&profile);
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        remove_groups(&hierarchy.path().join(&name));
    }
    outcome
}

/// Prefixes of the cases in which agents and their containers matter.
const OF_AGENTS: [&str; 6] = [
    "agent.",
    "libprocess.executor.",
    "libprocess.master.",
    "scheduler.group.",
    "scheduler.executor.",
    "scheduler.partition.",
];

/// The suite's own profile, with isolation.
const PROFILE: &str = r#"{
  "features": ["posix", "http", "libprocess", "zookeeper", "cgroups", "mounts"],
  "master": {"argv": ["$TEPUI", "master"], "flags": {}},
  "agent": {"argv": ["$TEPUI", "agent"], "flags": {"launcher": "linux", "cgroups_root": "ROOT",
            "isolation": "ISOLATION"}}
}"#;

/// Cases that search for, or kill, a process by the pid that a task has printed or an executor of the suite has
/// reported: inside a pid namespace that is not the process's pid outside.
const LOOK_FOR_PIDS: [&str; 14] = [
    "agent.command.kill_ends_children",
    "agent.container.ends_with_parent",
    "agent.container.session_closed",
    "agent.container.standalone_killed",
    "agent.executor.all_tasks_fail",
    "agent.executor.dies",
    "agent.executor.known_to_master",
    "agent.executor.shutdown",
    "agent.recovery.executor_died",
    "agent.recovery.executor_stays_away",
    "agent.recovery.sigusr1",
    "agent.recovery.without_checkpoint",
    "agent.state.executors",
    "libprocess.master.shuts_agent_down",
];

/// Returns the names of the suite's cases that contain one of `texts`; `None` without a suite.
fn ids(texts: &[String]) -> Result<Option<Vec<String>>> {
    let Some(suite) = suite() else { return Ok(None) };
    let mut command = Command::new("python3");
    command.arg(suite.join("run")).arg("--profile").arg(suite.join("profiles/tepui.json")).arg("--list");
    texts.iter().for_each(|text| {
        command.arg("--only").arg(text);
    });
    let output = command.output().context("the suite cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| name.contains('.'));
    Ok(Some(names.map(str::to_owned).collect()))
}

/// Removes control groups that killed agents have left; one that is in use stays.
fn remove_groups(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(directory);
}

fn run_with(texts: &[String], profile: Option<&Path>) -> Result<()> {
    let Some(suite) = suite() else {
        println!("conformance: no suite in ../shared/conformance or $TEPUI_CONFORMANCE, nothing to run");
        return Ok(());
    };
    let binary = binary();
    if !binary.exists() {
        bail!("{} does not exist; build it with: cargo build --release", binary.display());
    }
    let texts = if texts.is_empty() { listed()? } else { texts.to_vec() };
    let mut command = Command::new("python3");
    let usual = suite.join("profiles/tepui.json");
    command.arg(suite.join("run")).arg("--profile").arg(profile.unwrap_or(&usual));
    for text in &texts {
        command.arg("--only").arg(text);
    }
    steps::run(command.env("TEPUI", binary).current_dir(root()))
}

fn suite() -> Option<PathBuf> {
    let directory = match std::env::var_os("TEPUI_CONFORMANCE") {
        Some(directory) => PathBuf::from(directory),
        None => root().join("../shared/conformance"),
    };
    directory.join("run").is_file().then_some(directory)
}

/// Returns the lines of `tests/conformance.txt` without comments.
fn listed() -> Result<Vec<String>> {
    let path = root().join("tests/conformance.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    Ok(text.lines().map(line).filter(|l| !l.is_empty()).collect())
}
