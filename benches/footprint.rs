//! Measures the footprint: the binary's size, the time from `tepui local` to the first finished task, the memory of
//! idle daemons, and of an executor beside its task.
//!
//! Run with `cargo bench --bench footprint`; `--quick` starts one local cluster instead of ten.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use protos::mesos::v1::TaskState;
use support::daemon::{Daemon, binary};
use support::report::{Report, mib, millis};
use support::scheduler::{Encoding, Scheduler, amount, task};
use support::{number, proc, quantile, quick, wait_for};

fn main() -> Result<()> {
    let report = Report::new("footprint: binary, start, idle memory, memory of an executor");
    let size = std::fs::metadata(binary())?.len();
    report.row("release binary", &format!("{:.1} MB", size as f64 / 1e6), "25 MB", "", "211 MB");

    let mut starts = Vec::new();
    for _ in 0..number("starts", if quick() { 1 } else { 10 }) {
        starts.push(local()?);
    }
    report.row(
        "`tepui local` to its first task finished, p50",
        &millis(quantile(&mut starts, 0.5)),
        "500 ms",
        "300 ms",
        "",
    );
    report.note("    the longest", &millis(quantile(&mut starts, 1.0)));

    let master = Daemon::master(&[])?;
    let agent = Daemon::agent(&master, "cpus:64;mem:65536;disk:65536;ports:[]")?;
    // The agent has registered, and is idle again.
    std::thread::sleep(Duration::from_secs(2));
    report.row("idle master, resident", &rss(&master), "15 MiB", "12 MiB", "76 MiB");
    report.row("idle agent, resident", &rss(&agent), "12 MiB", "10 MiB", "75 MiB");
    for (name, daemon, mesos) in [("master", &master, "13.9 MB"), ("agent", &agent, "12.4 MB")] {
        report.row(&format!("idle {name}, proportional"), &mib(proc::memory(daemon.pid(), "Pss")), "", "", mesos);
    }
    executors(&report, &master, &agent, number("tasks", 20))
}

fn rss(daemon: &Daemon) -> String {
    mib(proc::memory(daemon.pid(), "VmRSS"))
}

/// Returns the time from the start of the process until the first task of a scheduler has finished.
fn local() -> Result<Duration> {
    let start = Instant::now();
    let cluster = Daemon::start("local", &[])?;
    let mut scheduler = Scheduler::subscribe(cluster.address, Encoding::Json, "bench")?;
    launch(&mut scheduler, "true", 1, TaskState::TaskFinished)?;
    Ok(start.elapsed())
}

/// Launches tasks of a command, and waits until all are in a state.
fn launch(scheduler: &mut Scheduler, command: &str, tasks: usize, wanted: TaskState) -> Result<()> {
    let (mut launched, mut there) = (0, 0);
    while there < tasks {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|o| o.offers) {
            let batch = ((amount(&offer, "cpus") / 0.1) as usize).min(tasks - launched);
            let needs = [("cpus", 0.1), ("mem", 32.0)];
            let make = |n: usize| task(format!("t{n}"), &offer, "bench", command, &needs);
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
    scheduler.flush()
}

/// Measures the memory of executors while their tasks sleep.
fn executors(report: &Report, master: &Daemon, agent: &Daemon, tasks: usize) -> Result<()> {
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Json, "bench")?;
    launch(&mut scheduler, "exec sleep 1000", tasks, TaskState::TaskRunning)?;
    std::thread::sleep(Duration::from_secs(1));
    let executors = proc::executors(agent.pid());
    if executors.is_empty() {
        bail!("the agent has no children");
    }
    let mean = |field: &str| {
        let all: u64 = executors.iter().map(|&pid| proc::memory(pid, field)).sum();
        format!("{:.2} MiB", all as f64 / executors.len() as f64 / f64::from(1 << 20))
    };
    let beside = format!("{:.1}", executors.len() as f64 / tasks as f64);
    report.row("processes beside each running task", &beside, "", "1", "3");
    report.row("an executor, resident", &mean("VmRSS"), "2 MiB", "", "");
    report.row(&format!("an executor, proportional, one of {tasks}"), &mean("Pss"), "", "1.5 MiB", "10 MB");
    report.note("an executor, its own dirty memory", &mean("Private_Dirty"));
    scheduler.teardown()?;
    wait_for("the executors ended", || proc::executors(agent.pid()).is_empty())?;
    Ok(())
}
