//! Measures the cost of a failover for the new master. A master with 10,000 fake agents and 100,000 running tasks is
//! killed and restarted; its framework subscribes with its id, then all agents reregister at once.
//!
//! Run with `cargo bench --bench failover`; `--quick` takes a tenth of it all; `--agents=N` and `--tasks=N` set other
//! numbers.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use support::agents::Fleet;
use support::daemon::Daemon;
use support::http::Connection;
use support::report::{Report, each, mib, millis};
use support::scheduler::{Encoding, Scheduler};
use support::{number, proc, quick, wait_for};

fn main() -> Result<()> {
    let agents = number("agents", if quick() { 1_000 } else { 10_000 });
    let tasks = number("tasks", agents * 10);
    let report =
        Report::new(&format!("a master that is started again, with {agents} agents and {tasks} running tasks"));
    // The registry must survive the restart.
    let mut master = Daemon::start("master", &["--registry=replicated_log", "--hostname=127.0.0.1"])?;
    let fleet =
        Fleet::start(master.address, agents, &[("cpus", 100.0), ("mem", 102_400.0), ("disk", 102_400.0)], false)?;
    fleet.wait_registered()?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, "bench")?;
    scheduler.fill(agents, tasks)?;

    let start = Instant::now();
    master.restart()?;
    master.wait_until_healthy()?;
    let healthy = start.elapsed();
    let scheduler = scheduler.subscribe_again(master.address, "bench")?;
    let subscribed = start.elapsed();
    let offered = scheduler.watch()?;
    master.settle();
    let (before, mine, storm) = (master.cpu(), proc::cpu(std::process::id()), Instant::now());
    fleet.register_again(master.address)?;
    fleet.wait_registered()?;
    let wall = storm.elapsed();
    wait_for("all agents offered", || offered.load(Ordering::Relaxed) >= agents)?;
    master.settle();
    let (cpu, load) = (master.cpu() - before, proc::cpu(std::process::id()) - mine);
    let running = metric(&master, "master/tasks_running")?;
    if running != tasks {
        bail!("{running} tasks run after it, not {tasks}");
    }

    report.row("from the kill until it answers", &millis(healthy), "", "", "440 ms");
    report.row("from the kill until its framework is subscribed", &millis(subscribed), "", "", "440 ms");
    let (promise, mesos, mesos_wall) =
        if agents == 10_000 && tasks == 100_000 { ("400 ms", "5928 ms", "4520 ms") } else { ("", "", "") };
    report.row("master CPU until all are back and offered", &millis(cpu), "", promise, mesos);
    report.row("    of each agent", &each(cpu, agents), "", "", "593-715 us");
    report.row("    all registered", &millis(wall), "", "", mesos_wall);
    report.note("    the load's own CPU", &millis(load));
    report.row("master's peak memory", &mib(proc::memory(master.pid(), "VmHWM")), "", "", "757 MiB");
    Ok(())
}

/// Returns the value of one of the master's metrics.
fn metric(master: &Daemon, name: &str) -> Result<usize> {
    let answer = Connection::open(master.address)?.get("/metrics/snapshot")?;
    let all: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let value = all[name].as_f64().with_context(|| format!("there is no {name}"))?;
    Ok(value as usize)
}
