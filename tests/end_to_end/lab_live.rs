//! Tests the laboratory on real clusters.
//!
//! - A scenario run under virtual time and live has the same waits and shares. The bound is wide, and a live run may be
//!   slower, since the machine may be busy; SPECIFICATION.md has the figures of an idle one.
//! - A load that is interrupted prints its measurements, and leaves no framework behind.
//! - Settings that a real cluster does not support are refused before anything runs.
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{Process, ToItsEnd};
use crate::support::{Cluster, Directory, call, tepui, until};

/// Directory of a file system in memory, if there is one.
const MEMORY: &str = "/dev/shm";
/// Maximum difference of waits and shares, as a fraction of those under virtual time.
const APART: f64 = 0.35;

/// Tasks take seconds, so that the time that a busy machine takes to start one matters little. The scenario starts when
/// all agents have registered, which under virtual time happens in the first second. On both sides the first framework
/// starts earlier and takes everything; then the second one gets the resources that become free until each has its fair
/// share.
const SCENARIO: &str = r#"
name = "both"
duration = "2m"
until_done = true
sample = "100ms"

[[agents]]
count = 8
resources = "cpus:4;mem:4096"

[roles.first]
weight = 2.0

[[frameworks]]
name = "first"
role = "first"
start = "2s"
[[frameworks.jobs]]
at = "2s"
tasks = 60
needs = "cpus:1;mem:512"
time = "uniform 3s 5s"

[[frameworks]]
name = "second"
role = "second"
start = "2500ms"
[[frameworks.jobs]]
at = "2s"
tasks = 60
needs = "cpus:1;mem:256"
time = "uniform 3s 5s"

[[windows]]
name = "sharing"
from = "6s"
to = "11s"
"#;

fn output(command: &mut Command) -> String {
    let output = command.run();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a scenario and returns its numbers by name.
fn numbers(scenario: &str, out: &str, more: &[&str]) -> BTreeMap<String, f64> {
    let mut run = tepui();
    run.args(["lab", "run", scenario, "--json", "--out", out]).args(more);
    // On a busy disk tasks start late.
    if Path::new(MEMORY).is_dir() {
        run.env("TMPDIR", MEMORY);
    }
    let text = output(&mut run);
    let points: Value = serde_json::from_str(&text).unwrap();
    let of = |number: &Value| Some((number["name"].as_str()?.to_owned(), number["mean"].as_f64()?));
    points[0]["numbers"].as_array().unwrap().iter().filter_map(of).collect()
}

/// Runs the scenario live at decreasing speeds, each in a directory of its own, until the numbers are the same. Where
/// starting a task takes long, tasks must be long, too: a machine that is slow or busy needs a slower run.
fn live(directory: &Directory, scenario: &str, in_lab: &BTreeMap<String, f64>) -> (String, BTreeMap<String, f64>) {
    let mut apart = Vec::new();
    for speed in ["1", "0.3", "0.1"] {
        let out = directory.join(&format!("live-{speed}"));
        let live = numbers(scenario, &out, &["--live", "--speed", speed]);
        let differences =
            ["first.wait.mean", "second.wait.mean", "sharing.share.first", "sharing.share.second"].map(|name| {
                let (expected, got) = (in_lab[name], live[name]);
                println!("{name}: {expected:.3} in the laboratory, {got:.3} live at speed {speed}");
                (name, (got / expected - 1.0).abs())
            });
        if differences.iter().all(|(_, difference)| *difference < APART) {
            return (out, live);
        }
        apart.push((speed, differences));
    }
    panic!("at no speed it comes to the same: {apart:?}");
}

#[test]
fn the_same_scenario_under_virtual_time_and_live() {
    let directory = Directory::new("lab-live");
    let scenario = directory.write("both.toml", SCENARIO);
    let in_lab = numbers(&scenario, &directory.join("lab"), &[]);
    let (out, live) = live(&directory, &scenario, &in_lab);
    assert_eq!((live["first.finished"], live["second.finished"]), (60.0, 60.0));
    let compared = output(tepui().args(["lab", "compare", &directory.join("lab"), &out]));
    assert!(compared.contains("mean wait of first") && !compared.contains("equal to the byte"), "{compared}");
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("on a real cluster of 8 agents"), "the report says where it ran");
}

#[test]
fn an_interrupted_load_tells_what_it_has_and_leaves() {
    let cluster = Cluster::start("lab-load", 2, "cpus:4;mem:2048;disk:64");
    let mut load = tepui();
    load.args(["lab", "load", "--json", "--rate=20", "--frameworks=2", "--duration=10m", "--time=200ms"]).args([
        "--master",
        &cluster.master,
        "--out",
        &cluster.directory.join("out"),
    ]);
    let mut load = Process::start(&mut load);
    load.until("tasks of both frameworks have finished", || {
        let Some(all) = call(&cluster.master, "GET", "/frameworks") else { return false };
        let frameworks = all["frameworks"].as_array().map_or(&[][..], Vec::as_slice);
        let busy = |one: &&Value| one["completed_tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
        frameworks.iter().filter(busy).count() == 2
    });
    load.signal("-INT");
    let output = load.output();
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{said}{why}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert!(told["interrupted"] == true && told["agents"] == 2, "{said}");
    let latency = &told["submit_to_running"];
    assert!(latency["count"].as_u64() > Some(1) && latency["p50"].as_f64() > Some(0.0), "{said}");
    assert!(cluster.directory.path().join("out/report.html").exists());
    until("no framework is left behind", || {
        let left = call(&cluster.master, "GET", "/frameworks").unwrap_or_default();
        left["frameworks"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn what_cannot_be_done_live_is_refused_with_its_line() {
    let directory = Directory::new("lab-refused");
    let cluster = ["--live", "--master=127.0.0.1:1"];
    for (from, to, more, why) in [
        ("count = 8", "count = 65", &cluster[..1], "big.toml:7: agents: "),
        ("duration = \"2m\"", "duration = \"25h\"", &cluster[..1], "big.toml:3: duration: "),
        ("", "", &cluster[..], "big.toml:11: roles.first: --master keeps the settings of its cluster"),
        ("", "", &cluster[1..], "--live"),
    ] {
        let scenario = directory.write("big.toml", &SCENARIO.replacen(from, to, 1));
        let output = tepui().args(["lab", "run", &scenario, "--out", &directory.join("out")]).args(more).run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
        assert!(!directory.path().join("out/runs").exists(), "nothing has run");
    }
}
