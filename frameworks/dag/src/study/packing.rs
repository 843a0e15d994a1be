//! Compares orders of jobs whose tasks need several resources, on machines in virtual time: jobs of Alibaba's trace
//! ([`super::alibaba`]), jobs with its published distributions, and generated ones that need CPUs and memory in
//! different proportions.
//!
//! Machines are alike; a task runs on any on which it fits, and moving costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::StudyError;
use super::alibaba::{self, MACHINE, TracedJob};
use super::job::{Durations, JobModel, StageModel};
use super::random::Random;
use super::stats::Spread;
use crate::order::{Amounts, Free, Heuristic, Job, Observation, Policy, Stage, grants};

/// Names of the orders of the study.
pub const ORDERS: [&str; 8] =
    ["fifo", "sjf-cp", "fair", "weighted -0.5", "weighted -1", "remaining", "tetris", "graphene"];

/// The set-up of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Number of machines.
    pub machines: u32,
    /// Number of jobs of a run.
    pub jobs: usize,
    /// Demand of the jobs for the scarcest resource, divided by its capacity, while they arrive.
    pub load: f64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { machines: 8, jobs: 200, load: 0.9 }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Seconds from arrival to end of each job.
    pub completions: Vec<f64>,
    /// End of the last job, in seconds.
    pub makespan: f64,
    /// Largest use of CPUs and of memory at one time, as fractions of all.
    pub peak: [f64; 2],
}

impl Outcome {
    /// Returns the mean completion time of a job, in seconds.
    pub fn mean(&self) -> f64 {
        self.completions.iter().sum::<f64>() / self.completions.len().max(1) as f64
    }
}

/// Generates jobs for which both resources are scarce: most have few tasks, some have thousands; half of the stages
/// need more memory for a CPU than a machine has, half less. Numbers are ours.
pub fn generate_jobs(seed: u64, jobs: usize) -> Vec<Arc<JobModel>> {
    let mut random = Random::new(seed, "made jobs");
    (0..jobs).map(|n| Arc::new(generate_job(n, &mut random))).collect()
}

fn generate_job(n: usize, random: &mut Random) -> JobModel {
    let count = 2 + random.exponential(4.0).min(28.0) as usize;
    let wide = random.lognormal(20.0, 1.2);
    let stages = (0..count).map(|at| {
        let tasks = (wide * random.lognormal(1.0, 0.8)).clamp(1.0, 2000.0) as u32;
        let rough = (random.lognormal(30.0, 0.9) * 1000.0).clamp(1000.0, 600_000.0) as u64;
        let cpus = [500, 1000, 1000, 2000][random.below(4)];
        let mem = if random.part() < 0.5 { cpus / 3 } else { cpus * 3 };
        let many = if at == 0 { 0 } else { 1 + random.below(2.min(at)) };
        let mut parents: Vec<u32> = (0..many).map(|_| random.below(at) as u32).collect();
        parents.sort_unstable();
        parents.dedup();
        let durations = vec![Durations { executors: 1, first: vec![rough], ..Durations::default() }];
        StageModel {
            key: format!("made-{n}-{at}"),
            tasks,
            parents,
            rough,
            demand: Amounts { cpus, mem, gpus: 0 },
            durations,
        }
    });
    JobModel { name: format!("made-{n}"), stages: stages.collect() }
}

/// Returns how long the machines would take for these jobs at the load of the set-up, in milliseconds.
fn span<'a>(setup: Setup, jobs: impl Iterator<Item = &'a Arc<JobModel>>) -> f64 {
    let mut needs = [0.0; 2];
    for stage in jobs.flat_map(|job| &job.stages) {
        let work = stage.rough as f64 * f64::from(stage.tasks);
        needs[0] += work * stage.demand.cpus as f64 / MACHINE.cpus as f64;
        needs[1] += work * stage.demand.mem as f64 / MACHINE.mem as f64;
    }
    needs[0].max(needs[1]) / f64::from(setup.machines) / setup.load.max(0.01)
}

