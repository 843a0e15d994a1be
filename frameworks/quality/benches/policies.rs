//! Compares the policies: sixteen real trainings share eight slots under each policy. Prints the mean remaining loss
//! over the run and the time until nine tenths of the loss reduction.
//!
//! The losses are those of real trainings, computed here; they do not depend on the placement. Time is virtual: a slot
//! processes 400,000 numbers a second, and a round has 10 ms of overhead, so that results are equal on every machine.
//! `live.rs` runs the same jobs on a real cluster.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![forbid(unsafe_code)]

mod support;

use quality::allocate::Policy;
use quality::replay::{RecordedJob, replay};
use support::{POOL, comparison, sixteen, train};

fn main() {
    println!("sixteen trainings on eight slots, by policy; losses are real, time is virtual");
    let jobs = sixteen();
    let curves: Vec<RecordedJob> = jobs.iter().map(train).collect();
    for (job, curve) in jobs.iter().zip(&curves) {
        let to = |share: f64| (0..curve.losses.len()).find(|i| curve.left(*i) <= share).unwrap_or(0);
        println!(
            "  {:<14} {:5.2} s of one core an iteration; 90 % learnt after {:3}, 99 % after {:3} of {}",
            job.name,
            curve.seconds(1),
            to(0.1),
            to(0.01),
            curve.losses.len()
        );
    }
    let policies = [Policy::Slaq, Policy::Fair, Policy::Fifo, Policy::Shortest];
    let outcomes: Vec<_> = policies.iter().map(|p| (p.name(), replay(&curves, *p, POOL))).collect();
    let outcomes: Vec<_> = outcomes.iter().map(|(name, outcome)| (*name, outcome)).collect();
    comparison(&curves, &outcomes);
}
