//! Measures the error of losses predicted ten iterations ahead, and the time of a decision for 4,000 jobs and 16,000
//! cores.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![forbid(unsafe_code)]

mod support;

use std::collections::BTreeMap;
use std::time::Instant;

use quality::allocate::{Bid, Policy, decide};
use quality::predict::{Forecaster, HORIZON};
use quality::replay::RecordedJob;
use support::{line, sixteen, train};

fn main() {
    println!("loss {HORIZON} iterations ahead: the error as a share of the loss that came");
    let mut kinds: BTreeMap<(bool, &str), Vec<f64>> = BTreeMap::new();
    let mut forecasters = Vec::new();
    for job in sixteen() {
        let key = (!job.algorithm.is_convex(), job.algorithm.name());
        let curve = train(&job);
        let mut forecaster = Forecaster::new(None);
        for loss in &curve.losses {
            forecaster.observe(*loss);
            forecaster.observe_time(curve.seconds(2), 2, curve.seconds(1));
        }
        kinds.entry(key).or_default().extend(forecaster.errors().recent());
        forecasters.push((curve, forecaster));
    }
    let mut convex = Vec::new();
    for ((other, kind), errors) in &mut kinds {
        let wanted = if *other { "" } else { "below 5 %" };
        let worst = quantile(errors, 0.9);
        line(
            &format!("  {kind}: median, and nine in ten are below"),
            &format!("{:.2} %, {worst:.1} %", quantile(errors, 0.5)),
            wanted,
        );
        if !*other {
            convex.extend(errors.iter().copied());
        }
    }
    line("  all convex jobs: median", &format!("{:.2} %", quantile(&mut convex, 0.5)), "below 5 %");
    decisions(&forecasters);
}

fn quantile(errors: &mut [f64], part: f64) -> f64 {
    errors.sort_by(f64::total_cmp);
    let place = (errors.len() as f64 * part) as usize;
    100.0 * errors.get(place.min(errors.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Measures allocation decisions for jobs in all stages of their training, copied until there are 4,000.
fn decisions(forecasters: &[(RecordedJob, Forecaster)]) {
    const JOBS: usize = 4_000;
    const CORES: u32 = 16_000;
    let mut stages = Vec::new();
    for (curve, _) in forecasters {
        let mut forecaster = Forecaster::new(None);
        for loss in curve.losses.iter().take(60) {
            forecaster.observe(*loss);
            forecaster.observe_time(curve.seconds(2), 2, curve.seconds(1));
            stages.push(forecaster.forecast());
        }
    }
    let bid = |i: usize| Bid {
        priority: 1.0 + (i % 7) as f64 / 10.0,
        floor: 1,
        ceiling: 64,
        held: 2,
        forecast: stages[i * 7919 % stages.len()],
        reached: false,
        waited: 0,
        served: 9,
        done: 9,
        received: i as f64,
        remaining: Some(i as f64),
    };
    let bids: Vec<Bid> = (0..JOBS).map(bid).collect();
    println!("a decision for {JOBS} jobs and {CORES} cores");
    for policy in [Policy::Slaq, Policy::Fair, Policy::Fifo, Policy::Shortest] {
        let mut times: Vec<f64> = (0..21).map(|_| millis(|| drop(decide(policy, &bids, CORES, 3.0)))).collect();
        times.sort_by(f64::total_cmp);
        let wanted = if policy == Policy::Slaq { "at most 20 ms; the paper: hundreds of ms up to 2 s" } else { "" };
        line(&format!("  {}: median of 21", policy.name()), &format!("{:.2} ms", times[10]), wanted);
    }
    let mut forecaster = forecasters[0].1.clone();
    let loss = forecasters[0].0.end();
    let fits = millis(|| (0..1_000_u32).for_each(|i| forecaster.observe(loss + 1.0 / f64::from(i + 1)))) / 1_000.0;
    line("  taking in a loss and fitting both families again", &format!("{:.3} ms", fits), "");
}

fn millis(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}
