//! Measures runs in which every role has a quota, in the shape of Mesos's own benchmark (3,000 agents, 3,000 roles with
//! quota, 3,000 frameworks), and in expensive shapes: limits reached everywhere, and all free resources withheld.
//!
//! `cargo bench -p allocator --bench quota` prints a table. Processor time of one pass.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::{AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder, Offering, Quota};
use base::{AgentId, FrameworkId, Time};
use resources::{Resources, Role, parse_quantities, parse_text};
use rustix::time::{ClockId, clock_gettime};

const COUNT: usize = 3_000;

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn report<T>(what: &str, limit: &str, work: impl FnOnce() -> T) -> T {
    let start = cpu_time();
    let result = work();
    let took = cpu_time().saturating_sub(start).as_secs_f64() * 1e3;
    println!("{what:70} {took:>10.3} ms  {limit}");
    result
}

fn now(step: u64) -> Time {
    Time::from_secs(1_000_000 + step)
}

fn text(text: &str) -> Resources {
    parse_text(text, &Role::star()).expect("the text is right")
}

fn role(at: usize) -> Role {
    Role::parse(&format!("role{at}")).expect("the role is right")
}

fn framework(at: usize) -> FrameworkId {
    FrameworkId::new(&format!("11111111-2222-3333-4444-555555555555-{at:04}")).expect("the id is right")
}

fn add_frameworks(allocator: &mut Allocator) {
    for at in 0..COUNT {
        let options = FrameworkOptions { roles: BTreeSet::from([role(at)]), ..FrameworkOptions::default() };
        allocator.add_framework(&framework(at), &options, true, &[]);
    }
}

fn cluster(guarantee: &str, limit: Option<&str>, large: usize) -> Allocator {
    let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
    let total = text("cpus:24;mem:4096;disk:4096;ports:[31000-32000]");
    for at in 0..COUNT {
        let id = AgentId::new(&format!("11111111-2222-3333-4444-555555555555-S{at}")).expect("the id is right");
        allocator.add_agent(&id, AgentOptions::default(), &total, &[]);
    }
    for at in 0..COUNT {
        // A few roles have guarantees of several agents.
        let guarantee = if at < large { "cpus:120;mem:20480" } else { guarantee };
        let guarantees = parse_quantities(guarantee).expect("the text is right");
        let limits = limit.map(|limit| parse_quantities(limit).expect("the text is right"));
        let limits = limits.iter().flat_map(resources::Quantities::iter).collect();
        allocator.set_quota(&role(at), Quota { guarantees, limits });
    }
    allocator
}

fn give_back(allocator: &mut Allocator, offers: &[Offering], filter: Option<Filter>) {
    for o in offers {
        let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
        allocator.recover(holder, &o.resources, Held::Offered, filter, now(1));
    }
}

fn main() {
    let mut allocator = cluster("cpus:12;mem:2048", None, 125);
    report("3,000 roles with quota: add 3,000 frameworks", "30 ms; Mesos 17.8 s", || add_frameworks(&mut allocator));
    let offers = report("  the allocating cycle", "40 ms; Mesos 7.1 s", || allocator.allocate(now(0)));
    println!("  ({} offers)", offers.len());
    let more = report("  an idle cycle", "1 ms; Mesos 5.6 s", || allocator.allocate_all(now(1)));
    println!("  ({} offers)", more.len());
    give_back(&mut allocator, &offers, None);
    report("  the cycle after all came back", "40 ms", || allocator.allocate_all(now(2)).len());

    let mut allocator = cluster("cpus:1;mem:128", Some("cpus:1;mem:128;disk:0"), 0);
    add_frameworks(&mut allocator);
    let offers = report("guarantee and limit are small: the allocating cycle", "", || allocator.allocate(now(0)));
    println!("  ({} offers)", offers.len());
    report("  an idle cycle", "", || allocator.allocate_all(now(1)).len());
    let one = &offers[..1];
    give_back(&mut allocator, one, Some(Filter::default()));
    report("  one offer came back", "", || allocator.allocate_all(now(2)).len());

    let mut allocator = cluster("cpus:48;mem:8192", None, 0);
    add_frameworks(&mut allocator);
    let offers = report("more is guaranteed than there is: the allocating cycle", "", || allocator.allocate(now(0)));
    println!("  ({} offers)", offers.len());
    give_back(&mut allocator, &offers, Some(Filter { refuse: Filter::MAX_REFUSE }));
    let offers = report("  refused for good: the next cycle", "", || allocator.allocate_all(now(2)));
    println!("  ({} offers)", offers.len());

    let mut allocator = cluster("cpus:24;mem:4096", None, 0);
    let lone = FrameworkOptions { roles: BTreeSet::from([Role::star()]), ..FrameworkOptions::default() };
    allocator.add_framework(&framework(9_999), &lone, true, &[]);
    let offers =
        report("everything is withheld for roles without frameworks: a cycle", "", || allocator.allocate(now(0)));
    println!("  ({} offers)", offers.len());
    allocator.set_quota(&role(0), Quota::default());
    let offers = report("  a little less is withheld: the next cycle", "", || allocator.allocate(now(1)));
    println!("  ({} offers)", offers.len());
}
