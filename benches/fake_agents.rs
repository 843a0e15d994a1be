//! Measures the cost of an agent and of a task for the master. The agents are fakes in this process, so that the daemon
//! is the master alone: 1,000 and 10,000 agents register at once; 20,000 tasks run through 1,000 of them (RUNNING,
//! acknowledged, FINISHED, acknowledged).
//!
//! `--only=tls` runs the tasks through tunnels, alternately plain and with TLS, and prints what TLS adds to the CPU of
//! a task.
//!
//! Run with `cargo bench --bench fake_agents`; `--quick` takes 1,000 agents and 2,000 tasks. All agents share one
//! address, so that one connection in each direction has all of their messages, unless `--addresses=N` spreads them.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use protos::mesos::v1::TaskState;
use support::agents::Fleet;
use support::daemon::Daemon;
use support::report::{Report, each, mib, millis, rate};
use support::scheduler::{Encoding, Scheduler, task};
use support::tunnel::{Certificates, Tunnels};
use support::{number, option, proc, quantile, quick, wait_for};

/// Resources of an agent, for 100 tasks at once.
const AGENT: [(&str, f64); 3] = [("cpus", 100.0), ("mem", 102_400.0), ("disk", 102_400.0)];
/// Resources of a task.
const TASK: [(&str, f64); 2] = [("cpus", 1.0), ("mem", 32.0)];

fn main() -> Result<()> {
    let report = Report::new("fake agents: registration, and tasks through them; only the master works");
    let only = option("only");
    let wanted = |name: &str| only.as_deref().is_none_or(|o| o == name);
    let storms: &[usize] = if quick() { &[1_000] } else { &[1_000, 10_000] };
    for &agents in storms.iter().filter(|_| wanted("storm")) {
        storm(&report, agents)?;
    }
    let agents = number("agents", 1_000);
    let tasks = number("tasks", if quick() { 2_000 } else { 20_000 });
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        if wanted("tasks") || wanted(&format!("{encoding:?}").to_lowercase()) {
            let master = Daemon::master(&[])?;
            let fleet = Fleet::start(master.address, agents, &AGENT, true)?;
            through(&report, encoding, (&master, &fleet, master.address), tasks)?;
        }
    }
    if wanted("tls") {
        beside_tls(&report, agents, tasks)?;
    }
    Ok(())
}

/// Runs the same tasks alternately without TLS and with it; connections are kept.
fn beside_tls(report: &Report, agents: usize, tasks: usize) -> Result<()> {
    let certificates = Certificates::make()?;
    let mut cpu: [Vec<Duration>; 2] = Default::default();
    for round in 0..2 * number("rounds", 3) {
        let tls = (round % 2 == 1).then_some(&certificates);
        let flags = tls.map(Certificates::flags).unwrap_or_default();
        let master = Daemon::master(&flags.iter().map(String::as_str).collect::<Vec<_>>())?;
        let tunnels = Tunnels::new(tls)?;
        let address = tunnels.to_master(master.address)?;
        let fleet = Fleet::start_behind(address, agents, &AGENT, true, |port| tunnels.reached_at(port))?;
        let taken = through(report, Encoding::Protobuf, (&master, &fleet, address), tasks)?;
        report.note(if tls.is_some() { "    with TLS" } else { "    without TLS" }, &each(taken, tasks));
        cpu[round % 2].push(taken);
    }
    let [plain, tls] = cpu.map(|mut all| quantile(&mut all, 0.5));
    let more = (tls.as_secs_f64() / plain.as_secs_f64() - 1.0) * 100.0;
    report.row("CPU that TLS adds to a task, medians", &format!("{more:.1} %"), "15 %", "", "");
    Ok(())
}

