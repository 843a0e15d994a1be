//! Measures the time of commands. With a real master on loopback, fake agents and running tasks, the released program
//! runs each command as a shell does, from the start of its process to its end.
//!
//! Run with `cargo bench --bench commands`; 100 runs of each command, `--quick` 10, `--runs=N` another number.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use support::agents::Fleet;
use support::daemon::{Daemon, binary};
use support::report::{Report, millis};
use support::scheduler::{Encoding, Scheduler};
use support::{number, quantile, quick};

/// Number of agents of a small cluster, with which the command itself is measured. `reads` measures big answers.
const AGENTS: usize = 10;
const AGENT: [(&str, f64); 2] = [("cpus", 10.0), ("mem", 10_240.0)];
/// Commands that operators give most often.
const COMMANDS: [&[&str]; 5] = [&["agents"], &["roles"], &["tasks"], &["frameworks"], &["agents", "-o", "json"]];
/// Promised time of each command.
const GOAL: &str = "15 ms";

fn main() -> Result<()> {
    let runs = number("runs", if quick() { 10 } else { 100 });
    let report = Report::new(&format!("commands against a master on loopback, {runs} runs"));
    let master = Daemon::master(&[])?;
    let fleet = Fleet::start(master.address, AGENTS, &AGENT, false)?;
    fleet.wait_registered()?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, "bench")?;
    scheduler.fill(AGENTS, AGENTS)?;
    master.settle();
    // The time to start any process of this size.
    let mut starts = (0..runs).map(|_| time(&["--version"])).collect::<Result<Vec<_>>>()?;
    report.note("tepui --version, p50", &millis(quantile(&mut starts, 0.5)));
    let at = format!("--master={}", master.address);
    for words in COMMANDS {
        let words = [words, &[&at]].concat();
        // The first run warms the file cache.
        time(&words)?;
        let mut times = (0..runs).map(|_| time(&words)).collect::<Result<Vec<_>>>()?;
        let name = format!("tepui {}", words[..words.len() - 1].join(" "));
        report.row(&format!("{name}, p50"), &millis(quantile(&mut times, 0.5)), "", GOAL, "");
        report.row("    p99", &millis(quantile(&mut times, 0.99)), "", GOAL, "");
    }
    Ok(())
}

/// Runs a command to its end and returns the time that it took.
fn time(words: &[&str]) -> Result<Duration> {
    let mut command = Command::new(binary());
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot start {}", binary().display()))?;
    let took = start.elapsed();
    if !output.status.success() || output.stdout.is_empty() {
        bail!("{words:?} has failed: {}", output.status);
    }
    Ok(took)
}
