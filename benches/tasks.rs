//! Measures how many real tasks a second one agent runs, and the CPU time of a task. 1,000 times `true` through an
//! agent with cpus:64, each with 1 cpu, launched by one JSON scheduler over HTTP, with every update acknowledged.
//!
//! Run with `cargo bench --bench tasks`; `--quick` runs 200 tasks, `--interval=50ms` sets the allocation interval. With
//! `--tasks=50000 --gc_delay=1secs` the agent deletes sandboxes as fast as it creates them.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use anyhow::{Context, Result};
use support::daemon::Daemon;
use support::report::{Report, each, mib, millis, rate};
use support::scheduler::{Encoding, Scheduler};
use support::{number, option, proc, quantile, quick, wait_for};

fn main() -> Result<()> {
    let tasks = number("tasks", if quick() { 200 } else { 1_000 });
    let interval = format!("--allocation_interval={}", option("interval").as_deref().unwrap_or("1secs"));
    let report = Report::new(&format!("{tasks} real tasks (`true`, 1 cpu) on one agent with cpus:64, {interval}"));
    let master = Daemon::master(&[&interval])?;
    let (of, gc_delay) = (format!("--master={}", master.address), option("gc_delay"));
    let gc_delay = format!("--gc_delay={}", gc_delay.as_deref().unwrap_or("1weeks"));
    let resources = "--resources=cpus:64;mem:65536;disk:65536;ports:[]";
    let quick = ["--hostname=127.0.0.1", "--registration_backoff_factor=10ms"];
    let agent = Daemon::start("agent", &[&[&of, resources, &gc_delay][..], &quick].concat())?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Json, "bench")?;
    let before = (master.cpu(), proc::tree_cpu(agent.pid()), agent.cpu());

    let (wall, mut lives) = scheduler.run_all(tasks, "true").with_context(|| format!("agent: {}", agent.log()))?;

    wait_for("all executors gone", || proc::executors(agent.pid()).is_empty())?;
    let master_cpu = master.cpu() - before.0;
    let agent_cpu = agent.cpu() - before.2;
    let tree = proc::tree_cpu(agent.pid()).saturating_sub(before.1);
    report.row("tasks a second", &rate(tasks, wall), "600 /s", "1500 /s", "12 /s");
    report.row("master CPU a task", &each(master_cpu, tasks), "", "", "1370 us");
    report.row("agent CPU a task, without executors", &each(agent_cpu, tasks), "", "", "20400 us");
    report.row("agent CPU a task, with all its children", &each(tree, tasks), "", "", "126000 us");
    report.row("launch to end, p50", &millis(quantile(&mut lives, 0.5)), "", "", "4940 ms");
    report.note("launch to end, p99", &millis(quantile(&mut lives, 0.99)));
    let peaks = [&master, &agent].map(|d| mib(proc::memory(d.pid(), "VmHWM")));
    report.row("peak resident memory, master; agent", &peaks.join("; "), "", "", "82; 112 MiB");
    scheduler.teardown()
}
