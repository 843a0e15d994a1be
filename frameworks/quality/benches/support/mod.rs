//! What the benchmarks share: real trainings as loss curves, and a model of slots that work at a fixed pace.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use quality::allocate::{Bid, Policy, decide};
use quality::job::{Job, parse};
use quality::learn::{Algorithm, Local};
use quality::predict::{Forecaster, Outlook};

/// How many numbers of the data a core looks at in a second.
pub const PACE: f64 = 400_000.0;
/// Cores to share.
pub const SLOTS: u32 = 8;
/// For how long a decision holds, in seconds.
pub const EPOCH: f64 = 1.0;
/// What sending, merging and the step add to a round, in seconds: measured in live runs.
const OVERHEAD: f64 = 0.01;

/// The sixteen jobs.
pub fn sixteen() -> Vec<Job> {
    parse("sixteen.toml", include_str!("../sixteen.toml")).expect("the file is part of the benchmark")
}

/// A job with the losses that its training really has: they do not depend on who computes which shard.
pub struct Curve {
    pub job: Job,
    pub losses: Vec<f64>,
    /// Seconds that a core needs for the largest number of shards a worker gets, times shards.
    work: f64,
    rounds: f64,
}

impl Curve {
    /// Trains a job from its first to its last iteration.
    pub fn train(job: Job) -> Curve {
        let prepared = job.data.prepare(&job.algorithm, None).expect("generated data");
        let shards = (0..job.shards).map(|s| prepared.shard(&job.algorithm, s, job.shards).expect("generated data"));
        let shape = prepared.shape();
        let local = Local::new(job.algorithm.clone(), shape, shards.collect()).expect("a good job");
        let losses = local.run(job.iterations).expect("a training that converges").losses;
        let rounds = match &job.algorithm {
            Algorithm::BoostedTrees(o) => o.depth as f64,
            Algorithm::Perceptron(o) => f64::from(o.steps),
            _ => 1.0,
        };
        let work = (shape.rows * shape.columns) as f64 / PACE;
        Curve { job, losses, work, rounds }
    }

    /// A training that somebody else has done.
    pub fn recorded(job: Job, losses: Vec<f64>) -> Curve {
        Curve { job, losses, work: 0.0, rounds: 1.0 }
    }

    /// The lowest loss that the job reaches.
    pub fn end(&self) -> f64 {
        self.losses.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The share of what there is to learn that is not learnt after so many iterations.
    pub fn left(&self, iterations: usize) -> f64 {
        let at = self.losses[iterations.min(self.losses.len() - 1)];
        (at - self.end()) / (self.losses[0] - self.end())
    }

    /// How long an iteration takes on so many cores: the worker with most shards decides.
    pub fn seconds(&self, cores: u32) -> f64 {
        let most = self.job.shards.div_ceil(cores as usize) as f64 / self.job.shards as f64;
        self.rounds * (self.work * most + OVERHEAD)
    }

    fn busy(&self) -> f64 {
        self.rounds * self.work
    }
}

/// What a policy did with the jobs.
pub struct Outcome {
    /// For each job the seconds from its submission until each iteration's end.
    pub ends: Vec<Vec<f64>>,
    /// When the last job ended.
    pub makespan: f64,
}

impl Outcome {
    /// The mean over all jobs of the share that is left to learn, over the time from a job's submission to `until`; a
    /// job that has ended counts with what it left.
    pub fn mean_left(&self, curves: &[Curve], until: f64) -> f64 {
        let mut sums = (0.0, 0.0);
        for (curve, ends) in curves.iter().zip(&self.ends) {
            let span = until - curve.job.after;
            let mut last = 0.0;
            for (iteration, end) in ends.iter().enumerate() {
                sums.0 += curve.left(iteration) * (end.min(span) - last);
                last = end.min(span);
            }
            sums.0 += curve.left(ends.len()) * (span - last);
            sums.1 += span;
        }
        sums.0 / sums.1
    }

    /// The mean over time of the mean over the jobs that run at that time, as SLAQ's paper plots it.
    pub fn mean_left_of_running(&self, curves: &[Curve]) -> f64 {
        let (mut sum, mut count) = (0.0, 0);
        let mut now = 0.0;
        while now < self.makespan {
            let mut running = Vec::new();
            for (curve, ends) in curves.iter().zip(&self.ends) {
                let age = now - curve.job.after;
                if age >= 0.0 && ends.last().is_some_and(|end| age < *end) {
                    running.push(curve.left(ends.partition_point(|end| *end <= age)));
                }
            }
            if !running.is_empty() {
                sum += running.iter().sum::<f64>() / running.len() as f64;
                count += 1;
            }
            now += 0.25;
        }
        sum / f64::from(count.max(1))
    }

