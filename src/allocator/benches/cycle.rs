//! What a run of the allocator costs, in the shapes of Mesos's own allocator benchmarks, beside what Mesos 1.11 took for them
//! on a machine of this kind (2 cores, quiet).
//!
//! `cargo bench -p allocator --bench cycle [-- NAME]` prints a table; NAME picks the shapes whose name contains it.
//! Each figure is the processor time of one pass after the state was built, the best of a few where the pass can be repeated.
use std::collections::BTreeSet;
use std::time::Duration;

use allocator::{AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder, Offering};
use base::{AgentId, FrameworkId, Time};
use resources::{Resources, Role, parse_text};
use rustix::time::{ClockId, clock_gettime};

const AGENT: &str = "cpus:24;mem:4096;disk:4096;ports:[31000-32000]";

struct Row {
    shape: String,
    took: Duration,
    /// What was counted, if the figure is for each of many.
    per: Option<usize>,
    mesos: &'static str,
}

/// The processor time that something takes: other work on the machine does not count.
fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = cpu_time();
    let result = work();
    (cpu_time().saturating_sub(start), result)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn now(step: u64) -> Time {
    Time::from_secs(1_000_000 + step)
}

fn text(text: &str) -> Resources {
    parse_text(text, &Role::star()).expect("the text is right")
}

fn agent(at: usize) -> AgentId {
    AgentId::new(&format!("11111111-2222-3333-4444-555555555555-S{at}")).expect("the id is right")
}

fn framework(at: usize) -> FrameworkId {
    FrameworkId::new(&format!("11111111-2222-3333-4444-555555555555-{at:04}")).expect("the id is right")
}

fn options(role: &str) -> FrameworkOptions {
    FrameworkOptions {
        roles: BTreeSet::from([Role::parse(role).expect("the role is right")]),
        ..FrameworkOptions::default()
    }
}

/// Frameworks in `*`, then agents, without any run.
fn cluster(agents: usize, frameworks: usize) -> Allocator {
    let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
    add_frameworks(&mut allocator, frameworks, |_| "*".to_owned());
    add_agents(&mut allocator, agents);
    allocator
}

fn add_frameworks(allocator: &mut Allocator, frameworks: usize, role: impl Fn(usize) -> String) {
    for at in 0..frameworks {
        allocator.add_framework(&framework(at), &options(&role(at)), true, &[]);
    }
}

fn add_agents(allocator: &mut Allocator, agents: usize) {
    let total = text(AGENT);
    for at in 0..agents {
        let hosted = AgentOptions { hostname: format!("agent{at}"), ..AgentOptions::default() };
        allocator.add_agent(&agent(at), hosted, &total, &[]);
    }
}

fn decline(allocator: &mut Allocator, offerings: &[Offering], filter: Option<Filter>, now: Time) {
    for o in offerings {
        let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
        allocator.recover(holder, &o.resources, Held::Offered, filter, now);
    }
}

fn decline_all_for_good(allocator: &mut Allocator) -> usize {
    let forever = Some(Filter { refuse: Filter::MAX_REFUSE });
    let mut declined = 0;
    for step in 0.. {
        let offerings = allocator.allocate_all(now(step));
        if offerings.is_empty() {
            break;
        }
        declined += offerings.len();
        decline(allocator, &offerings, forever, now(step));
    }
    declined
}

