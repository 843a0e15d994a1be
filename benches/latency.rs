//! Measures the time of one task on an idle cluster. Each round subscribes a framework, launches `true` on the first
//! offer, waits until it runs and has finished, and tears the framework down.
//!
//! Run with `cargo bench --bench latency`; 50 rounds, `--quick` 10.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use protos::mesos::v1::TaskState;
use support::daemon::Daemon;
use support::report::{Report, millis};
use support::scheduler::{Encoding, Scheduler, task};
use support::{number, quantile, quick};

/// Stages of a round, which are timed separately.
const STAGES: [(&str, [&str; 3]); 5] = [
    ("SUBSCRIBE to SUBSCRIBED", ["", "", "1.5 ms"]),
    ("SUBSCRIBE to the first offer", ["", "", "1.7 ms"]),
    ("ACCEPT to RUNNING", ["15 ms", "8 ms", "86 ms"]),
    ("RUNNING to FINISHED", ["", "", "90 ms"]),
    ("whole round, with TEARDOWN", ["30 ms", "15 ms", "178 ms"]),
];

fn main() -> Result<()> {
    let rounds = number("rounds", if quick() { 10 } else { 50 });
    let report = Report::new(&format!("one task (`true`) on an idle cluster, {rounds} rounds"));
    let master = Daemon::master(&[])?;
    let agent = Daemon::agent(&master, "cpus:4;mem:4096;disk:4096;ports:[]")?;
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        // The first round waits for the agent to register, and warms the file cache.
        round(&master, encoding)?;
        let mut times = [const { Vec::new() }; 5];
        for _ in 0..rounds {
            for (all, time) in times.iter_mut().zip(round(&master, encoding)?) {
                all.push(time);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        for (all, (stage, [least, promise, mesos])) in times.iter_mut().zip(STAGES) {
            let name = format!("{encoding:?}: {stage}");
            report.row(&format!("{name}, p50"), &millis(quantile(all, 0.5)), least, promise, mesos);
            report.note("    p99", &millis(quantile(all, 0.99)));
        }
    }
    drop(agent);
    Ok(())
}

fn round(master: &Daemon, encoding: Encoding) -> Result<[Duration; 5]> {
    let start = Instant::now();
    let mut scheduler = Scheduler::subscribe(master.address, encoding, "bench")?;
    let subscribed = start.elapsed();
    let (mut offered, mut accepted, mut running) = (None, None, None);
    loop {
        let event = scheduler.event()?;
        for offer in event.offers.into_iter().flat_map(|o| o.offers) {
            if offered.is_some() {
                continue;
            }
            offered = Some(start.elapsed());
            let needs = [("cpus", 0.1), ("mem", 32.0)];
            scheduler.launch(&offer, vec![task("t".to_owned(), &offer, "bench", "true", &needs)]);
            accepted = Some(start.elapsed());
        }
        let Some(update) = event.update else { continue };
        scheduler.acknowledge(&update.status);
        match TaskState::try_from(update.status.state)? {
            TaskState::TaskStarting => {}
            TaskState::TaskRunning => running = Some(start.elapsed()),
            TaskState::TaskFinished => break,
            state => bail!("the task ended as {state:?}: {:?}", update.status.message),
        }
    }
    let finished = start.elapsed();
    scheduler.teardown()?;
    let [offered, accepted, running] = [offered, accepted, running].map(Option::unwrap_or_default);
    Ok([subscribed, offered, running.saturating_sub(accepted), finished.saturating_sub(running), start.elapsed()])
}
