//! Measures the cost of reads of a big cluster, and whether they delay other requests. Reads /state with 10,000 fake
//! agents and 100,000 running tasks, alone; and /health while four clients read /state in a loop.
//!
//! Run with `cargo bench --bench reads`; `--quick` takes a tenth of it all; `--agents=N` and `--tasks=N` set other
//! numbers.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use support::agents::Fleet;
use support::daemon::Daemon;
use support::http::Connection;
use support::report::{Report, mib, millis, rate};
use support::scheduler::{Encoding, Scheduler};
use support::{number, proc, quantile, quick};

fn main() -> Result<()> {
    let agents = number("agents", if quick() { 1_000 } else { 10_000 });
    let tasks = number("tasks", agents * 10);
    let report = Report::new(&format!("reads of a master with {agents} agents and {tasks} running tasks"));
    let master = Daemon::master(&[])?;
    let resources = [("cpus", 100.0), ("mem", 102_400.0), ("disk", 102_400.0)];
    let fleet = Fleet::start(master.address, agents, &resources, false)?;
    fleet.wait_registered()?;
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, "bench")?;
    scheduler.fill(agents, tasks)?;
    report.row("master's resident memory", &mib(proc::memory(master.pid(), "VmRSS")), "", "", "1813 MiB");

    for path in ["/state", "/slaves", "/state-summary", "/tasks?limit=1000000", "/metrics/snapshot"] {
        alone(&report, &master, path)?;
    }
    beside_readers(&report, &master)?;
    report.row("master's peak memory", &mib(proc::memory(master.pid(), "VmHWM")), "", "", "3214 MiB");
    // Keeps the stream open until here.
    scheduler.flush()
}

/// Measures eight reads, one after the other, without other load. Each requests something new, so that none is answered
/// with the cached document of another one.
fn alone(report: &Report, master: &Daemon, path: &str) -> Result<()> {
    let mut connection = Connection::open(master.address)?;
    let reads = 8;
    let before = master.cpu();
    let mut times = Vec::new();
    let mut size = 0;
    let mark = if path.contains('?') { '&' } else { '?' };
    for number in 0..reads {
        let start = Instant::now();
        let answer = connection.get(&format!("{path}{mark}nobody_knows={number}"))?;
        times.push(start.elapsed());
        if answer.status != 200 {
            bail!("GET {path} was answered {}", answer.status);
        }
        size = answer.body.len();
    }
    let cpu = (master.cpu() - before) / reads;
    let figures: [&str; 3] = match path {
        "/state" => ["250 ms", "100 ms", "851 ms"],
        "/slaves" => ["", "", "217 ms"],
        "/state-summary" => ["", "", "413 ms"],
        "/metrics/snapshot" => ["", "", "480 ms"],
        _ => [""; 3],
    };
    report.row(
        &format!("GET {path}, p50 of {reads}"),
        &millis(quantile(&mut times, 0.5)),
        figures[0],
        figures[1],
        figures[2],
    );
    report.note("    the longest", &millis(quantile(&mut times, 1.0)));
    let mesos_cpu = if path == "/state" { "984 ms" } else { "" };
    report.row("    master CPU a read", &millis(cpu), "", "", mesos_cpu);
    let mesos_size = if path == "/state" { "41.2 MB" } else { "" };
    report.row("    size", &format!("{:.1} MB", size as f64 / 1e6), "", "", mesos_size);
    Ok(())
}

/// Measures /health alone, and while four clients read /state without a pause.
fn beside_readers(report: &Report, master: &Daemon) -> Result<()> {
    let mut quiet = health(master, Duration::from_millis(500))?;
    report.row("/health alone, p50", &millis(quantile(&mut quiet, 0.5)), "", "", "0.21 ms");
    let over = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (over, reads, address) = (over.clone(), reads.clone(), master.address);
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut connection = Connection::open(address)?;
                while !over.load(Ordering::Relaxed) {
                    connection.skip("/state")?;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        })
        .collect();
    let (start, before) = (Instant::now(), master.cpu());
    let mut loaded = health(master, Duration::from_secs(if quick() { 2 } else { 10 }))?;
    let (wall, cpu) = (start.elapsed(), master.cpu() - before);
    over.store(true, Ordering::Relaxed);
    let count = reads.load(Ordering::Relaxed);
    for client in clients {
        match client.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("a reader panicked"),
        }
    }
    report.row("/health beside four readers of /state, p50", &millis(quantile(&mut loaded, 0.5)), "", "", "3423 ms");
    report.row(
        "/health beside four readers of /state, p99",
        &millis(quantile(&mut loaded, 0.99)),
        "20 ms",
        "5 ms",
        "4340 ms",
    );
    report.note("    the longest", &millis(quantile(&mut loaded, 1.0)));
    report.row("    reads of /state a second meanwhile", &rate(count, wall), "", "", "0.84 /s");
    report.note("    master, cores", &format!("{:.2}", cpu.as_secs_f64() / wall.as_secs_f64()));
    Ok(())
}

/// Returns the time of each GET /health, one every 2 ms.
fn health(master: &Daemon, span: Duration) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(master.address)?;
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < span {
        let asked = Instant::now();
        connection.get("/health")?;
        times.push(asked.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(times)
}