/// Returns random arrivals of jobs at the load of the set-up. The seed also draws the jobs.
pub fn arrivals(setup: Setup, jobs: &[Arc<JobModel>], seed: u64) -> Vec<(u64, Arc<JobModel>)> {
    let (mut which, mut when) = (Random::new(seed, "jobs"), Random::new(seed, "arrivals"));
    let drawn: Vec<Arc<JobModel>> = match jobs.len() {
        0 => Vec::new(),
        known => (0..setup.jobs).map(|_| jobs[which.below(known)].clone()).collect(),
    };
    let gap = span(setup, drawn.iter()) / drawn.len().max(1) as f64;
    let mut now = 0.0;
    let next = |job: Arc<JobModel>| {
        now += when.exponential(gap);
        (now as u64, job)
    };
    drawn.into_iter().map(next).collect()
}

/// Returns consecutive jobs of a trace, from one on that the seed chooses. The gaps between them are those of the
/// trace, scaled to the load of the set-up.
pub fn replayed(setup: Setup, trace: &[TracedJob], seed: u64) -> Vec<(u64, Arc<JobModel>)> {
    let first = Random::new(seed, "replay").below(trace.len().saturating_sub(setup.jobs) + 1);
    let taken = &trace[first.min(trace.len())..trace.len().min(first + setup.jobs)];
    let (Some(begin), Some(end)) = (taken.first(), taken.last()) else { return Vec::new() };
    let span = span(setup, taken.iter().map(|traced| &traced.job));
    let scale = span / (end.at - begin.at).max(1) as f64;
    let arrival = |traced: &TracedJob| (((traced.at - begin.at) as f64 * scale) as u64, traced.job.clone());
    taken.iter().map(arrival).collect()
}

struct State {
    started: Vec<u32>,
    finished: Vec<u32>,
    held: u32,
}

/// The end of a task: time, order, job, stage, machine.
type End = Reverse<(u64, u64, usize, usize, usize)>;

struct Run<'a> {
    arrivals: &'a [(u64, Arc<JobModel>)],
    states: Vec<State>,
    free: Vec<Amounts>,
    active: Vec<usize>,
    ends: BinaryHeap<End>,
    random: Random,
    planned: u64,
    outcome: Outcome,
}

/// Runs jobs under an order until all have ended.
///
/// # Errors
/// There is no job, a task fits on no machine, or the order leaves all machines empty.
pub fn run(
    setup: Setup,
    arrivals: &[(u64, Arc<JobModel>)],
    order: &mut dyn Policy,
    seed: u64,
) -> Result<Outcome, StudyError> {
    let stages = || arrivals.iter().flat_map(|(_, job)| &job.stages);
    if arrivals.is_empty() || setup.machines == 0 || stages().any(|stage| MACHINE.fits(stage.demand) == 0) {
        return Err(StudyError::Setting { setting: "jobs", rule: "must be one or more, whose tasks fit on a machine" });
    }
    let state = |job: &Arc<JobModel>| State {
        started: vec![0; job.stages.len()],
        finished: vec![0; job.stages.len()],
        held: 0,
    };
    let mut run = Run {
        arrivals,
        states: arrivals.iter().map(|(_, job)| state(job)).collect(),
        free: vec![MACHINE; setup.machines as usize],
        active: Vec::new(),
        ends: BinaryHeap::new(),
        random: Random::new(seed, "durations"),
        planned: 0,
        outcome: Outcome { completions: vec![f64::NAN; arrivals.len()], ..Outcome::default() },
    };
    let mut next = 0;
    loop {
        let arrives = arrivals.get(next).map(|(at, _)| *at);
        let ends = run.ends.peek().map(|Reverse((at, ..))| *at);
        let Some(now) = arrives.into_iter().chain(ends).min() else { break };
        while arrivals.get(next).is_some_and(|(at, _)| *at <= now) {
            run.active.push(next);
            next += 1;
        }
        while run.ends.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            run.end_one(now);
        }
        run.decide(now, order);
    }
    match run.outcome.completions.iter().any(|time| time.is_nan()) {
        true => Err(StudyError::Setting { setting: "order", rule: "must not leave all machines empty" }),
        false => Ok(run.outcome),
    }
}

