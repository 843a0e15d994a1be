//! Compares evictions with dropped tasks and sprints: an engine that runs one job at a time, in virtual time.
//!
//! Two classes of jobs arrive at random; a job uses all slots, wave after wave. The durations of a job's waves are
//! drawn once, so they are the same under every policy. Set-ups are ours: of the paper's experiments the ratio of
//! classes and the load are known from memory only.

mod policy;

use std::collections::VecDeque;
use std::time::Duration;

use super::random::Random;
use super::stats::Spread;
use crate::priority::{ClassModel, Contribution, DropRatio, Model, Sampled, Sprint, SprintBudget, Target, search};
pub use policy::Policy;

/// A set-up: the load of an engine and its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Number of jobs of low class for each of high class.
    pub low_per_high: f64,
    /// Fraction of the time in which the engine is busy, if nothing is evicted, dropped or sprinted.
    pub load: f64,
    /// Number of jobs of a run.
    pub jobs: usize,
}

const SLOTS: u32 = 20;

/// Core-milliseconds that sprints can use at once.
const BUDGET: u64 = 2_000_000;

/// A sprint at 1.5 times the speed, from the start of a job, for a tenth of the engine in the long run.
pub const SPRINT: Sprint = Sprint { timeout: Duration::ZERO, speed: 1500, refill: 2000 };

/// A sprint with an inexhaustible budget, at 2.5 times the speed: as fast as a core whose usual frequency is its
/// lowest.
pub const FAST: Sprint = Sprint { timeout: Duration::ZERO, speed: 2500, refill: 1000 * SLOTS as u64 };

/// Fraction of a core's power that depends on its speed; idle cores draw the rest, too.
const DYNAMIC: f64 = 0.6;

/// Largest exponent of the growth of that power with the speed, where voltage grows as well.
const CUBIC: i32 = 3;

/// Least exponent of that growth: with the frequency alone, where the voltage is at its minimum.
const LINEAR: i32 = 1;

/// Returns the set-ups of the study.
pub fn cases() -> Vec<Case> {
    [(9.0, 0.8), (9.0, 0.9), (1.0, 0.7), (1.0, 0.8)]
        .map(|(low_per_high, load)| Case { low_per_high, load, jobs: 10_000 })
        .into()
}

/// Returns the model of a case, with the low and the high class.
pub fn model(case: &Case) -> Model {
    let class = |tasks: u32| ClassModel {
        arrivals: 0.0,
        tasks: vec![(tasks, 0.5), (tasks * 2, 0.5)],
        setup: 2.0,
        wave: 5.0,
        variation: 0.1,
    };
    let mut model = Model { slots: SLOTS, classes: vec![class(10 * SLOTS), class(5 * SLOTS)] };
    model.classes[0].arrivals = case.low_per_high;
    model.classes[1].arrivals = 1.0;
    let scale = case.load / model.load(&[], None);
    model.classes.iter_mut().for_each(|class| class.arrivals *= scale);
    model
}

/// A job of a run.
struct Job {
    at: f64,
    class: usize,
    tasks: u32,
    setup: f64,
    waves: Vec<f64>,
}

impl Job {
    /// Returns the service time in seconds with this drop at normal speed.
    fn service(&self, drop: DropRatio) -> f64 {
        self.setup + self.waves(drop).iter().sum::<f64>()
    }

    /// Returns the waves that are left with this drop.
    fn waves(&self, drop: DropRatio) -> &[f64] {
        &self.waves[..self.waves.len().min(drop.kept(self.tasks).div_ceil(SLOTS) as usize)]
    }

