//! Measures the cost of a group of three masters (`--peers`), and the time that a cluster is without a leader.
//!
//! Registry writes and the registration of fake agents are measured with one master and with three. Then the leader is
//! killed or stopped, round after round, with a real agent and a framework: until another master has accepted the
//! framework, and until a task that the framework launches there has reported that it runs.
//!
//! Run with `cargo bench --bench masters`; `--quick` does less, `--rounds=N`, `--agents=N` and `--writes=N` set other
//! numbers.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::io::Write;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use protos::mesos::v1::TaskState;
use support::agents::Fleet;
use support::daemon::{Daemon, free_port};
use support::http::Connection;
use support::report::{Report, each, millis};
use support::scheduler::{Encoding, Scheduler, task};
use support::{number, quantile, quick, wait_for};

/// A group of three masters with the same list of peers.
struct Group {
    masters: Vec<Daemon>,
    list: String,
}

impl Group {
    fn start(flags: &[&str]) -> Result<Group> {
        let ports = (0..3).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
        let list = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
        let peers = format!("--peers={list}");
        let all: Vec<&str> = [&["--hostname=127.0.0.1", &peers], flags].concat();
        let start = |port: &u16| Daemon::at(*port, "master", &all);
        let mut masters = ports.iter().map(start).collect::<Result<Vec<_>>>()?;
        masters.iter_mut().try_for_each(Daemon::wait_until_healthy)?;
        Ok(Group { masters, list })
    }

    /// Returns the index of the leader.
    fn leader(&self) -> Result<usize> {
        let mut found = None;
        let leads = || self.masters.iter().position(|master| leads(master.address).unwrap_or(false));
        wait_for("a master leads", || {
            found = leads();
            found.is_some()
        })?;
        found.context("a master leads")
    }

    fn settle(&self) {
        self.masters.iter().for_each(Daemon::settle);
    }

    fn cpu(&self) -> Duration {
        self.masters.iter().map(Daemon::cpu).sum()
    }
}

fn leads(address: SocketAddrV4) -> Result<bool> {
    let answer = Connection::open(address)?.get("/metrics/snapshot")?;
    let metrics: serde_json::Value = serde_json::from_slice(&answer.body)?;
    Ok(metrics["master/elected"] == 1.0)
}

fn main() -> Result<()> {
    let report = Report::new("three masters on loopback, beside one master alone");
    writes(&report)?;
    registrations(&report)?;
    let rounds = number("rounds", if quick() { 5 } else { 30 });
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        interruptions(&report, "", signal, rounds, &[], "1secs")?;
        let short = ", --peer_timeout=300ms, agent's backoff 50ms";
        interruptions(&report, short, signal, rounds, &["--peer_timeout=300ms"], "50ms")?;
    }
    Ok(())
}

/// Sets a weight repeatedly; each time is one registry write.
fn writes(report: &Report) -> Result<()> {
    let count = number("writes", if quick() { 200 } else { 2_000 });
    let alone = Daemon::start("master", &["--registry=replicated_log", "--hostname=127.0.0.1"])?;
    let group = Group::start(&[])?;
    let leader = group.masters[group.leader()?].address;
    for (name, address, least) in [("alone", alone.address, ""), ("three peers", leader, "5 ms")] {
        let mut times = weights(address, count)?;
        report.note(&format!("a write of the registry, {name}, p50"), &millis(quantile(&mut times, 0.5)));
        report.row("    p99", &millis(quantile(&mut times, 0.99)), least, "", "");
    }
    Ok(())
}

fn weights(master: SocketAddrV4, count: usize) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(master)?;
    let mut times = Vec::new();
    for number in 0..count {
        let body = format!(r#"[{{"role": "r", "weight": {}}}]"#, 1 + number % 7);
        let head = format!("PUT /weights HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n\r\n", body.len());
        let start = Instant::now();
        connection.socket()?.write_all(format!("{head}{body}").as_bytes())?;
        let answer = connection.answer()?;
        times.push(start.elapsed());
        if answer.status != 200 {
            bail!("PUT /weights was answered {}", answer.status);
        }
    }
    Ok(times)
}

