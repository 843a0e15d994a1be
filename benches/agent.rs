//! Measures an agent: tasks a second with each launcher, memory beside a running task, recovery with 500 running tasks,
//! and CPU at rest with 1,000 running tasks.
//!
//! Run with `cargo xtask bench agent`; `--quick` takes a tenth of the tasks, `--only=short` omits running tasks and
//! `--only=long` short ones. The launcher `linux` needs root.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use protos::mesos::v1::TaskState;
use support::daemon::Daemon;
use support::http::Connection;
use support::report::{Report, each, millis, rate};
use support::scheduler::{CHECKPOINTING, Encoding, Scheduler, amount, task};
use support::{number, option, proc, quick, wait_for};

const ISOLATION: &str = "--isolation=cgroups/cpu,cgroups/mem,namespaces/pid";

fn main() -> Result<()> {
    let root = format!("--cgroups_root=tepui-bench-{}", std::process::id());
    let linux = [ISOLATION, root.as_str()];
    let is_root = nix::unistd::geteuid().is_root();
    let report = Report::new("an agent and its tasks");
    let only = option("only");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("short") {
        short_tasks(&report, "posix", &[], ["1500 /s", "1.2 ms", "12 /s", "126 ms"])?;
    }
    if wanted("short") && is_root {
        short_tasks(&report, "linux: cpu, mem, pid", &linux, ["500 /s", "", "33 /s", ""])?;
    }
    if wanted("long") {
        long_tasks(&report, "posix", &[])?;
    }
    if wanted("long") && is_root {
        long_tasks(&report, "linux: cpu, mem, pid", &linux)?;
    }
    if is_root {
        let groups = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        groups.for_each(|hierarchy| remove_groups(&hierarchy.path().join(root.trim_start_matches("--cgroups_root="))));
    }
    Ok(())
}

/// Removes a control group with all groups below it, which a killed agent has left. A group with processes stays.
fn remove_groups(directory: &Path) {
    let below = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(|path| path.is_dir()).for_each(|path| remove_groups(&path));
    let _ = std::fs::remove_dir(directory);
}

fn start(flags: &[&str]) -> Result<(Daemon, Daemon)> {
    let master = Daemon::master(&["--allocation_interval=50ms"])?;
    let of = format!("--master={}", master.address);
    let own = ["--resources=cpus:64;mem:65536;disk:65536;ports:[]", "--hostname=127.0.0.1", &of];
    let quick = ["--registration_backoff_factor=10ms", "--executor_reregistration_timeout=15secs"];
    let agent = Daemon::start("agent", &[&own[..], &quick[..], flags].concat())?;
    Ok((master, agent))
}

/// Launches tasks until `count` are in a state, and returns the time from the first launch.
fn launch(
    scheduler: &mut Scheduler,
    role: &str,
    command: &str,
    count: usize,
    cpus: f64,
    wanted: TaskState,
) -> Result<Duration> {
    let (mut launched, mut there, mut began) = (0, 0, None);
    while there < count {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|offers| offers.offers) {
            began.get_or_insert_with(Instant::now);
            let batch = ((amount(&offer, "cpus") / cpus + 0.001) as usize).min(count - launched);
            let needs = [("cpus", cpus), ("mem", 32.0)];
            let make = |n: usize| task(format!("t{n}"), &offer, role, command, &needs);
            scheduler.launch(&offer, (launched..launched + batch).map(make).collect());
            launched += batch;
        }
        let Some(update) = event.update else { continue };
        scheduler.acknowledge(&update.status);
        let state = TaskState::try_from(update.status.state)?;
        if state == wanted {
            there += 1;
        } else if !matches!(state, TaskState::TaskStarting | TaskState::TaskRunning) {
            bail!("a task ended as {state:?}: {:?}", update.status.message);
        }
    }
    scheduler.flush()?;
    Ok(began.map(|began| began.elapsed()).unwrap_or_default())
}

fn short_tasks(report: &Report, name: &str, flags: &[&str], [promise, cpu, mesos, mesos_cpu]: [&str; 4]) -> Result<()> {
    let count = number("tasks", if quick() { 200 } else { 1_000 });
    let (master, agent) = start(flags)?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Json, "bench")?;
    let before = proc::tree_cpu(agent.pid());
    let wall = launch(&mut scheduler, "bench", "true", count, 1.0, TaskState::TaskFinished)?;
    wait_for("all executors gone", || proc::executors(agent.pid()).is_empty())?;
    let tree = proc::tree_cpu(agent.pid()).saturating_sub(before);
    report.row(&format!("{count} x `true`, {name}"), &rate(count, wall), "", promise, mesos);
    report.row("    CPU each, agent and executors", &each(tree, count), "", cpu, mesos_cpu);
    scheduler.teardown()
}

fn long_tasks(report: &Report, name: &str, flags: &[&str]) -> Result<()> {
    let count = number("running", if quick() { 50 } else { 500 });
    let (master, mut agent) = start(flags)?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Json, CHECKPOINTING)?;
    let running = TaskState::TaskRunning;
    launch(&mut scheduler, CHECKPOINTING, "exec sleep 10000", count, 0.05, running)?;
    std::thread::sleep(Duration::from_secs(2));
    memory(report, name, &agent, count)?;

    let before = agent.cpu();
    let watched = Duration::from_secs(if quick() { 3 } else { 20 });
    std::thread::sleep(watched);
    let share = (agent.cpu() - before).as_secs_f64() / watched.as_secs_f64();
    let what = format!("agent at rest with {count} running tasks, {name}");
    report.row(&what, &format!("{:.2} % of a core", share * 100.0), "", "1 %", "");

    let start = Instant::now();
    agent.restart()?;
    loop {
        let answer = Connection::open(agent.address).and_then(|mut connection| connection.get("/state"));
        if answer.is_ok_and(|answer| answer.status == 200) {
            break;
        }
        if start.elapsed() > Duration::from_secs(60) {
            bail!("the agent does not recover: {}", agent.log());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let what = format!("recovery with {count} running tasks, {name}");
    report.row(&what, &millis(start.elapsed()), "", "500 ms", "");
    scheduler.teardown()?;
    // Waits for the end of the tasks: after a restart they have no parent among these processes.
    std::thread::sleep(Duration::from_secs(if quick() { 2 } else { 8 }));
    Ok(())
}

fn memory(report: &Report, name: &str, agent: &Daemon, count: usize) -> Result<()> {
    let executors = proc::executors(agent.pid());
    if executors.is_empty() {
        bail!("the agent has no children");
    }
    let beside = executors.len() as f64 / count as f64;
    let all: u64 = executors.iter().map(|&pid| proc::memory(pid, "Pss")).sum();
    let mean = all as f64 / executors.len() as f64 / f64::from(1 << 20);
    report.row(&format!("processes beside a running task, {name}"), &format!("{beside:.1}"), "", "1", "3");
    report.row("    proportional memory", &format!("{mean:.2} MiB"), "", "1.5 MiB", "10 MB");
    Ok(())
}