fn all_declined(agents: usize, frameworks: usize, mesos: &'static str, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    let (took, declined) = time(|| decline_all_for_good(&mut allocator));
    let shape = format!("{agents} agents x {frameworks} frameworks");
    assert_eq!(allocator.refusal_count() as usize, declined);
    rows.push(Row {
        shape: format!("{shape}: an offer made and declined"),
        took,
        per: Some(declined),
        mesos: "70-100 us",
    });
    let best = (0..20).map(|step| time(|| allocator.allocate_all(now(step)).len()).0).min();
    rows.push(Row {
        shape: format!("{shape}: a cycle, {declined} refusals"),
        took: best.unwrap_or_default(),
        per: None,
        mesos,
    });
    // Everybody is asked about every agent, as if nothing were remembered.
    let (more, less) = (text(AGENT), text("cpus:23;mem:4096;disk:4096;ports:[31000-32000]"));
    let mut best = Duration::MAX;
    for step in 0..5 {
        for total in [&less, &more] {
            for at in 0..agents {
                let hosted = AgentOptions { hostname: format!("agent{at}"), ..AgentOptions::default() };
                allocator.update_agent(&agent(at), hosted, total);
            }
        }
        let (took, offers) = time(|| allocator.allocate_all(now(step)));
        assert!(offers.is_empty());
        best = best.min(took);
    }
    rows.push(Row { shape: format!("{shape}: the same, everybody asked anew"), took: best, per: None, mesos });
    let (took, ()) = time(|| {
        for at in 0..frameworks {
            allocator.suppress(&framework(at), &BTreeSet::new());
        }
    });
    rows.push(Row { shape: format!("{shape}: a SUPPRESS"), took, per: Some(frameworks), mesos: "" });
    let (took, offers) = time(|| {
        allocator.revive(&framework(0), &BTreeSet::new());
        allocator.allocate(now(100)).len()
    });
    assert_eq!(offers, agents);
    rows.push(Row { shape: format!("{shape}: one REVIVE, {offers} offers"), took, per: None, mesos: "" });
}