    /// Returns the service time, in seconds, at the end of the wave or of the setup in which the job is after `done`
    /// seconds.
    fn boundary(&self, drop: DropRatio, done: f64) -> f64 {
        let mut end = self.setup;
        for wave in self.waves(drop) {
            if end >= done {
                break;
            }
            end += wave;
        }
        end
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean response times of the low and of the high class, in seconds.
    pub mean: [f64; 2],
    /// 95th percentiles of the response times of both classes, in seconds.
    pub p95: [f64; 2],
    /// Core-seconds of evicted runs.
    pub wasted: f64,
    /// Core-seconds of all runs.
    pub busy: f64,
    /// Core-seconds of sprints, which are part of `busy`.
    pub sprinted: f64,
    /// Seconds from the first arrival to the last end.
    pub span: f64,
}

impl Outcome {
    /// Returns the energy as core-seconds at normal speed, if power grows with this power of the speed; it includes
    /// idle cores.
    pub fn energy(&self, speed: f64, power: i32) -> f64 {
        let idle = (1.0 - DYNAMIC) * f64::from(SLOTS) * self.span;
        idle + DYNAMIC * (self.busy - self.sprinted + self.sprinted * speed.powi(power))
    }
}

fn jobs(case: &Case, seed: u64) -> Vec<Job> {
    let model = model(case);
    let (mut when, mut what) = (Random::new(seed, "arrivals"), Random::new(seed, "jobs"));
    let total: f64 = model.classes.iter().map(|class| class.arrivals).sum();
    let mut now = 0.0;
    (0..case.jobs)
        .map(|_| {
            now += when.exponential(1.0 / total);
            let class = usize::from(what.part() * total >= model.classes[0].arrivals);
            let known = &model.classes[class];
            let tasks = known.tasks[what.below(2)].0;
            let sigma = known.variation.ln_1p().sqrt();
            let waves = (0..tasks.div_ceil(SLOTS)).map(|_| what.lognormal(known.wave, sigma)).collect();
            Job { at: now, class, tasks, setup: known.setup, waves }
        })
        .collect()
}

/// The job that is running.
struct Running {
    job: usize,
    began: f64,
    end: f64,
    /// Service time after which the job stops at `end`, in seconds, if it yields there.
    yields: Option<f64>,
}

/// An engine in progress.
struct Engine<'a> {
    jobs: &'a [Job],
    policy: Policy,
    budget: SprintBudget,
    waiting: [VecDeque<usize>; 2],
    /// Service time of each job before it yielded, in seconds.
    done: Vec<f64>,
    running: Option<Running>,
    responses: [Vec<f64>; 2],
    outcome: Outcome,
}

/// Runs the jobs of a seed under a policy.
pub fn run(case: &Case, policy: Policy, seed: u64) -> Outcome {
    let jobs = jobs(case, seed);
    let refill = policy.sprint().map_or(0, |sprint| sprint.refill);
    let mut engine = Engine {
        jobs: &jobs,
        policy,
        budget: SprintBudget::new(BUDGET, refill),
        waiting: [VecDeque::new(), VecDeque::new()],
        done: vec![0.0; jobs.len()],
        running: None,
        responses: [Vec::new(), Vec::new()],
        outcome: Outcome::default(),
    };
    for (n, job) in jobs.iter().enumerate() {
        engine.until(job.at);
        engine.arrives(n);
    }
    engine.until(f64::INFINITY);
    engine.finish()
}