impl Run<'_> {
    fn end_one(&mut self, now: u64) {
        let Some(Reverse((_, _, job, stage, machine))) = self.ends.pop() else { return };
        let model = &self.arrivals[job].1;
        let demand = model.stages[stage].demand;
        self.free[machine].cpus += demand.cpus;
        self.free[machine].mem += demand.mem;
        let state = &mut self.states[job];
        state.finished[stage] += 1;
        state.held -= 1;
        if model.stages.iter().zip(&state.finished).all(|(stage, finished)| stage.tasks == *finished) {
            self.active.retain(|active| *active != job);
            let end = now as f64 / 1000.0;
            self.outcome.completions[job] = end - self.arrivals[job].0 as f64 / 1000.0;
            self.outcome.makespan = end;
        }
    }

    fn decide(&mut self, now: u64, order: &mut dyn Policy) {
        let observation = self.observe(now);
        let actions = order.decide(&observation);
        for grant in grants(&observation, &actions) {
            let (job, stage, machine) = (grant.job as usize, grant.stage as usize, grant.free as usize);
            let model = &self.arrivals[job].1.stages[stage];
            self.free[machine] = self.free[machine].without(model.demand, grant.tasks);
            self.states[job].started[stage] += grant.tasks;
            self.states[job].held += grant.tasks;
            for _ in 0..grant.tasks {
                let duration = self.random.lognormal(model.rough as f64, 0.2).max(1.0) as u64;
                self.planned += 1;
                self.ends.push(Reverse((now + duration, self.planned, job, stage, machine)));
            }
        }
        let all = self.free.len() as f64;
        let used = |of: fn(&Amounts) -> u64, whole: u64| {
            1.0 - self.free.iter().map(of).sum::<u64>() as f64 / whole as f64 / all
        };
        let used = [used(|free| free.cpus, MACHINE.cpus), used(|free| free.mem, MACHINE.mem)];
        for (peak, used) in self.outcome.peak.iter_mut().zip(used) {
            *peak = peak.max(used);
        }
    }

    fn observe(&self, now: u64) -> Observation {
        let job = |job: &usize| {
            let (arrival, model) = &self.arrivals[*job];
            let state = &self.states[*job];
            let stages = model.stages.iter().zip(state.started.iter().zip(&state.finished)).map(
                |(stage, (started, finished))| Stage {
                    tasks: stage.tasks - started,
                    running: started - finished,
                    finished: *finished,
                    duration: stage.rough,
                    demand: stage.demand,
                    parents: stage.parents.clone(),
                },
            );
            Job {
                id: *job as u64,
                arrival: *arrival,
                class: 0,
                weight: 1000,
                held: state.held,
                deadline: None,
                stages: stages.collect(),
            }
        };
        Observation {
            now,
            // Number of tasks of one CPU that the machines could run at once.
            executors: (self.free.len() as u64 * MACHINE.cpus / 1000) as u32,
            free: self.free.iter().map(|amounts| Free { count: 1, amounts: *amounts }).collect(),
            jobs: self.active.iter().map(job).collect(),
            ..Observation::default()
        }
    }
}

/// The results of an order on a kind of jobs, over the seeds.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Packed {
    /// Kind of the jobs.
    pub jobs: &'static str,
    /// Name of the order.
    pub order: &'static str,
    /// Mean seconds from arrival to end.
    pub mean: Spread,
    /// Seconds until the last job ended.
    pub makespan: Spread,
    /// Mean divided by that of graphene.
    pub of_graphene: Spread,
    /// Largest use of CPUs and of memory at one time, as fractions of all.
    pub peak: [Spread; 2],
}

/// Runs all orders over the seeds: on the jobs of a trace, or without one on two kinds of jobs, which are generated
/// anew for each seed.
///
/// # Errors
/// As [`run`].
pub fn study(setup: Setup, trace: Option<&[TracedJob]>, seeds: &[u64]) -> Result<Vec<Packed>, StudyError> {
    let generate_jobs = |seed| arrivals(setup, &generate_jobs(seed, setup.jobs), seed);
    let alike = |seed| arrivals(setup, &alibaba::generated::jobs(seed, setup.jobs), seed);
    match trace {
        Some(trace) => compare("trace", setup, seeds, &|seed| replayed(setup, trace, seed)),
        None => {
            let mut all = compare("both scarce", setup, seeds, &generate_jobs)?;
            all.extend(compare("as Alibaba's", setup, seeds, &alike)?);
            Ok(all)
        }
    }
}

