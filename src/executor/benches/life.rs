//! Measures the command executor: the CPU of a whole life (start, subscribe, run `true`, report, exit), as a program
//! and as a copy of a template, and the memory of one whose task runs. Prints figures; asserts none.
//!
//! `TEPUI_EXECUTOR` names another program than the one that cargo has built: agents have one that is linked statically.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods)] // a benchmark measures real time

#[path = "../tests/lives/nursery.rs"]
#[allow(dead_code)]
mod nursery;
#[path = "../tests/lives/support.rs"]
#[allow(dead_code)]
mod support;

use protos::mesos::v1::TaskState::{TaskFinished, TaskKilled, TaskRunning, TaskStarting};
use support::{Executor, FakeAgent, shell};

const LIVES: u32 = 300;
const COPIES: u32 = 1000;

fn main() {
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let (began, before) = (std::time::Instant::now(), waited_ticks());
    for _ in 0..LIVES {
        let agent = FakeAgent::new();
        let mut executor = Executor::start("command", "bench", &agent.address, &[]);
        let (_, mut stream) = agent.subscribed(Default::default());
        stream.launch(shell("t", "true"));
        agent.updates(&mut stream, &[TaskStarting, TaskRunning, TaskFinished]);
        executor.ends();
    }
    let cpu = (waited_ticks() - before) as f64 / ticks_per_second * 1000.0;
    let wall = began.elapsed().as_secs_f64() * 1000.0;
    let lives = f64::from(LIVES);
    println!(
        "one life, with its sh: {:.2} ms CPU, {:.2} ms wall ({LIVES} one after the other)",
        cpu / lives,
        wall / lives
    );
    let before = waited_ticks();
    for _ in 0..LIVES {
        let _ = std::process::Command::new("/bin/sh").args(["-c", "true"]).status();
    }
    println!("sh -c true alone: {:.2} ms CPU", (waited_ticks() - before) as f64 / ticks_per_second * 1000.0 / lives);
    copies();
    memory();
}

fn copies() {
    let program = std::env::var("TEPUI_EXECUTOR").unwrap_or(env!("CARGO_BIN_EXE_tepui-executor").to_owned());
    let (ticks, faults) = (waited_ticks(), waited_faults());
    let began = std::time::Instant::now();
    let mut nursery = nursery::Nursery::of(&program);
    let sandbox = support::Directory::new("bench-copies");
    for _ in 0..COPIES {
        let (child, mut line) = nursery.start(&sandbox, &[]);
        line.subscribed_and_launched(shell("t", "true"));
        line.updates(&[TaskStarting, TaskRunning, TaskFinished]);
        nursery::ended(&child);
    }
    drop(nursery);
    let wall = began.elapsed().as_secs_f64() * 1000.0;
    let cpu = (waited_ticks() - ticks) as f64 / rustix::param::clock_ticks_per_second() as f64 * 1000.0;
    let (faults, copies) = ((waited_faults() - faults) as f64, f64::from(COPIES));
    println!(
        "one life as a copy, with its sh and its part of the template: {:.3} ms CPU, {:.0} page faults, {:.2} ms wall ({COPIES} one after the other)",
        cpu / copies,
        faults / copies,
        wall / copies
    );
}

fn memory() {
    let agent = FakeAgent::new();
    let mut executor = Executor::start("command", "bench-memory", &agent.address, &[]);
    let (_, mut stream) = agent.subscribed(Default::default());
    stream.launch(shell("t", "exec sleep 1000"));
    agent.updates(&mut stream, &[TaskStarting, TaskRunning]);
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", executor.pid())).unwrap_or_default();
    for line in rollup.lines().filter(|l| ["Rss:", "Pss:", "Anonymous:"].iter().any(|name| l.starts_with(name))) {
        println!("while its task runs: {line}");
    }
    stream.kill("t", None);
    agent.updates(&mut stream, &[TaskKilled]);
    executor.ends();
}

/// Returns the clock ticks of all children that have been waited for.
fn waited_ticks() -> u64 {
    stat(13) + stat(14)
}

/// Returns the page faults, without those that read from a disk, of all children that have been waited for.
fn waited_faults() -> u64 {
    stat(8)
}

/// Returns a number of /proc/self/stat, counted from behind the program's name.
fn stat(index: usize) -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    numbers.nth(index).and_then(|number| number.parse().ok()).unwrap_or(0)
}