fn add_and_update(agents: usize, frameworks: usize, mesos: [&'static str; 4], rows: &mut Vec<Row>) {
    let shape = format!("{agents} agents x {frameworks} frameworks");
    let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
    let (took, ()) = time(|| add_frameworks(&mut allocator, frameworks, |_| "*".to_owned()));
    rows.push(Row { shape: format!("{shape}: add the frameworks"), took, per: None, mesos: mesos[0] });
    let (adding, ()) = time(|| add_agents(&mut allocator, agents));
    let (cycle, offers) = time(|| allocator.allocate(now(0)));
    assert_eq!(offers.len(), agents);
    rows.push(Row {
        shape: format!("{shape}: add all agents, with offers"),
        took: adding + cycle,
        per: None,
        mesos: mesos[1],
    });
    rows.push(Row { shape: format!("{shape}: of this, the full cycle"), took: cycle, per: None, mesos: mesos[2] });
    let total = text("cpus:32;mem:4096;disk:4096;ports:[31000-32000]");
    let (took, more) = time(|| {
        for at in 0..agents {
            let hosted = AgentOptions { hostname: format!("agent{at}"), ..AgentOptions::default() };
            allocator.update_agent(&agent(at), hosted, &total);
        }
        allocator.allocate(now(1)).len()
    });
    assert_eq!(more, agents);
    rows.push(Row { shape: format!("{shape}: update all agents, with offers"), took, per: None, mesos: mesos[3] });
}

/// Each agent registers by itself, with a run after each.
fn one_by_one(agents: usize, frameworks: usize, rows: &mut Vec<Row>) {
    let mut allocator = cluster(0, frameworks);
    let total = text(AGENT);
    let (took, offers) = time(|| {
        let mut offers = 0;
        for at in 0..agents {
            allocator.add_agent(&agent(at), AgentOptions::default(), &total, &[]);
            offers += allocator.allocate(now(0)).len();
        }
        offers
    });
    assert_eq!(offers, agents);
    let shape = format!("{agents} agents x {frameworks} frameworks: an agent added, a run after each");
    rows.push(Row { shape, took, per: Some(agents), mesos: "" });
}

fn mostly_silent(agents: usize, frameworks: usize, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    for at in 2..frameworks {
        allocator.suppress(&framework(at), &BTreeSet::new());
    }
    let mut best = Duration::MAX;
    for step in 0..10 {
        let (took, offers) = time(|| allocator.allocate_all(now(step)));
        assert_eq!(offers.len(), agents);
        best = best.min(took);
        decline(&mut allocator, &offers, None, now(step));
    }
    let shape = format!("{agents} x {frameworks}, all but 2 silent: {agents} offers");
    rows.push(Row { shape, took: best, per: None, mesos: "20-23 ms" });
}

fn many_roles(count: usize, rows: &mut Vec<Row>) {
    let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
    add_agents(&mut allocator, count);
    let shape = format!("{count} agents, {count} roles, {count} frameworks");
    let (took, ()) = time(|| add_frameworks(&mut allocator, count, |at| format!("role{at}")));
    rows.push(Row { shape: format!("{shape}: add the frameworks"), took, per: None, mesos: "17.8 s (quota)" });
    let (took, offers) = time(|| allocator.allocate(now(0)));
    assert_eq!(offers.len(), count);
    rows.push(Row { shape: format!("{shape}: {count} offers"), took, per: None, mesos: "7.1 s (quota)" });
    let (took, offers) = time(|| allocator.allocate_all(now(1)));
    assert!(offers.is_empty());
    rows.push(Row { shape: format!("{shape}: an idle cycle"), took, per: None, mesos: "5.6 s (quota)" });
}

fn freed(agents: usize, frameworks: usize, rows: &mut Vec<Row>) {
    let mut allocator = cluster(agents, frameworks);
    let offers = allocator.allocate(now(0));
    for o in &offers {
        let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
        allocator.take_up_offered(holder, &o.resources);
    }
    let task = text("cpus:1;mem:64");
    let (took, made) = time(|| {
        let mut made = 0;
        for o in &offers {
            let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
            allocator.recover(holder, &task, Held::Used, None, now(1));
            made += allocator.allocate(now(1)).len();
        }
        made
    });
    assert_eq!(made, offers.len());
    let shape = format!("{agents} x {frameworks} busy: a task ends, the next offer is made");
    rows.push(Row { shape, took, per: Some(made), mesos: "up to 1 s" });
}

fn memory(agents: usize, frameworks: usize, refusals_each: usize, rows: &mut Vec<Row>) {
    let before = resident();
    let mut allocator = cluster(agents, frameworks);
    let mut left = agents * refusals_each;
    let (took, ()) = time(|| {
        for step in 0.. {
            let offers = allocator.allocate(now(step));
            decline(&mut allocator, &offers, Some(Filter { refuse: Filter::MAX_REFUSE }), now(step));
            left = left.saturating_sub(offers.len());
            if left == 0 {
                break;
            }
        }
    });
    let count = allocator.refusal_count() as usize;
    let shape = format!("{agents} x {frameworks}, {count} refusals ({} MB): each", (resident() - before) >> 20);
    rows.push(Row { shape, took, per: Some(count), mesos: "" });
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.shape.len()).max().unwrap_or_default();
    println!("{:width$}  {:>12}  Mesos 1.11", "shape", "tepui");
    for row in rows {
        let took = match row.per {
            Some(count) => format!("{:.2} us", row.took.as_secs_f64() * 1e6 / count.max(1) as f64),
            None => format!("{:.3} ms", row.took.as_secs_f64() * 1e3),
        };
        println!("{:width$}  {took:>12}  {}", row.shape, row.mesos);
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let mut rows = Vec::new();
    let mut shape = |name: &str, run: &mut dyn FnMut(&mut Vec<Row>)| {
        if name.contains(&wanted) {
            run(&mut rows);
        }
    };
    shape("declined", &mut |rows| all_declined(1_000, 10, "", rows));
    shape("declined", &mut |rows| all_declined(1_000, 50, "240 ms", rows));
    shape("declined", &mut |rows| all_declined(1_000, 200, "1.2 s", rows));
    shape("add", &mut |rows| add_and_update(10_000, 1_000, ["16 ms", "631 ms", "", "430 ms"], rows));
    shape("full", &mut |rows| add_and_update(50_000, 1_000, ["", "", "minutes", ""], rows));
    shape("single", &mut |rows| one_by_one(2_000, 1_000, rows));
    shape("silent", &mut |rows| mostly_silent(1_000, 200, rows));
    shape("roles", &mut |rows| many_roles(3_000, rows));
    shape("freed", &mut |rows| freed(10_000, 200, rows));
    shape("memory", &mut |rows| memory(50_000, 1_000, 100, rows));
    print(&rows);
}