impl Engine<'_> {
    /// Ends the jobs that finish up to this time.
    fn until(&mut self, instant: f64) {
        while let Some(running) = self.running.take_if(|running| running.end <= instant) {
            let job = &self.jobs[running.job];
            match running.yields {
                Some(done) => {
                    self.done[running.job] = done;
                    self.waiting[job.class].push_front(running.job);
                }
                None => self.responses[job.class].push(running.end - job.at),
            }
            self.outcome.busy += (running.end - running.began) * f64::from(SLOTS);
            self.outcome.span = running.end;
            self.next(running.end);
        }
    }

    fn arrives(&mut self, n: usize) {
        let job = &self.jobs[n];
        self.waiting[job.class].push_back(n);
        let evicts = self.policy == Policy::Evicts && job.class == 1;
        if let Some(evicted) = self.running.take_if(|running| evicts && self.jobs[running.job].class == 0) {
            let lost = (job.at - evicted.began) * f64::from(SLOTS);
            self.outcome.wasted += lost;
            self.outcome.busy += lost;
            self.waiting[0].push_front(evicted.job);
        }
        if matches!(self.policy, Policy::Yields(..)) && job.class == 1 {
            self.stop_after_wave(job.at);
        }
        if self.running.is_none() {
            self.next(job.at);
        }
    }

    /// Makes a job of low class yield when its wave ends, if that is not its last.
    fn stop_after_wave(&mut self, now: f64) {
        let Some(running) = self.running.as_mut().filter(|running| self.jobs[running.job].class == 0) else { return };
        let (job, done) = (&self.jobs[running.job], self.done[running.job]);
        let boundary = job.boundary(self.policy.drop(), done + now - running.began);
        let end = running.began + boundary - done;
        if end < running.end {
            running.end = end;
            running.yields = Some(boundary);
        }
    }

    fn next(&mut self, now: f64) {
        let [low, high] = &mut self.waiting;
        let Some(job) = high.pop_front().or_else(|| low.pop_front()) else { return };
        let class = self.jobs[job].class;
        let service = self.jobs[job].service(if class == 0 { self.policy.drop() } else { DropRatio::NONE });
        let service = service - self.done[job];
        let end = match self.policy.sprint().filter(|_| class == 1) {
            Some(sprint) => self.sprint(now, service, sprint),
            None => now + service,
        };
        self.running = Some(Running { job, began: now, end, yields: None });
    }

    /// Returns the end of a job that sprints as long as the budget lasts.
    fn sprint(&mut self, now: f64, service: f64, sprint: Sprint) -> f64 {
        let timeout = sprint.timeout.as_secs_f64();
        if service <= timeout {
            return now + service;
        }
        let begins = Duration::from_secs_f64(now + timeout);
        let (speed, left) = (f64::from(sprint.speed) / 1000.0, service - timeout);
        let lasts = self.budget.lasts(begins, SLOTS).map_or(f64::INFINITY, |lasts| lasts.as_secs_f64());
        let sprinted = lasts.min(left / speed);
        let end = now + timeout + sprinted + (left - sprinted * speed);
        let ends = begins + Duration::from_secs_f64(sprinted);
        self.budget.spend(ends, (sprinted * f64::from(SLOTS) * 1000.0) as u64);
        self.outcome.sprinted += sprinted * f64::from(SLOTS);
        end
    }

    fn finish(mut self) -> Outcome {
        for (class, mut responses) in self.responses.into_iter().enumerate() {
            responses.sort_by(f64::total_cmp);
            self.outcome.mean[class] = responses.iter().sum::<f64>() / responses.len().max(1) as f64;
            self.outcome.p95[class] = responses.get(responses.len() * 95 / 100).copied().unwrap_or(0.0);
        }
        self.outcome
    }
}

/// The results of a policy in a case, over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Case that was run.
    pub case: Case,
    /// Policy that was run.
    pub policy: Policy,
    /// Mean response times of the low and of the high class, in seconds.
    pub mean: [Spread; 2],
    /// Fractions by which they are shorter than with evictions.
    pub than_evicts: [Spread; 2],
    /// Fractions by which they are shorter than with waiting alone.
    pub than_waits: [Spread; 2],
    /// Fraction of all core-seconds that evictions waste.
    pub wasted: Spread,
    /// Fraction by which core-seconds are fewer than with evictions.
    pub fewer: Spread,
    /// Fraction by which energy is less than with evictions, if power grows with the third power of the speed.
    pub energy: Spread,
    /// Fraction by which energy is less than with evictions, if power grows with the speed itself.
    pub linear: Spread,
    /// Relative difference of the model's prediction from the simulated mean of each class; `None` for evictions and
    /// for jobs that yield, which it does not model.
    pub model: Option<[f64; 2]>,
    /// Half of the 95 % interval of a sum over a low job's tasks, as a fraction of the sum.
    pub error: f64,
}