/// Registers all agents at once.
fn storm(report: &Report, agents: usize) -> Result<()> {
    let master = Daemon::master(&[])?;
    let (before, rss, mine) = (master.cpu(), proc::memory(master.pid(), "VmRSS"), proc::cpu(std::process::id()));
    let start = Instant::now();
    let fleet = Fleet::start(master.address, agents, &AGENT, true)?;
    fleet.wait_registered()?;
    let wall = start.elapsed();
    master.settle();
    let cpu = master.cpu() - before;
    let (least, promise) = if agents >= 10_000 { ("80 us", "30 us") } else { ("", "") };
    let (mesos, mesos_wall) = if agents >= 10_000 { ("500-700 us", "3220 ms") } else { ("530-880 us", "560 ms") };
    report.row(&format!("{agents} agents register: master CPU an agent"), &each(cpu, agents), least, promise, mesos);
    report.row("    all registered", &millis(wall), "", "", mesos_wall);
    let grown = proc::memory(master.pid(), "VmRSS").saturating_sub(rss) / agents as u64;
    report.row("    master's memory an agent", &format!("{:.1} KiB", grown as f64 / 1024.0), "", "", "39-62 KiB");
    report.note("    the load's own CPU an agent", &each(proc::cpu(std::process::id()) - mine, agents));
    Ok(())
}

/// Runs tasks, spread evenly over the agents, at most 100 in an ACCEPT. Returns the CPU time that they took of the
/// master, which is reached at `address`.
fn through(
    report: &Report,
    encoding: Encoding,
    (master, fleet, address): (&Daemon, &Fleet, SocketAddrV4),
    tasks: usize,
) -> Result<Duration> {
    let agents = fleet.len();
    fleet.wait_registered()?;
    master.settle();
    let subscribing = (master.cpu(), Instant::now());
    let mut scheduler = Scheduler::subscribe(address, encoding, "bench")?;
    let share = tasks.div_ceil(agents).min(100);
    let mut offers = Vec::new();
    while offers.len() < agents.min(tasks.div_ceil(share)) {
        offers.extend(scheduler.event()?.offers.into_iter().flat_map(|o| o.offers));
    }
    let offered = subscribing.1.elapsed();
    let offering = master.cpu() - subscribing.0;
    master.settle();

    let (before, mine, start) = (master.cpu(), proc::cpu(std::process::id()), Instant::now());
    let mut launched = 0;
    let mut finished = BTreeSet::new();
    while finished.len() < tasks {
        while launched < tasks
            && let Some(offer) = offers.pop()
        {
            let batch = share.min(tasks - launched);
            let infos = (launched..launched + batch).map(|n| task(format!("t{n}"), &offer, "bench", "true", &TASK));
            scheduler.launch(&offer, infos.collect());
            launched += batch;
        }
        let event = scheduler.event()?;
        offers.extend(event.offers.into_iter().flat_map(|o| o.offers));
        if let Some(update) = event.update {
            scheduler.acknowledge(&update.status);
            if update.status.state == TaskState::TaskFinished as i32 {
                finished.insert(update.status.task_id.value);
            } else if update.status.state != TaskState::TaskRunning as i32 {
                bail!("a task did not finish: {:?}", update.status);
            }
        }
        if let Some(error) = event.error {
            bail!("ERROR: {}", error.message);
        }
    }
    scheduler.flush()?;
    let wall = start.elapsed();
    master.settle();
    let cpu = master.cpu() - before;
    let load = proc::cpu(std::process::id()) - mine;
    wait_for("every update sent", || fleet.updates() >= 2 * tasks)?;

    let name = format!("{tasks} tasks, {} agents, {encoding:?}", fleet.len());
    report.row(&format!("{name}: master CPU a task"), &each(cpu, tasks), "60 us", "20 us", "400-440 us");
    report.row("    tasks a second", &rate(tasks, wall), "", "", "2300-3100 /s");
    report.row("    SUBSCRIBE until all is offered", &millis(offered), "", "", "46-220 ms");
    report.row("    master CPU of that, an agent", &each(offering, agents), "", "", "50 us");
    report.row("    the load's own CPU a task", &each(load, tasks), "", "", "50-74 us");
    report.row("    master's peak memory", &mib(proc::memory(master.pid(), "VmHWM")), "", "", "414 MiB");
    Ok(cpu)
}
