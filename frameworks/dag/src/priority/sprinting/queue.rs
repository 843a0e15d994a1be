//! A simple simulator: jobs wait in one queue for servers, and sprint at one rate. It learns nothing.

use super::SprintPolicy;

/// The arrivals at the servers.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals<'a> {
    /// Arrival times of jobs in seconds, ascending.
    pub at: &'a [f64],
    /// Service times of jobs without a sprint, in seconds. Missing ones are 0.
    pub service: &'a [f64],
    /// Number of servers, at least 1: a job takes one.
    pub servers: usize,
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean response time, in seconds.
    pub mean: f64,
    /// 95th percentile of the response times, in seconds.
    pub p95: f64,
    /// Seconds of sprinting, summed over all servers.
    pub sprinted: f64,
    /// Seconds until the last job has ended.
    pub span: f64,
}

impl Outcome {
    /// Computes the result from response times.
    pub(crate) fn of(mut responses: Vec<f64>, sprinted: f64, span: f64) -> Outcome {
        responses.sort_by(f64::total_cmp);
        let mean = responses.iter().sum::<f64>() / responses.len().max(1) as f64;
        Outcome { mean, p95: responses.get(responses.len() * 95 / 100).copied().unwrap_or(0.0), sprinted, span }
    }
}

/// A job on a server.
#[derive(Clone, Copy)]
struct Running {
    arrived: f64,
    /// Service time that is left without a sprint, in seconds.
    left: f64,
    sprint: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// The job sprints from this time on.
    From(f64),
    Sprints,
    /// The budget was used up, so the job sprints no more.
    Over,
}

/// Simulates the jobs, first come, first served; a job that sprints is `effective` times as fast.
pub fn simulate(arrivals: &Arrivals<'_>, policy: &SprintPolicy, effective: f64) -> Outcome {
    let effective = effective.max(0.1);
    let mut queue = Queue { arrivals, effective, policy, level: policy.budget, now: 0.0, next: 0, running: Vec::new() };
    let (mut responses, mut sprinted) = (Vec::with_capacity(arrivals.at.len()), 0.0);
    loop {
        queue.start();
        let instant = queue.next_instant();
        if instant.is_infinite() {
            return Outcome::of(responses, sprinted, queue.now);
        }
        sprinted += queue.pass(instant);
        let now = queue.now;
        queue.running.retain(|job| {
            let is_over = job.left <= 1e-9;
            if is_over {
                responses.push(now - job.arrived);
            }
            !is_over
        });
    }
}

struct Queue<'a> {
    arrivals: &'a Arrivals<'a>,
    effective: f64,
    policy: &'a SprintPolicy,
    level: f64,
    now: f64,
    /// Index of the first job that was not started.
    next: usize,
    running: Vec<Running>,
}

impl Queue<'_> {
    /// Starts jobs that have arrived, as far as servers are free, and sprints that are due.
    fn start(&mut self) {
        while self.running.len() < self.arrivals.servers.max(1)
            && let Some(arrived) = self.arrivals.at.get(self.next).copied().filter(|at| *at <= self.now)
        {
            let left = self.arrivals.service.get(self.next).copied().unwrap_or(0.0);
            self.running.push(Running { arrived, left, sprint: State::From(arrived + self.policy.timeout) });
            self.next += 1;
        }
        let pays = self.level > 1e-9;
        for job in &mut self.running {
            if matches!(job.sprint, State::From(at) if at <= self.now) {
                job.sprint = if pays { State::Sprints } else { State::Over };
            }
        }
    }

    fn sprinting(&self) -> f64 {
        self.running.iter().filter(|job| job.sprint == State::Sprints).count() as f64
    }

    fn speed(&self, job: &Running) -> f64 {
        if job.sprint == State::Sprints { self.effective } else { 1.0 }
    }

    /// Returns the time of the next event; infinite if all jobs have ended.
    fn next_instant(&self) -> f64 {
        let mut next = f64::INFINITY;
        for job in &self.running {
            next = next.min(self.now + job.left / self.speed(job));
            if let State::From(at) = job.sprint {
                next = next.min(at.max(self.now));
            }
        }
        if self.running.len() < self.arrivals.servers.max(1) {
            next = self.arrivals.at.get(self.next).map_or(next, |at| next.min(at.max(self.now)));
        }
        let drained = self.sprinting() - self.policy.refill;
        if self.sprinting() > 0.0 && drained > 0.0 {
            next = next.min(self.now + self.level / drained);
        }
        next
    }

    /// Advances the time. Returns the seconds of sprinting.
    fn pass(&mut self, instant: f64) -> f64 {
        let passed = (instant - self.now).max(0.0);
        let sprinted = self.sprinting() * passed;
        self.level = (self.level + self.policy.refill * passed - sprinted).clamp(0.0, self.policy.budget);
        let effective = self.effective;
        for job in &mut self.running {
            job.left -= passed * if job.sprint == State::Sprints { effective } else { 1.0 };
        }
        self.now = instant;
        if self.level <= 1e-9 {
            // A refill that is as fast as all sprints sustains them.
            let drains = self.sprinting() > self.policy.refill;
            for job in self.running.iter_mut().filter(|job| drains && job.sprint == State::Sprints) {
                job.sprint = State::Over;
            }
        }
        sprinted
    }
}
