//! How long a decision takes: 200 jobs of 10 stages each, 500 executors of which 50 are free, under every order.
//!
//! Prints the median and the longest of many decisions.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![forbid(unsafe_code)]

use std::time::Instant;

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
        let mut micros: Vec<f64> = (0..DECISIONS)
            .map(|n| {
                let observation = &all[n % all.len()];
                let began = Instant::now();
                let actions = order.decide(observation);
                assert!(!grants(observation, &actions).is_empty());
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        micros.sort_by(f64::total_cmp);
        println!("  {name:<14} median {:6.0} us, longest {:6.0} us", micros[DECISIONS / 2], micros[DECISIONS - 1]);
    }
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
    Job { id, arrival: id, class: 0, weight: 1000, held, deadline: None, stages: stages.collect() }
}
