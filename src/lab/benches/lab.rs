//! Measures the laboratory: events a second in a small world, a simulated day of a large cluster, an hour of a larger
//! one.
//!
//! Run it with `cargo bench -p lab` and these arguments:
//!
//! - `small` runs the small world only, `large` the other two, `day` the day, `hour` the hour.
//! - A number scales the tasks of the large worlds down; with `faults` it is the number of seeds.
//! - `2h` or `10m` runs only the beginning of the large worlds.
//! - `faults` runs seeds of the fault campaign instead.
//!
//! $TEPUI names the program that runs the worlds, as `cargo xtask bench` has it. Without it, the worlds run in this
//! process, by code that is built without a profile and takes half as long again.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::measure::Outcome;
use lab::run::run;
use lab::scenario::Scenario;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: containers::Memory = containers::Memory;

const SMALL: &str = r#"
name = "small"
duration = "1h"
sample = "60s"
[[agents]]
count = 8
resources = "cpus:8;mem:16384"
[[frameworks]]
name = "f"
count = 4
[[frameworks.jobs]]
poisson = "2s"
tasks = 4
needs = "cpus:1;mem:1024"
time = "exponential 5s"
"#;

/// Scenario of a day: 10,000 agents, 200 frameworks, 5 million tasks.
const DAY: &str = r#"
name = "day"
duration = "1d"
sample = "5m"
[model]
fidelity = "light"
[master]
agent_ping_timeout = "10m"
policies = { max_offered_share = 0.002 }
[[agents]]
count = 10000
resources = "cpus:16;mem:65536"
[[frameworks]]
name = "f"
count = 200
conduct = { refuse = "60s", suppress = true }
[[frameworks.jobs]]
poisson = "345.6s"
tasks = 100
needs = "cpus:1;mem:2048"
time = "exponential 600s"
"#;

/// Scenario of an hour: 50,000 agents, 1,000 frameworks, 5,000 launches a second.
const HOUR: &str = r#"
name = "hour"
duration = "1h"
sample = "1m"
[model]
fidelity = "light"
[master]
agent_ping_timeout = "10m"
policies = { max_offered_share = 0.0005 }
[[agents]]
count = 50000
resources = "cpus:16;mem:65536"
[[frameworks]]
name = "f"
count = 1000
conduct = { refuse = "60s", suppress = true }
[[frameworks.jobs]]
poisson = "20s"
tasks = 100
needs = "cpus:1;mem:2048"
time = "exponential 120s"
"#;

/// Returns the peak resident memory of a process (`VmHWM`), in MiB.
fn resident(process: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}

/// The result of running a world.
#[derive(Deserialize)]
struct Played {
    events: u64,
    digest: String,
    frameworks: Vec<Finished>,
}

#[derive(Deserialize)]
struct Finished {
    finished: u64,
}

/// Runs a world in this process, and returns its result and the peak memory in MiB.
fn play(scenario: &Scenario) -> (Played, f64) {
    let outcome: Outcome = run(scenario, 1, Path::new("."), &mut |_| true).expect("it runs");
    let frameworks = outcome.frameworks.iter().map(|framework| Finished { finished: framework.finished }).collect();
    (Played { events: outcome.events, digest: outcome.digest, frameworks }, resident("self"))
}

/// Runs a world with the released program, which is built with a profile, and returns its result and the peak memory in
/// MiB.
fn play_with(program: &OsStr, text: &str) -> (Played, f64) {
    let directory = std::env::temp_dir().join(format!("tepui-bench-lab-{}", std::process::id()));
    let out = directory.join("out");
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let file = directory.join("world.toml");
    std::fs::write(&file, text).expect("a file can be written");
    let mut command = Command::new(program);
    let mut child = command.args(["lab", "run"]).arg(&file).arg("--out").arg(&out).stdout(Stdio::null()).spawn();
    let child = child.as_mut().expect("the program starts");
    let (process, mut most) = (child.id().to_string(), 0.0_f64);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        most = most.max(resident(&process));
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
    let written = std::fs::read(out.join("runs/0000-1.json")).expect("it has written what came of it");
    let played = serde_json::from_slice(&written).expect("its results can be read");
    std::fs::remove_dir_all(&directory).expect("the directory can be removed");
    (played, most)
}

fn measure(text: &str) {
    let path = Path::new("bench.toml");
    let scenario = Scenario::read(text, path).expect("the scenario is right");
    let program = std::env::var_os("TEPUI");
    let start = Instant::now();
    let (played, most) = program.as_deref().map_or_else(|| play(&scenario), |program| play_with(program, text));
    let took = start.elapsed().as_secs_f64();
    let finished: u64 = played.frameworks.iter().map(|framework| framework.finished).sum();
    println!(
        "{:8} {:>12} events {:>10.0} events/s {:>9} tasks {:>8.2} us/task {:>8.1} s {:>7.0} MiB at most, digest {}",
        scenario.name,
        played.events,
        played.events as f64 / took,
        finished,
        took / finished as f64 * 1e6,
        took,
        most,
        played.digest
    );
}

/// Runs seeds of the fault campaign on one thread.
fn faults(seeds: u64) {
    let start = Instant::now();
    let summary =
        lab::faults::campaign(&lab::faults::Settings { first: 1, seeds, threads: 1, most: 10, defect: None }, &|| true);
    println!("{} seeds, {} events, {:.1} s", summary.seeds, summary.events, start.elapsed().as_secs_f64());
    assert!(summary.broken.is_empty(), "{:?}", summary.broken);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = arguments.iter().find_map(|argument| argument.parse::<f64>().ok());
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    if asked("faults") {
        return faults(number.unwrap_or(200.0) as u64);
    }
    let all = !["small", "large", "day", "hour"].into_iter().any(asked);
    if all || asked("small") {
        measure(SMALL);
    }
    let scale = number.unwrap_or(1.0);
    let is_span = |text: &&String| text.strip_suffix(['h', 'm']).is_some_and(|number| number.parse::<f64>().is_ok());
    let span = arguments.iter().find(is_span);
    for (name, text, gap, whole) in [("day", DAY, 345.6, "1d"), ("hour", HOUR, 20.0, "1h")] {
        if !(all || asked("large") || asked(name)) {
            continue;
        }
        let scaled = text.replace(&format!("poisson = \"{gap}s\""), &format!("poisson = \"{}s\"", gap * scale));
        let span = span.map_or(whole, String::as_str);
        measure(&scaled.replace(&format!("duration = \"{whole}\""), &format!("duration = \"{span}\"")));
    }
}
