//! What the command executor costs: the CPU of a whole life (start, subscribe, run `true`, tell, exit), and the memory of
//! one whose task runs. Prints figures; asserts none.
#![allow(clippy::disallowed_methods)] // a benchmark measures real time

#[path = "../tests/lives/support.rs"]
#[allow(dead_code)]
mod support;

use protos::mesos::v1::TaskState::{TaskFinished, TaskKilled, TaskRunning, TaskStarting};
use support::{Executor, FakeAgent, shell};

const LIVES: u32 = 300;

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
    memory();
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

/// Clock ticks of all children that have been waited for.
fn waited_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    numbers.skip(13).take(2).filter_map(|number| number.parse::<u64>().ok()).sum()
}