/// A function that returns the jobs of a seed, with their arrivals in milliseconds.
type Drawn<'a> = &'a dyn Fn(u64) -> Vec<(u64, Arc<JobModel>)>;

fn compare(jobs: &'static str, setup: Setup, seeds: &[u64], drawn: Drawn<'_>) -> Result<Vec<Packed>, StudyError> {
    let all = |order: &str| {
        let one = |seed: &u64| {
            let unknown = |_| StudyError::Setting { setting: "order", rule: "must be one of those that are known" };
            let mut policy: Heuristic = order.parse().map_err(unknown)?;
            run(setup, &drawn(*seed), &mut policy, *seed)
        };
        seeds.iter().map(one).collect::<Result<Vec<_>, StudyError>>()
    };
    let graphene = all("graphene")?;
    ORDERS
        .iter()
        .map(|order| {
            let outcomes = all(order)?;
            let values = |of: &dyn Fn(usize) -> f64| Spread::of(&(0..outcomes.len()).map(of).collect::<Vec<_>>());
            Ok(Packed {
                jobs,
                order,
                mean: values(&|n| outcomes[n].mean()),
                makespan: values(&|n| outcomes[n].makespan),
                of_graphene: values(&|n| outcomes[n].mean() / graphene[n].mean()),
                peak: [0, 1].map(|kind| values(&|n| outcomes[n].peak[kind])),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_end_and_machines_are_never_overfull() {
        let setup = Setup { machines: 2, jobs: 15, load: 1.2 };
        let jobs = arrivals(setup, &generate_jobs(4, 15), 4);
        for order in ORDERS {
            let go = || run(setup, &jobs, &mut order.parse::<Heuristic>().unwrap(), 4).unwrap();
            let outcome = go();
            assert_eq!(outcome, go());
            assert!(outcome.peak.iter().all(|peak| *peak <= 1.0), "{order}");
            assert!(outcome.completions.iter().all(|time| *time > 0.0));
        }
        assert!(run(setup, &[], &mut Heuristic::Fair, 1).is_err());
    }

    #[test]
    fn a_trace_is_replayed_in_its_own_order_at_the_load_of_the_setup() {
        let jobs = alibaba::generated::jobs(3, 40);
        let trace: Vec<TracedJob> =
            jobs.iter().enumerate().map(|(n, job)| TracedJob { at: (n * n) as u64, job: job.clone() }).collect();
        let setup = Setup { machines: 2, jobs: 10, load: 0.9 };
        let replay = replayed(setup, &trace, 1);
        assert_eq!(replay.len(), 10);
        let first = trace.iter().position(|traced| Arc::ptr_eq(&traced.job, &replay[0].1)).unwrap();
        for (n, (at, job)) in replay.iter().enumerate() {
            assert!(Arc::ptr_eq(job, &trace[first + n].job));
            let part = (trace[first + n].at - trace[first].at) as f64 / (trace[first + 9].at - trace[first].at) as f64;
            assert!((*at as f64 - part * replay[9].0 as f64).abs() <= 1.0);
        }
        let stages = replay.iter().flat_map(|(_, job)| &job.stages);
        let cpus: f64 =
            stages.map(|stage| stage.rough as f64 * f64::from(stage.tasks) * stage.demand.cpus as f64).sum();
        let load = cpus / (2.0 * MACHINE.cpus as f64) / replay[9].0 as f64;
        assert!((load - 0.9).abs() < 0.01, "CPUs are the scarcest: {load}");
        assert_eq!(replayed(setup, &trace[..4], 1).len(), 4, "a short trace is replayed as a whole");
        assert!(replayed(setup, &[], 1).is_empty());
        let rows = study(setup, Some(&trace), &[1, 2]).unwrap();
        assert!(rows.len() == ORDERS.len() && rows.iter().all(|row| row.jobs == "trace" && row.mean.mean > 0.0));
    }
}