/// Returns half of the interval of a sum over 300 tasks whose sums vary by half of their mean, of which this fraction
/// is dropped.
pub fn error(drop: DropRatio) -> f64 {
    let tasks = 300;
    let mut random = Random::new(1, "contributions");
    let mut sampled = Sampled::new(u64::from(tasks));
    for _ in 0..drop.kept(tasks) {
        sampled.add(Contribution { count: 1.0, sum: random.lognormal(1.0, 0.25_f64.ln_1p().sqrt()) });
    }
    sampled.sum(0.95).map_or(f64::INFINITY, |sum| sum.relative())
}

/// Returns the policies of a case: the paper's five with a fixed drop, and DiAS with the choice of the search for
/// responses of low jobs that are half as long as with waiting, and of high ones three quarters; then a faster sprint,
/// and jobs that yield.
pub fn policies(case: &Case) -> Vec<Policy> {
    let fifth = DropRatio::new(200).unwrap_or_default();
    let model = model(case);
    let free = model.predict(&[], None);
    let within = |part: f64, class: usize| Some(Duration::from_secs_f64((free[class].mean * part).min(1e9)));
    let most = DropRatio::new(400).unwrap_or_default();
    let targets = [
        Target { mean: within(0.5, 0), p95: None, drop: most },
        Target { mean: within(0.75, 1), p95: None, drop: DropRatio::NONE },
    ];
    let choice = search(&model, &targets, Some(SPRINT));
    let drop = choice.drops.first().copied().unwrap_or_default();
    vec![
        Policy::Evicts,
        Policy::Waits,
        Policy::Drops(fifth),
        Policy::Sprints(SPRINT),
        Policy::Both(fifth, SPRINT),
        choice.sprint.map_or(Policy::Drops(drop), |sprint| Policy::Both(drop, sprint)),
        Policy::Both(fifth, FAST),
        Policy::Yields(DropRatio::NONE, None),
        Policy::Yields(fifth, Some(SPRINT)),
        Policy::Yields(fifth, Some(FAST)),
    ]
}

/// Runs all policies in all cases.
pub fn study(seeds: &[u64]) -> Vec<Compared> {
    cases().iter().flat_map(|case| compare(case, seeds)).collect()
}

/// Runs all policies in a case.
pub fn compare(case: &Case, seeds: &[u64]) -> Vec<Compared> {
    let policies = policies(case);
    let runs: Vec<Vec<Outcome>> =
        policies.iter().map(|policy| seeds.iter().map(|seed| run(case, *policy, *seed)).collect()).collect();
    policies.iter().zip(&runs).map(|(policy, outcomes)| compared(case, *policy, outcomes, &runs)).collect()
}

fn compared(case: &Case, policy: Policy, outcomes: &[Outcome], runs: &[Vec<Outcome>]) -> Compared {
    let over = |of: &dyn Fn(usize) -> f64| Spread::of(&(0..outcomes.len()).map(of).collect::<Vec<_>>());
    let classes = |of: &dyn Fn(usize, usize) -> f64| [0, 1].map(|class| over(&|seed| of(class, seed)));
    let shorter = |than: usize| classes(&|class, seed| 1.0 - outcomes[seed].mean[class] / runs[than][seed].mean[class]);
    let mean = classes(&|class, seed| outcomes[seed].mean[class]);
    let speed = policy.sprint().map_or(1.0, |sprint| f64::from(sprint.speed) / 1000.0);
    let energy =
        |power: i32| over(&|seed| 1.0 - outcomes[seed].energy(speed, power) / runs[0][seed].energy(1.0, power));
    let predicted = model(case).predict(&[policy.drop()], policy.sprint());
    let model = policy.is_modelled().then(|| [0, 1].map(|class: usize| predicted[class].mean / mean[class].mean - 1.0));
    Compared {
        case: case.clone(),
        policy,
        mean,
        than_evicts: shorter(0),
        than_waits: shorter(1),
        wasted: over(&|seed| outcomes[seed].wasted / outcomes[seed].busy),
        fewer: over(&|seed| 1.0 - outcomes[seed].busy / runs[0][seed].busy),
        energy: energy(CUBIC),
        linear: energy(LINEAR),
        model,
        error: error(policy.drop()),
    }
}

#[cfg(test)]
mod tests;
