//! Measures placement: 10,000 waiting tasks against the offers of 1,000 agents, for each policy; and the time of the
//! whole scheduler from the offers to the calls that launch the tasks.
//!
//! `cargo bench -p binpack` prints the fastest round (the one that other work disturbed least), the median and the
//! slowest. The promise is 20 ms for best fit.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use binpack::core::{Core, Request};
use binpack::job::{Job, Kind};
use binpack::place::{Policy, place};
use binpack::{Knobs, Need};
use sdk::base::Time;
use sdk::resources::{Role, parse_text};
use sdk::task::to_v1;
use sdk::v1::{AgentId, FrameworkId, Offer, OfferId};
use sdk::{Calls, Event, Scheduler};

const TASKS: usize = 10_000;
const AGENTS: usize = 1_000;
const ROUNDS: usize = 15;

/// Pseudorandom numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> i64 {
        (sdk::base::split_mix(&mut self.0) % end) as i64
    }
}

/// Waiting tasks and free resources of a measurement.
struct Case {
    name: &'static str,
    queue: Vec<Need>,
    rooms: Vec<Need>,
}

/// Returns tasks that all differ, and partly used agents, on which some of the tasks do not fit.
fn mixed() -> Case {
    let mut numbers = Numbers(1);
    let mut task = || Need([100 + numbers.below(20) * 100, (32 + numbers.below(60) * 32) * 1_000, 0, 0, 0]);
    let queue = (0..TASKS).map(|_| task()).collect();
    let mut numbers = Numbers(2);
    let mut room =
        || Need([1_000 + numbers.below(15_000), (1_024 + numbers.below(15_000)) * 1_000, 100_000_000, 0, 1_000_000]);
    Case { name: "10,000 different tasks", queue, rooms: (0..AGENTS).map(|_| room()).collect() }
}

/// Returns the tasks of an array job on equal agents.
fn alike() -> Case {
    let room = Need([16_000, 32_768_000, 100_000_000, 0, 1_000_000]);
    Case { name: "10,000 like tasks", queue: vec![Need::of(1.0, 1_024.0); TASKS], rooms: vec![room; AGENTS] }
}

/// Returns more tasks than fit, with a shortage of one resource: most tasks are examined without effect.
fn full() -> Case {
    let Case { queue, .. } = mixed();
    let mut numbers = Numbers(3);
    let mut room = || Need([numbers.below(2_000), (1_024 + numbers.below(15_000)) * 1_000, 100_000_000, 0, 0]);
    Case { name: "a cluster nearly full", queue, rooms: (0..AGENTS).map(|_| room()).collect() }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn time(policy: Policy, case: &Case) -> (usize, Duration) {
    let began = Instant::now();
    let places = place(policy, black_box(&case.queue), black_box(&case.rooms));
    let took = began.elapsed();
    (places.iter().flatten().count(), took)
}

/// Returns the time from the arrival of the offers to the calls: placement, selection of resources and ports, building
/// of tasks, saving.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn whole(jobs: Vec<Job>) -> Duration {
    let (mut core, mut calls, now) = (Core::new(Knobs::default()), Calls::default(), Time::from_secs(1));
    let framework_id = FrameworkId { value: "F".into() };
    core.on_event(Event::Subscribed { framework_id, master: None, again: false }, now, &mut calls);
    // The request is not refused: jobs and tasks are below their limits.
    let _ = core.request(Request::Submit(jobs), now, &mut calls);
    let role = Role::star();
    let resources = parse_text("cpus:16;mem:32768;disk:100000;ports:[31000-32000]", &role).unwrap_or_default();
    let offer = |n: usize| Offer {
        id: OfferId { value: format!("O{n}").into() },
        agent_id: AgentId { value: format!("S{n}").into() },
        hostname: format!("host{n}"),
        resources: to_v1(&resources),
        ..Default::default()
    };
    let offers: Vec<Offer> = (0..AGENTS).map(offer).collect();
    let began = Instant::now();
    core.on_event(Event::Offers(black_box(offers)), now, &mut calls);
    let took = began.elapsed();
    black_box(calls);
    took
}

/// Prints the time of the whole scheduler, with one array and with as many jobs as tasks.
fn print_whole() {
    let Case { queue, .. } = mixed();
    let array = Job { kind: Kind::Array, count: 10_000, ..Job::new("array", "true", Need::of(1.0, 1_024.0)) };
    let jobs: Vec<Job> =
        (0..).zip(queue).map(|(n, need): (u32, Need)| Job::new(&format!("job{n}"), "true", need)).collect();
    for (name, jobs) in [("one array of 10,000", vec![array]), ("10,000 jobs", jobs)] {
        let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| whole(jobs.clone())).collect();
        rounds.sort_unstable();
        let (median, slowest) = (rounds[ROUNDS / 2].as_secs_f64() * 1e3, rounds[ROUNDS - 1].as_secs_f64() * 1e3);
        let fastest = rounds[0].as_secs_f64() * 1e3;
        println!(
            "whole scheduler, {name:22} offers to calls      fastest {fastest:6.2} ms  median {median:6.2} ms  \
             slowest {slowest:6.2} ms"
        );
    }
}

fn main() {
    println!("placement: {TASKS} waiting tasks against {AGENTS} offers, {ROUNDS} rounds each");
    for case in [mixed(), alike(), full()] {
        for policy in Policy::ALL {
            let mut rounds: Vec<(usize, Duration)> = (0..ROUNDS).map(|_| time(policy, &case)).collect();
            rounds.sort_by_key(|(_, took)| *took);
            let (placed, median) = rounds[ROUNDS / 2];
            let (fastest, slowest) = (rounds[0].1, rounds[ROUNDS - 1].1);
            println!(
                "{:24} {:22} {placed:6} placed  fastest {:6.2} ms  median {:6.2} ms  slowest {:6.2} ms",
                case.name,
                policy.name(),
                fastest.as_secs_f64() * 1e3,
                median.as_secs_f64() * 1e3,
                slowest.as_secs_f64() * 1e3
            );
        }
    }
    print_whole();
}
