//! A model of the profiled system: servers whose jobs speed up by mechanism and by phase. The model under test sees
//! only what a run reports: response times.
//!
//! The simple simulator does not know these effects: parts of a job that a sprint does not make faster, time until a
//! sprint takes effect, servers that get hot, sprints that slow each other down, and neighbours that use what is lent.
//! All numbers are ours.

use crate::priority::sprinting::{Outcome, SprintPolicy};

use super::workload::{Job, Workload};
use crate::study::random::Random;

/// The mechanism of a sprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A higher frequency: it takes effect at once, but a server that sprints for long gets hot and slows down.
    Frequency,
    /// More cores: the next part of a job uses them; shared memory is contended.
    Cores,
    /// A higher limit of processor time, as of burstable instances: it takes effect after a while, and neighbours use
    /// some of it.
    Limits,
}

/// All mechanisms.
pub const MECHANISMS: [Mechanism; 3] = [Mechanism::Frequency, Mechanism::Cores, Mechanism::Limits];

/// Seconds after which a server that sprints is hot.
const HOT: f64 = 25.0;
/// Fraction of the gain that a hot server keeps.
const WHEN_HOT: f64 = 0.5;
/// Fraction of the gain that is lost when all other servers sprint as well.
const CONTENDED: f64 = 0.35;
/// Seconds until a limit takes effect.
const LIFTED: f64 = 0.4;

impl Mechanism {
    /// Returns the name of the mechanism.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Frequency => "frequency",
            Mechanism::Cores => "cores",
            Mechanism::Limits => "limits",
        }
    }
}

/// The state of a job's sprint.
#[derive(Clone, Copy, PartialEq)]
enum State {
    From(f64),
    /// The limit was lifted, and has no effect before this time; infinite until the next part starts.
    Lifted(f64),
    /// The job sprints since this time.
    Sprints(f64),
    Over,
}

struct Running {
    arrived: f64,
    /// Fraction of the gain that neighbours leave.
    luck: f64,
    parts: Vec<(f64, f64)>,
    part: usize,
    /// Time that is left of the part without a sprint, in seconds.
    left: f64,
    state: State,
}

impl Running {
    /// Returns whether the job uses the budget.
    fn pays(&self) -> bool {
        matches!(self.state, State::Lifted(_) | State::Sprints(_))
    }
}

/// Runs jobs that arrive at these times, drawn by seed, and reports response times.
pub fn run(
    workload: &Workload,
    mechanism: Mechanism,
    at: &[f64],
    servers: usize,
    policy: &SprintPolicy,
    seed: u64,
) -> Outcome {
    let mut random = Random::new(seed, "system");
    let jobs: Vec<Job> = at.iter().map(|_| workload.draw(&mut random)).collect();
    let mut system =
        System { mechanism, policy, servers, now: 0.0, level: policy.budget, running: Vec::new(), next: 0, at, jobs };
    let (mut responses, mut sprinted) = (Vec::with_capacity(at.len()), 0.0);
    loop {
        system.start();
        let instant = system.next_instant();
        if instant.is_infinite() {
            return Outcome::of(responses, sprinted, system.now);
        }
        sprinted += system.pass(instant);
        responses.extend(system.end());
    }
}

struct System<'a> {
    mechanism: Mechanism,
    policy: &'a SprintPolicy,
    servers: usize,
    now: f64,
    level: f64,
    running: Vec<Running>,
    next: usize,
    at: &'a [f64],
    jobs: Vec<Job>,
}

impl System<'_> {
    fn start(&mut self) {
        while self.running.len() < self.servers && self.at.get(self.next).is_some_and(|at| *at <= self.now) {
            let job = &self.jobs[self.next];
            let arrived = self.at[self.next];
            self.running.push(Running {
                arrived,
                luck: job.luck,
                left: job.parts[0].0,
                parts: job.parts.clone(),
                part: 0,
                state: State::From(arrived + self.policy.timeout),
            });
            self.next += 1;
        }
        let (now, pays, mechanism) = (self.now, self.level > 1e-9, self.mechanism);
        for job in &mut self.running {
            job.state = match job.state {
                State::From(at) if at <= now && !pays => State::Over,
                State::From(at) if at <= now => match mechanism {
                    Mechanism::Frequency => State::Sprints(now),
                    // A job that has not started uses all cores at once.
                    Mechanism::Cores if job.part == 0 && job.left >= job.parts[0].0 => State::Sprints(now),
                    Mechanism::Cores => State::Lifted(f64::INFINITY),
                    Mechanism::Limits => State::Lifted(now + LIFTED),
                },
                State::Lifted(at) if at <= now => State::Sprints(now),
                other => other,
            };
        }
    }

    fn sprinting(&self) -> f64 {
        self.running.iter().filter(|job| job.pays()).count() as f64
    }

    /// Returns the present speed of a job.
    fn speed(&self, job: &Running) -> f64 {
        let State::Sprints(since) = job.state else { return 1.0 };
        let scales = job.parts[job.part].1;
        let gain = 1.0 / ((1.0 - scales) + scales / self.policy.rate) - 1.0;
        let others = (self.sprinting() - 1.0) / (self.servers as f64 - 1.0).max(1.0);
        let left = match self.mechanism {
            Mechanism::Frequency if self.now - since >= HOT - 1e-9 => WHEN_HOT,
            Mechanism::Frequency => 1.0,
            Mechanism::Cores => 1.0 - CONTENDED * others,
            Mechanism::Limits => job.luck,
        };
        1.0 + gain * left
    }

    fn next_instant(&self) -> f64 {
        let mut next = f64::INFINITY;
        for job in &self.running {
            next = next.min(self.now + job.left / self.speed(job));
            next = match job.state {
                State::From(at) | State::Lifted(at) => next.min(at.max(self.now)),
                State::Sprints(since) if self.now < since + HOT - 1e-9 => next.min(since + HOT),
                _ => next,
            };
        }
        if self.running.len() < self.servers {
            next = self.at.get(self.next).map_or(next, |at| next.min(at.max(self.now)));
        }
        let drained = self.sprinting() - self.policy.refill;
        if drained > 0.0 && self.sprinting() > 0.0 { next.min(self.now + self.level / drained) } else { next }
    }

    fn pass(&mut self, instant: f64) -> f64 {
        let passed = (instant - self.now).max(0.0);
        let sprinting = self.sprinting();
        let speeds: Vec<f64> = self.running.iter().map(|job| self.speed(job)).collect();
        for (job, speed) in self.running.iter_mut().zip(speeds) {
            job.left -= passed * speed;
        }
        self.level = (self.level + (self.policy.refill - sprinting) * passed).clamp(0.0, self.policy.budget);
        self.now = instant;
        if self.level <= 1e-9 && sprinting > self.policy.refill {
            for job in self.running.iter_mut().filter(|job| job.pays()) {
                job.state = State::Over;
            }
        }
        sprinting * passed
    }

    /// Starts the next parts. Returns the response times of jobs that have ended.
    fn end(&mut self) -> Vec<f64> {
        let now = self.now;
        let mut responses = Vec::new();
        self.running.retain_mut(|job| {
            if job.left > 1e-9 {
                return true;
            }
            job.part += 1;
            let Some((work, _)) = job.parts.get(job.part) else {
                responses.push(now - job.arrived);
                return false;
            };
            job.left = *work;
            if job.state == State::Lifted(f64::INFINITY) {
                job.state = State::Sprints(now);
            }
            true
        });
        responses
    }
}
