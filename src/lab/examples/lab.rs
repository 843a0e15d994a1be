//! Runs a scenario with one seed and prints its numbers; shows how to use the laboratory as a library.
//!
//! `cargo run --release -p lab --example lab -- lab/papers/drf.toml [SEED]`; `tepui lab run` does more.

#![allow(clippy::print_stdout, reason = "an example prints what it does")]

use std::path::PathBuf;

use lab::report::metrics;
use lab::scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().ok_or("which scenario?")?);
    let scenario = Scenario::read(&std::fs::read_to_string(&file)?, &file)?;
    let seed = arguments.next().map_or(Ok(scenario.seed), |seed| seed.parse())?;
    let directory = file.parent().unwrap_or(&file);
    let outcome = lab::run::run(&scenario, seed, directory, &mut |_| true)?;
    for metric in metrics(&outcome) {
        println!("{:40} {:.4}", metric.name, metric.value);
    }
    Ok(())
}
