//! Parts that the shapes share: clusters, clocks, answers to offers.

pub mod growth;
pub mod report;
pub mod shapes;
pub mod stories;

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::{AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder, Offering};
use base::{AgentId, FrameworkId, Time};
use resources::{Resources, Role, parse_text};
use rustix::time::{ClockId, clock_gettime};

/// Resources of an agent of Mesos's own benchmarks.
pub const AGENT: &str = "cpus:24;mem:4096;disk:4096;ports:[31000-32000]";

/// Measures the processor time of some work: other work on the machine does not count.
pub fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = cpu_time();
    let result = work();
    (cpu_time().saturating_sub(start), result)
}

pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

pub fn now(step: u64) -> Time {
    Time::from_secs(1_000_000 + step)
}

pub fn text(text: &str) -> Resources {
    parse_text(text, &Role::star()).expect("the text is right")
}

pub fn agent(at: usize) -> AgentId {
    AgentId::new(&format!("11111111-2222-3333-4444-555555555555-S{at}")).expect("the id is right")
}

pub fn framework(at: usize) -> FrameworkId {
    FrameworkId::new(&format!("11111111-2222-3333-4444-555555555555-{at:04}")).expect("the id is right")
}

pub fn options(role: &str) -> FrameworkOptions {
    FrameworkOptions {
        roles: BTreeSet::from([Role::parse(role).expect("the role is right")]),
        ..FrameworkOptions::default()
    }
}

/// Returns an allocator with frameworks in `*` and agents, without any run.
pub fn cluster(agents: usize, frameworks: usize) -> Allocator {
    let mut allocator = Allocator::new(Config { seed: 1, ..Config::default() });
    add_frameworks(&mut allocator, frameworks, |_| "*".to_owned());
    add_agents(&mut allocator, agents);
    allocator
}

pub fn add_frameworks(allocator: &mut Allocator, frameworks: usize, role: impl Fn(usize) -> String) {
    for at in 0..frameworks {
        allocator.add_framework(&framework(at), &options(&role(at)), true, &[]);
    }
}

pub fn add_agents(allocator: &mut Allocator, agents: usize) {
    let total = text(AGENT);
    for at in 0..agents {
        let hosted = AgentOptions { hostname: format!("agent{at}"), ..AgentOptions::default() };
        allocator.add_agent(&agent(at), hosted, &total, &[]);
    }
}

pub fn decline(allocator: &mut Allocator, offerings: &[Offering], filter: Option<Filter>, now: Time) {
    for o in offerings {
        let holder = Holder { framework: &o.framework, role: &o.role, agent: &o.agent };
        allocator.recover(holder, &o.resources, Held::Offered, filter, now);
    }
}

/// Returns the resident memory of this process, in bytes.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

/// Returns a line with few points, which are drawn.
pub fn dotted(name: &str, points: Vec<(f64, f64)>) -> plot::Line {
    plot::Line { dots: true, ..plot::Line::new(name, points) }
}
