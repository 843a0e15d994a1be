//! Measures the time of a decision: 200 jobs of 10 stages each, 500 executors of which 50 are free, under every order;
//! and under the learned one when a single executor is free, as is usual, with one job that has changed and with all of
//! them.
//!
//! Prints the median and the longest of many decisions.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use dag::learned::{Decima, Mode, Network};
use dag::order::{Amounts, Free, Heuristic, Job, Observation, Policy, Stage, grants};
use dag::study::random::Random;

const DECISIONS: usize = 300;

fn main() {
    let mut random = Random::new(1, "bench");
    let orders = ["fifo", "fair", "weighted -0.5", "sjf-cp", "remaining", "tetris", "graphene"];
    let all: Vec<Observation> = (0..20).map(|_| observation(&mut random)).collect();
    println!("one decision: 200 jobs of 10 stages, 50 of 500 executors free");
    for name in orders {
        let Ok(mut order) = name.parse::<Heuristic>() else { continue };
        measure(name, &mut order, |n| all[n % all.len()].clone());
    }
    let network = Arc::new(Network::new(1));
    measure("decima", &mut Decima::new(network.clone(), Mode::Greedy), |n| all[n % all.len()].clone());
    println!("one decision: 200 jobs of 10 stages, 1 of 500 executors free");
    let one = |mut observation: Observation| {
        observation.free[0].count = 1;
        observation
    };
    measure("decima, all new", &mut Decima::new(network.clone(), Mode::Greedy), |n| one(all[n % all.len()].clone()));
    measure("decima, one new", &mut Decima::new(network, Mode::Greedy), |n| {
        let mut observation = one(all[0].clone());
        observation.jobs[n % 200].held += n as u32;
        observation
    });
}

fn measure(name: &str, order: &mut dyn Policy, observation: impl Fn(usize) -> Observation) {
    let mut micros: Vec<f64> = (0..DECISIONS)
        .map(|n| {
            let observation = observation(n);
            let began = Instant::now();
            let actions = order.decide(&observation);
            assert!(!grants(&observation, &actions).is_empty());
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    println!("  {name:<15} median {:6.0} us, longest {:6.0} us", micros[DECISIONS / 2], micros[DECISIONS - 1]);
}

fn observation(random: &mut Random) -> Observation {
    let jobs = (0..200).map(|id| job(id, random)).collect();
    let amounts = Amounts { cpus: 4000, mem: 8_000_000, gpus: 0 };
    Observation {
        executors: 500,
        free: vec![Free { count: 50, amounts }],
        source: Some(17),
        ahead: true,
        jobs,
        ..Observation::default()
    }
}

fn job(id: u64, random: &mut Random) -> Job {
    let held = random.below(5) as u32;
    let stages = (0..10_u32).map(|at| {
        let parents = (0..at.min(2)).map(|n| at - 1 - n).collect();
        let demand = Amounts { cpus: 1000 + random.below(4) as u64 * 1000, mem: 1_000_000, gpus: 0 };
        let tasks = 1 + random.below(30) as u32;
        Stage { tasks, duration: 500 + random.below(9000) as u64, parents, demand, ..Stage::default() }
    });
    Job { id, arrival: id, class: 0, weight: 1000, deadline: None, held, stages: stages.collect() }
}
