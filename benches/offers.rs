//! Measures the cost of an offer for the master. 10 frameworks decline everything with refuse_seconds 0, one call for
//! every event, on 1,000 fake agents with an allocation interval of 50 ms.
//!
//! Run with `cargo bench --bench offers`; `--quick` measures for 1 s instead of 5.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use support::agents::Fleet;
use support::daemon::Daemon;
use support::report::{Report, each, rate};
use support::scheduler::{Encoding, Scheduler};
use support::{number, option, proc, quick};

/// Counts of offers and events that the frameworks have received.
#[derive(Default)]
struct Seen {
    offers: AtomicUsize,
    events: AtomicUsize,
    over: AtomicBool,
}

fn main() -> Result<()> {
    let agents = number("agents", 1_000);
    let frameworks = number("frameworks", 10);
    let interval = format!("--allocation_interval={}", option("interval").as_deref().unwrap_or("50ms"));
    let report = Report::new(&format!("{frameworks} frameworks decline everything of {agents} agents, {interval}"));
    let master = Daemon::master(&[&interval])?;
    let resources = [("cpus", 16.0), ("mem", 65_536.0), ("disk", 65_536.0)];
    let fleet = Fleet::start(master.address, agents, &resources, true)?;
    fleet.wait_registered()?;
    let seen = Arc::new(Seen::default());
    let decliners = (0..frameworks).map(|n| decliner(&master, n, &seen)).collect::<Result<Vec<_>>>()?;

    std::thread::sleep(Duration::from_millis(500));
    let before = (master.cpu(), proc::cpu(std::process::id()), counts(&seen), Instant::now());
    std::thread::sleep(Duration::from_secs(if quick() { 1 } else { 5 }));
    let (offers, events) = counts(&seen);
    let (offers, events, wall) = (offers - before.2.0, events - before.2.1, before.3.elapsed());
    let (cpu, load) = (master.cpu() - before.0, proc::cpu(std::process::id()) - before.1);

    seen.over.store(true, Ordering::Relaxed);
    for decliner in decliners {
        match decliner.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("a framework's thread panicked"),
        }
    }
    report.row("master CPU an offer made and declined", &each(cpu, offers), "15 us", "4 us", "70-100 us");
    report.row("offers a second", &rate(offers, wall), "", "", "8350 /s");
    report.note("events a second", &rate(events, wall));
    let cores = |time: Duration| format!("{:.2} cores", time.as_secs_f64() / wall.as_secs_f64());
    report.row("the master's share of a core", &cores(cpu), "", "", "0.69 cores");
    report.note("the load's own", &cores(load));
    Ok(())
}

fn counts(seen: &Seen) -> (usize, usize) {
    (seen.offers.load(Ordering::Relaxed), seen.events.load(Ordering::Relaxed))
}

/// Starts a framework with a role of its own, in a thread of its own, that declines all offers.
fn decliner(master: &Daemon, number: usize, seen: &Arc<Seen>) -> Result<JoinHandle<Result<()>>> {
    let mut scheduler = Scheduler::subscribe(master.address, Encoding::Protobuf, &format!("role{number}"))?;
    let seen = seen.clone();
    Ok(std::thread::spawn(move || {
        while !seen.over.load(Ordering::Relaxed) {
            let event = scheduler.event()?;
            if let Some(offers) = event.offers {
                let ids: Vec<_> = offers.offers.into_iter().map(|offer| offer.id).collect();
                seen.offers.fetch_add(ids.len(), Ordering::Relaxed);
                seen.events.fetch_add(1, Ordering::Relaxed);
                scheduler.decline(ids, Some(Duration::ZERO));
            }
        }
        Ok(())
    }))
}