    /// The mean over all jobs of the seconds until only this share is left to learn.
    pub fn mean_time_to(&self, curves: &[Curve], share: f64) -> f64 {
        let time = |(curve, ends): (&Curve, &Vec<f64>)| {
            let done = (0..ends.len()).find(|i| curve.left(*i + 1) <= share).unwrap_or(ends.len() - 1);
            ends[done]
        };
        curves.iter().zip(&self.ends).map(time).sum::<f64>() / curves.len() as f64
    }
}

struct Running {
    forecaster: Forecaster,
    cores: u32,
    /// Of the iteration under way: its cores, its start and its end.
    under_way: Option<(u32, f64, f64)>,
    received: f64,
    waited: u32,
    served: u32,
}

/// Runs a policy over the jobs' real losses in virtual time: epochs, whole iterations, and slots of a fixed pace.
pub fn replay(curves: &[Curve], policy: Policy) -> Outcome {
    let mut ends: Vec<Vec<f64>> = vec![Vec::new(); curves.len()];
    let fresh = |_| Running {
        forecaster: Forecaster::new(None),
        cores: 0,
        under_way: None,
        received: 0.0,
        waited: 0,
        served: 0,
    };
    let mut jobs: Vec<Running> = (0..curves.len()).map(fresh).collect();
    let mut now = 0.0;
    while ends.iter().zip(curves).any(|(e, c)| e.len() < c.losses.len()) {
        let active: Vec<usize> = (0..curves.len())
            .filter(|j| curves[*j].job.after <= now && ends[*j].len() < curves[*j].losses.len())
            .collect();
        let bids: Vec<Bid> = active.iter().map(|j| bid(&curves[*j], &jobs[*j], &ends[*j])).collect();
        for (job, cores) in active.iter().zip(decide(policy, &bids, SLOTS, EPOCH)) {
            jobs[*job].cores = cores;
            jobs[*job].served = if cores == 0 { 0 } else { jobs[*job].served + 1 };
            jobs[*job].waited = if cores == 0 { jobs[*job].waited + 1 } else { 0 };
            jobs[*job].received += f64::from(cores) * EPOCH;
        }
        // The next decision: after an epoch, or when a job comes.
        let next = curves.iter().map(|c| c.job.after).filter(|a| *a > now).fold(now + EPOCH, f64::min);
        for job in active {
            run(&curves[job], &mut jobs[job], &mut ends[job], now, next);
        }
        now = next;
    }
    let makespan = curves.iter().zip(&ends).map(|(c, e)| c.job.after + e[e.len() - 1]).fold(0.0, f64::max);
    Outcome { ends, makespan }
}

fn bid(curve: &Curve, job: &Running, ends: &[f64]) -> Bid {
    let outlook = job.forecaster.outlook();
    let remaining = match outlook {
        Outlook::Clear { .. } => Some((curve.losses.len() - ends.len()) as f64 * curve.busy()),
        _ => None,
    };
    Bid {
        priority: curve.job.priority,
        floor: 1,
        ceiling: curve.job.ceiling(),
        held: job.cores,
        outlook,
        reached: false,
        waited: job.waited,
        served: job.served,
        received: job.received,
        remaining,
    }
}

/// What a job does between two instants.
fn run(curve: &Curve, job: &mut Running, ends: &mut Vec<f64>, from: f64, until: f64) {
    let mut now = from;
    while ends.len() < curve.losses.len() {
        let (cores, began, end) = match job.under_way {
            Some(under_way) => under_way,
            None if job.cores == 0 => return,
            None => (job.cores, now, now + curve.seconds(job.cores)),
        };
        if end > until {
            job.under_way = Some((cores, began, end));
            return;
        }
        job.under_way = None;
        job.forecaster.observe(curve.losses[ends.len()]);
        job.forecaster.observe_time(end - began, cores, curve.busy());
        ends.push(end - curve.job.after);
        now = end;
    }
}

/// Prints what each policy did, and the first against the second.
pub fn comparison(curves: &[Curve], outcomes: &[(&str, &Outcome)]) {
    let until = outcomes.iter().map(|(_, o)| o.makespan).fold(0.0, f64::max);
    for (name, outcome) in outcomes {
        println!("{name}: all done after {:.0} s", outcome.makespan);
        line("  left to learn, mean over run and jobs", &percent(outcome.mean_left(curves, until)), "");
        line("  the same over the jobs that run at a time", &percent(outcome.mean_left_of_running(curves)), "");
        for share in [0.1, 0.05] {
            let what = format!("  mean time until {:.0} % are learnt", 100.0 * (1.0 - share));
            line(&what, &format!("{:.1} s", outcome.mean_time_to(curves, share)), "");
        }
    }
    let (slaq, fair) = (outcomes[0].1, outcomes[1].1);
    let lower = |a: f64, b: f64| percent(1.0 - a / b);
    println!("{} against {}", outcomes[0].0, outcomes[1].0);
    let left = lower(slaq.mean_left(curves, until), fair.mean_left(curves, until));
    line("  mean normalised loss over the run, lower by", &left, "at least 30 %");
    let running = lower(slaq.mean_left_of_running(curves), fair.mean_left_of_running(curves));
    line("  the same over the jobs that run at a time", &running, "the paper: 73 %");
    let time = lower(slaq.mean_time_to(curves, 0.1), fair.mean_time_to(curves, 0.1));
    line("  time to 90 % loss reduction, shorter by", &time, "at least 25 %; the paper: 45 %");
    let time = lower(slaq.mean_time_to(curves, 0.05), fair.mean_time_to(curves, 0.05));
    line("  time to 95 % loss reduction, shorter by", &time, "the paper: 30 %");
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A line of a table: what, the figure, and what it should be.
pub fn line(what: &str, figure: &str, wanted: &str) {
    println!("{what:<58} {figure:>14}   {wanted}");
}
