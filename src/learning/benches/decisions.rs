//! Measures decisions of environments a second: batches of 1 and of 16 on one thread, with observations, under random
//! actions. Jobs of stages are 20 on 50 executors.
//!
//! The actions are valid: a random stage of the mask. Nothing is written to a pipe.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use learning::files::NoFiles;
use learning::kinds::{EnvironmentFactory, NAMES};
use learning::space::Actions;
use learning::{Batch, BatchResults};

#[global_allocator]
static ALLOCATOR: containers::Memory = containers::Memory;

/// Duration of each measurement.
const SPAN: Duration = Duration::from_secs(3);

fn main() {
    println!("decisions a second on one thread, with observations");
    for name in NAMES {
        for count in [1, 16] {
            let rate = rate(name, count);
            println!("  {name:<14} {count:>2} environments: {rate:>9.0}");
        }
    }
}

fn rate(name: &str, count: usize) -> f64 {
    let settings = if name == "OfferPolicies" { serde_json::json!({"period": 30}) } else { serde_json::json!({}) };
    let factory = EnvironmentFactory::new(name, settings, &NoFiles).expect("usual settings");
    let mut batch = Batch::new(&factory, count, 1, true).expect("a small batch");
    let seeds: Vec<_> = (0..count as u64).map(|seed| Some(learning::EpisodeStart::Seed(seed))).collect();
    let mut parts = batch.reset(&seeds).expect("seeds");
    let (began, mut decisions, mut n) = (Instant::now(), 0_u64, 0_u64);
    while began.elapsed() < SPAN {
        let actions: Vec<u8> = (0..count).flat_map(|at| action(&batch, &parts[0], at, &mut n)).collect();
        parts = batch.step(&actions).expect("valid actions");
        decisions += count as u64;
    }
    decisions as f64 / began.elapsed().as_secs_f64()
}

/// Returns a valid action; for jobs of stages one of the mask.
fn action(batch: &Batch, part: &BatchResults, at: usize, n: &mut u64) -> Vec<u8> {
    *n = base::scramble(*n + 1);
    match &batch.spaces().action {
        Actions::Amounts(all) => all.iter().flat_map(|(low, high)| ((low + high) / 2.0).to_le_bytes()).collect(),
        Actions::Choices(counts) => {
            let mut choices: Vec<i32> = counts.iter().map(|count| (*n % u64::from(*count)) as i32).collect();
            let mask = batch.spaces().observation.iter().position(|field| field.name == "action_mask");
            if let Some(field) = mask {
                let size = batch.spaces().observation[field].bytes();
                let mask = &part.observations.0[field][size * at..][..size];
                let valid: Vec<usize> = (0..size).filter(|node| mask[*node] > 0).collect();
                choices[0] = valid.get(*n as usize % valid.len().max(1)).map_or(0, |node| *node as i32);
            }
            choices.into_iter().flat_map(i32::to_le_bytes).collect()
        }
    }
}
