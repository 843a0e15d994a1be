//! Generates a trace in the format of Google's of 2011, with stated mechanisms.
//!
//! - 40 users have one to five kinds of work each: a class, a priority, requests, a number of tasks and a duration.
//! - One kind in six has an error: its tasks fail after a twentieth of their time, with a probability of the kind's own
//!   (0.6 to 0.98), and are launched again up to four times. Tasks of other kinds fail with 1 %.
//! - One kind in five is of services or trials that their users end: all tasks of such a job are killed together, at a
//!   random moment, with a probability of 0.85. Of other jobs 3 % are killed.
//! - Machines have little capacity for low priorities at some hours: tasks of priority 0 and 1 are evicted at a rate
//!   that rises and falls over the day, with a phase of each machine's own; evicted tasks are launched again.
//! - One machine in thirty is broken for some hours: 9 of 10 tasks on it fail within 30 s.
//! - Work of a kind arrives in sessions: a user repeats the same kind for a while.
//!
//! There is no queue: tasks start some seconds after they are submitted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_pcg::rand_core::Rng as _;

use crate::seeds::{Rng, Seed};

const USERS: usize = 40;
const MACHINES: u64 = 300;
const DAY: f64 = 86_400.0;
/// The most times that a task is launched.
const LAUNCHES: u32 = 12;
const FAILURES_MAX: u32 = 4;

/// Size and seed of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedTrace {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of days over which the jobs arrive.
    pub days: f64,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Default for GeneratedTrace {
    fn default() -> GeneratedTrace {
        GeneratedTrace { jobs: 8_000, days: 7.0, seed: 1 }
    }
}

#[derive(Clone, Debug)]
struct Kind {
    class: u8,
    priority: u8,
    requested: [f64; 3],
    tasks: f64,
    seconds: f64,
    fails: f64,
    killed: f64,
}

/// An event of the trace: time in microseconds, its number (events of one time keep their order), and its line after
/// the time.
type Line = Reverse<(u64, u64, String)>;

struct TraceGenerator {
    rng: Rng,
    /// Begin and end of each machine's broken period, in seconds, and the phase of its day.
    machines: Vec<([f64; 2], f64)>,
    lines: BinaryHeap<Line>,
    written: u64,
}

/// Returns the text of a generated trace.
pub fn generate_trace(made: &GeneratedTrace) -> String {
    let seed = Seed::root(made.seed);
    let mut users = seed.child("users").rng();
    let kinds: Vec<Vec<Kind>> = (0..USERS).map(|_| kinds(&mut users)).collect();
    let mut generator = TraceGenerator::new(seed.child("tasks").rng(), made.days * DAY);
    let (mut now, mut user, mut kind) = (0.0, 0, 0);
    for job in 0..made.jobs {
        now += exponential(&mut users) * made.days * DAY / made.jobs as f64;
        // With a probability of 0.8 the session continues; otherwise another one begins.
        if share(&mut users) < 0.2 {
            user = below(&mut users, USERS);
            kind = below(&mut users, kinds[user].len());
        }
        generator.job(6_000_000_000 + job as u64, user, &kinds[user][kind], now);
    }
    generator.text()
}

fn share(rng: &mut Rng) -> f64 {
    base::fraction(rng.next_u64())
}

fn below(rng: &mut Rng, count: usize) -> usize {
    ((share(rng) * count as f64) as usize).min(count - 1)
}

fn exponential(rng: &mut Rng) -> f64 {
    Exp1.sample(rng)
}

/// Draws a factor whose logarithm is normal with mean 0 and standard deviation `sigma`.
fn factor(rng: &mut Rng, sigma: f64) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    (sigma * normal).exp()
}

fn kinds(rng: &mut Rng) -> Vec<Kind> {
    let count = 1 + below(rng, 5);
    (0..count)
        .map(|_| {
            let class = below(rng, 4) as u8;
            let priority = [0, 0, 1, 1, 2, 4, 4, 6, 8, 9][below(rng, 10)];
            let is_broken = share(rng) < 1.0 / 6.0;
            let is_ended_by_user = share(rng) < 0.2;
            Kind {
                class,
                priority,
                requested: [0.0125 * factor(rng, 0.8), 0.01 * factor(rng, 1.0), 0.0004].map(|share| share.min(1.0)),
                tasks: 1.0 + 8.0 * share(rng).powi(3) * 5.0,
                seconds: 600.0 * factor(rng, 1.2),
                fails: if is_broken { 0.6 + 0.38 * share(rng) } else { 0.01 },
                killed: if is_ended_by_user { 0.85 } else { 0.03 },
            }
        })
        .collect()
}

