//! Measures the operations that the allocator and the master do most: nanoseconds each, on a typical agent (cpus, mem,
//! disk, gpus, ports) and a crowded one (with reservations and volumes).
//!
//! `cargo bench -p resources`; a name as argument runs only the benchmarks whose names contain it.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use resources::{Amount, Format, Name, Reservation, Resource, Resources, Role, from_proto, parse_text};

/// Runs `f` in short batches for a third of a second and prints the fastest, which other work on the machine hardly
/// affects.
fn measure<T>(name: &str, mut f: impl FnMut() -> T) {
    const BATCH: u32 = 200;
    if std::env::args().skip(1).any(|arg| !arg.starts_with('-') && !name.contains(&arg)) {
        return;
    }
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_millis() < 333 {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(f());
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    println!("{name:<58} {best:>9.1} ns");
}

fn text(text: &str) -> Resources {
    parse_text(text, &Role::star()).expect("a valid text")
}

fn main() {
    let dev = Role::parse("dev/team").expect("a valid role");
    let agent = text("cpus:64;mem:262144;disk:1048576;gpus:4;ports:[31000-32000]");
    let task = text("cpus:0.5;mem:512;ports:[31005-31006]");
    let offered = agent.allocated(&dev);
    let allocated_task = task.allocated(&dev);
    let crowded = crowded(&agent);
    println!(
        "entry: {} bytes; typical agent: {} entries; crowded: {}",
        size_of::<Resource>(),
        agent.len(),
        crowded.len()
    );

    measure("clone a typical agent", || agent.clone());
    measure("clone and subtract a task", || &agent - &task);
    measure("clone and subtract a task, allocated", || &offered - &allocated_task);
    let mut running = offered.clone();
    measure("subtract and add a task in place", || {
        running -= &allocated_task;
        running += &allocated_task;
    });
    measure("contains a task", || offered.contains(&allocated_task));
    measure("contains a task, crowded", || crowded.contains(&task));
    measure("clone and subtract a task, crowded", || &crowded - &task);
    measure("allocate a copy to a role", || agent.allocated(&dev));
    measure("take the allocation off a copy", || offered.unallocated());
    measure("equal", || offered == offered.clone());
    measure("quantities", || agent.quantities());
    measure("quantities, crowded", || crowded.quantities());
    measure("reserved or unreserved for a role, crowded", || crowded.allocatable_to(&dev));
    measure("unreserved, crowded", || crowded.unreserved());
    let (whole, part) = (agent.quantities(), task.quantities());
    let mut sum = whole.clone();
    measure("add and subtract quantities", || {
        sum += &part;
        sum -= &part;
    });
    measure("dominant share of quantities", || part.ratio(&whole));
    let messages = offered.to_proto(Format::PostRefinement);
    measure("to messages", || offered.to_proto(Format::PostRefinement));
    measure("to messages, older format", || offered.to_proto(Format::PreRefinement));
    measure("from messages", || from_proto(&messages));
    measure("summary", || offered.summary());
    measure("visit the summary", || offered.visit_summary(|name, value| _ = black_box((name, value))));
    measure("text", || offered.to_string());
    measure("parse the flag", || text("cpus:64;mem:262144;disk:1048576;gpus:4;ports:[31000-32000]"));
    let mut amount = Resource::scalar(Name::Cpus, Amount::from_units(4));
    measure("shrink one", || amount.shrink(Amount::MILLI));
}

/// Adds a dozen reservations for teams to the resources of an agent.
fn crowded(agent: &Resources) -> Resources {
    let mut all = agent.clone();
    for team in ["a", "b", "c", "d", "dev", "dev/team"] {
        let reservation = Reservation::dynamic(Role::parse(team).expect("a valid role"), Some("ops".into()), None);
        all += text("cpus:2;mem:1024").push_reservation(&reservation);
    }
    all
}