/// Registers all agents at once.
fn registrations(report: &Report) -> Result<()> {
    let count = number("agents", if quick() { 1_000 } else { 10_000 });
    let resources = [("cpus", 4.0), ("mem", 4096.0)];
    let alone = Daemon::start("master", &["--registry=replicated_log", "--hostname=127.0.0.1"])?;
    alone.settle();
    let (before, start) = (alone.cpu(), Instant::now());
    let fleet = Fleet::start(alone.address, count, &resources, false)?;
    fleet.wait_registered()?;
    report.note(&format!("{count} agents register, alone"), &millis(start.elapsed()));
    alone.settle();
    report.note("    CPU of each", &each(alone.cpu() - before, count));
    drop((fleet, alone));

    let group = Group::start(&[])?;
    let leader = group.leader()?;
    group.settle();
    let (before, all, start) = (group.masters[leader].cpu(), group.cpu(), Instant::now());
    let fleet = Fleet::start(group.masters[leader].address, count, &resources, false)?;
    fleet.wait_registered()?;
    report.row(&format!("{count} agents register, three peers"), &millis(start.elapsed()), "alone + 20 %", "", "");
    group.settle();
    report.note("    CPU of the leader for each", &each(group.masters[leader].cpu() - before, count));
    report.note("    of all three", &each(group.cpu() - all, count));
    Ok(())
}

/// Sends a signal to the leader, `rounds` times, and restarts it.
fn interruptions(
    report: &Report,
    settings: &str,
    signal: Signal,
    rounds: usize,
    flags: &[&str],
    backoff: &str,
) -> Result<()> {
    let mut group = Group::start(flags)?;
    let (of, backoff) = (format!("--master={}", group.list), format!("--registration_backoff_factor={backoff}"));
    let agent = ["--resources=cpus:4;mem:4096;disk:4096", "--hostname=127.0.0.1", &of, &backoff];
    let _agent = Daemon::start("agent", &agent)?;
    let mut leader = group.leader()?;
    let mut scheduler = Scheduler::subscribe(group.masters[leader].address, Encoding::Json, "bench")?;
    run_task(&mut scheduler, 0)?;
    let (mut accepted, mut runs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let all: Vec<SocketAddrV4> = group.masters.iter().map(|master| master.address).collect();
        let id = scheduler.id.clone();
        let start = Instant::now();
        group.masters[leader].restart_after(signal)?;
        scheduler = subscribe_with_any(&all, &id)?;
        accepted.push(start.elapsed());
        run_task(&mut scheduler, round)?;
        runs.push(start.elapsed());
        group.masters[leader].wait_until_healthy()?;
        leader = group.leader()?;
        // Lets the others detect the restarted master before the next round.
        std::thread::sleep(Duration::from_millis(1500));
    }
    let name = signal.as_str();
    let (least, most) = match (signal, settings) {
        (Signal::SIGKILL, "") => ("1.5 s", "3 s"),
        (Signal::SIGKILL, _) => ("0.5 s", ""),
        _ => ("200 ms", ""),
    };
    let (first, second) = if signal == Signal::SIGKILL { ("", least) } else { (least, "") };
    report.note(&format!("{name} of the leader, {rounds} rounds{settings}"), "");
    report.row(
        "    until the framework is subscribed again, p50",
        &millis(quantile(&mut accepted, 0.5)),
        first,
        "",
        "",
    );
    report.note("    p99", &millis(quantile(&mut accepted, 0.99)));
    report.row("    until a task that was offered then runs, p50", &millis(quantile(&mut runs, 0.5)), second, "", "");
    report.row("    p99", &millis(quantile(&mut runs, 0.99)), most, "", "");
    Ok(())
}

/// Subscribes with the first master that accepts it.
fn subscribe_with_any(masters: &[SocketAddrV4], id: &protos::mesos::v1::FrameworkId) -> Result<Scheduler> {
    let mut subscribed = None;
    wait_for("a master accepts the framework", || {
        subscribed = masters.iter().find_map(|master| Scheduler::subscribe_as_known(*master, id.clone(), "bench").ok());
        subscribed.is_some()
    })?;
    subscribed.context("a master accepts the framework")
}

/// Launches a task on the next offer and waits until it runs. Offers of an agent that reregisters are no longer valid:
/// then the task is launched on the next one.
fn run_task(scheduler: &mut Scheduler, round: usize) -> Result<()> {
    let mut launched = false;
    loop {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|offers| offers.offers) {
            if launched {
                scheduler.decline(vec![offer.id], Some(Duration::ZERO));
                continue;
            }
            launched = true;
            let needs = [("cpus", 0.1), ("mem", 32.0)];
            scheduler.launch(&offer, vec![task(format!("t{round}"), &offer, "bench", "true", &needs)]);
        }
        let Some(update) = event.update else { continue };
        scheduler.acknowledge(&update.status);
        let is_ours = update.status.task_id.value == format!("t{round}");
        match TaskState::try_from(update.status.state)? {
            TaskState::TaskRunning if is_ours => return scheduler.flush(),
            TaskState::TaskLost if is_ours => launched = false,
            TaskState::TaskFailed if is_ours => bail!("{:?}", update.status.message),
            _ => {}
        }
    }
}