impl TraceGenerator {
    fn new(mut rng: Rng, length: f64) -> TraceGenerator {
        let machine = |_| {
            let begin = share(&mut rng) * length;
            let hours = if share(&mut rng) < 1.0 / 30.0 { (6.0 + 30.0 * share(&mut rng)) * 3_600.0 } else { 0.0 };
            ([begin, begin + hours], share(&mut rng))
        };
        let machines = (0..MACHINES).map(machine).collect();
        TraceGenerator { rng, machines, lines: BinaryHeap::new(), written: 0 }
    }

    fn job(&mut self, job: u64, user: usize, kind: &Kind, submitted: f64) {
        let tasks = (kind.tasks * factor(&mut self.rng, 0.3)).round().max(1.0) as u32;
        let is_killed = share(&mut self.rng) < kind.killed;
        let killed = if is_killed { submitted + 30.0 + kind.seconds * share(&mut self.rng) } else { f64::INFINITY };
        for task in 0..tasks {
            self.task(&WrittenTask { job, task, user, kind, killed }, submitted);
        }
    }

    /// Writes the events of a task: launches it until it finishes, is killed, has failed too often or has reached
    /// [`LAUNCHES`].
    fn task(&mut self, task: &WrittenTask<'_>, submitted: f64) {
        let (mut now, mut failures) = (submitted, 0);
        for _ in 0..LAUNCHES {
            self.write(now, task, 0, 0);
            let began = now + 1.0 + 10.0 * exponential(&mut self.rng);
            let machine = below(&mut self.rng, MACHINES as usize);
            if began >= task.killed {
                return self.write(task.killed, task, 0, 5);
            }
            self.write(began, task, machine, 1);
            let (ended, event) = self.run(task, machine, began);
            self.write(ended, task, machine, event);
            failures += u32::from(event == 3);
            if event == 4 || event == 5 || failures > FAILURES_MAX {
                return;
            }
            now = ended + 1.0;
        }
    }

    /// Returns when a launch ends, in seconds, and the event type of its end.
    fn run(&mut self, task: &WrittenTask<'_>, machine: usize, began: f64) -> (f64, u8) {
        let kind = task.kind;
        let needs = kind.seconds * factor(&mut self.rng, 0.4);
        let mut ends = vec![(began + needs, 4), (task.killed, 5)];
        if share(&mut self.rng) < kind.fails {
            ends.push((began + needs / 20.0 + exponential(&mut self.rng), 3));
        }
        let (broken, phase) = self.machines[machine];
        if (broken[0]..broken[1]).contains(&began) && share(&mut self.rng) < 0.9 {
            ends.push((began + 1.0 + 29.0 * share(&mut self.rng), 3));
        }
        if kind.priority <= 1 {
            let busy = (1.0 + (std::f64::consts::TAU * (began / DAY + phase)).sin()) / 2.0;
            let mean = 1_200.0 / busy.powi(3).max(1e-3);
            ends.push((began + mean * exponential(&mut self.rng), 2));
        }
        ends.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((began + needs, 4))
    }

    fn write(&mut self, at: f64, task: &WrittenTask<'_>, machine: usize, event: u8) {
        let WrittenTask { job, task, user, kind, .. } = task;
        let machine = if event == 0 { String::new() } else { (4_000_000 + machine).to_string() };
        let [cpus, mem, disk] = kind.requested;
        let (class, priority) = (kind.class, kind.priority);
        let line =
            format!(",,{job},{task},{machine},{event},user{user:02},{class},{priority},{cpus:.4},{mem:.4},{disk:.4},0");
        self.written += 1;
        self.lines.push(Reverse(((at * 1e6) as u64, self.written, line)));
    }

    fn text(mut self) -> String {
        let mut text = String::new();
        while let Some(Reverse((at, _, line))) = self.lines.pop() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{at}{line}");
        }
        text
    }
}

/// A task whose events are written.
struct WrittenTask<'a> {
    job: u64,
    task: u32,
    user: usize,
    kind: &'a Kind,
    killed: f64,
}
