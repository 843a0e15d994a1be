//! Attacks with clients that exhaust a master's resources: connections, memory, time. The master answers, stays small,
//! and its cluster works. The measurements are printed; only memory and results are asserted, since other processes use
//! the machine too.
//!
//! The promised figures: with 2,000 clients of a kind the p99 of `/health` rises by at most 10 ms and memory by at most
//! 200 MB; in 10 minutes with 2,000 clients of all kinds together no task takes 100 ms longer.

#![allow(clippy::disallowed_methods, reason = "an attack lasts for some time, and how long answers take is measured")]

use std::time::{Duration, Instant};

use crate::beside::Beside;
use crate::client::User;
use crate::crowd::{Crowd, Plan, clients};
use crate::kinds;
use crate::tenant::Cluster;

/// Maximum memory in bytes that an attack may cost a master.
const MEMORY: u64 = 200 << 20;
/// Pause between two requests for `/health`.
const PAUSE: Duration = Duration::from_millis(5);
/// Minimum number of requests and of tasks for a figure.
const LEAST: usize = 20;
/// Time after which a task counts as lost, not as delayed.
const TASK_MAX: Duration = Duration::from_secs(120);

/// Returns the duration of an attack: `ATTACK_SECONDS`.
fn duration() -> Duration {
    let seconds = std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    Duration::from_secs(seconds)
}

/// Measurements of a master that serves other clients.
struct Seen {
    /// Times of `/health`, sorted.
    times: Vec<Duration>,
    /// Maximum memory in bytes.
    memory: u64,
}

impl Seen {
    /// Measures `/health` for this time.
    fn during(cluster: &Cluster, time: Duration) -> Seen {
        let (begin, mut times, mut memory) = (Instant::now(), Vec::new(), 0);
        while begin.elapsed() < time || times.len() < LEAST {
            let asked = Instant::now();
            let (status, _) = User::None.ask(&cluster.master, "GET", "/health", "");
            assert_eq!(status, 200);
            times.push(asked.elapsed());
            memory = memory.max(cluster.master_memory());
            std::thread::sleep(PAUSE);
        }
        times.sort_unstable();
        Seen { times, memory }
    }

    fn p99(&self) -> Duration {
        at(&self.times, 99)
    }
}

/// Returns a percentile of sorted times.
fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Formats by how much a time exceeds another one.
fn more(time: Duration, than: Duration) -> String {
    format!("{:+.1} ms", (time.as_secs_f64() - than.as_secs_f64()) * 1e3)
}

/// Compares `/health` before and during an attack, and checks the memory that the attack costs the master.
fn endure(name: &str, cluster: &Cluster, plan: &Plan) {
    let before = Seen::during(cluster, duration() / 4);
    let crowd = Crowd::start(&cluster.master, plan, clients());
    let during = Seen::during(cluster, duration());
    drop(crowd);
    let taken = report(name, &before, &during);
    assert!(taken < MEMORY, "{name}: the master has taken {} MB", taken / 1_000_000);
    cluster.is_untouched();
}

/// Prints the differences. Returns the additional bytes of memory of the master.
fn report(name: &str, before: &Seen, during: &Seen) -> u64 {
    let taken = during.memory.saturating_sub(before.memory);
    println!(
        "{name}, {} clients: /health p99 {} (before {}): {} of at most 10 ms; p50 {}, {} requests; memory {:+} MB \
         of at most 200",
        clients(),
        millis(during.p99()),
        millis(before.p99()),
        more(during.p99(), before.p99()),
        millis(at(&during.times, 50)),
        during.times.len(),
        taken / 1_000_000
    );
    taken
}

#[test]
fn heads_that_do_not_end() {
    let cluster = Cluster::start("heads");
    endure("heads that do not end", &cluster, &kinds::slow_heads());
}

#[test]
fn bodies_that_do_not_end() {
    let cluster = Cluster::start("bodies");
    for (name, plan) in kinds::all().iter().filter(|(name, _)| name.starts_with("half bodies")) {
        endure(name, &cluster, plan);
    }
}

#[test]
fn bodies_that_decompress_to_very_much() {
    let cluster = Cluster::start("bombs");
    for (name, plan) in kinds::all().iter().filter(|(name, _)| name.starts_with("bombs")) {
        endure(name, &cluster, plan);
    }
}

#[test]
fn readers_that_do_not_read() {
    let cluster = Cluster::start("readers");
    endure("subscribers that do not read", &cluster, &kinds::subscribers());
    endure("clients that do not read /state", &cluster, &kinds::deaf_readers());
}

#[test]
fn passwords_that_are_guessed() {
    let cluster = Cluster::start("guesses");
    let before = Seen::during(&cluster, duration() / 4);
    let crowd = Crowd::start(&cluster.master, &kinds::guesses(kinds::TENANT), clients());
    let during = Seen::during(&cluster, duration());
    let (status, told) = User::Powerless.ask(&cluster.master, "GET", "/state", "");
    assert_eq!(status, 200, "another user is held up: {told}");
    drop(crowd);
    report("log-ins that are guessed", &before, &during);
    let request = "GET /state HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b3BzOnk=\r\nConnection: close\r\n\r\n";
    let answer = crate::support::exchange(&cluster.master, request).expect("the master answers");
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
}

/// Runs all kinds at once, each with its share of the clients, during the work of a framework with short tasks.
#[test]
fn a_cluster_works_beside_all_attacks_at_once() {
    let cluster = Cluster::start_with("mixed", &["--allocation_interval=100ms"]);
    let beside = Beside::start(&cluster.master);
    beside.times(LEAST, TASK_MAX);
    let before = Seen::during(&cluster, duration() / 4);
    let usual = beside.times(LEAST, TASK_MAX);
    let kinds = kinds::all();
    let share = clients() / kinds.len();
    let crowds: Vec<Crowd> = kinds.iter().map(|(_, plan)| Crowd::start(&cluster.master, plan, share)).collect();
    let during = Seen::during(&cluster, duration());
    let tasks = beside.times(LEAST, TASK_MAX);
    drop(crowds);
    let taken = report("all kinds at once", &before, &during);
    assert!(taken < 2 * MEMORY, "the master has taken {} MB", taken / 1_000_000);
    let (median, longest) = (at(&usual, 50), at(&tasks, 100));
    let late = tasks.iter().filter(|time| **time > median + Duration::from_millis(100)).count();
    println!(
        "{} tasks beside it, launch to end: p50 {}, p99 {}, longest {}; before: p50 {}, longest {} of {}. The longest \
         delay beyond the median of before is {} of at most 100 ms; {late} tasks have a longer one",
        tasks.len(),
        millis(at(&tasks, 50)),
        millis(at(&tasks, 99)),
        millis(longest),
        millis(median),
        millis(at(&usual, 100)),
        usual.len(),
        more(longest, median),
    );
    cluster.is_untouched();
}
