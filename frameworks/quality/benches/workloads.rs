//! Compares policies over ten workloads: the sixteen trainings of `policies.rs` with other data, in another order and
//! with other pauses between them. Prints the means with 95 % intervals (Student's t, nine degrees of freedom), and for
//! each policy the ratio to equal shares in the same workload.
//!
//! Losses are those of real trainings, computed here; time is virtual.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![forbid(unsafe_code)]

mod support;

use quality::allocate::{Objective, Policy};
use quality::job::{Job, Source};
use quality::replay::{Outcome, RecordedJob, replay};
use support::{POOL, interval, sixteen, train};

const WORKLOADS: u64 = 10;

/// Returns the jobs of one workload: other data and another order of arrivals than in other workloads, with exponential
/// pauses.
fn workload(number: u64) -> Vec<Job> {
    let mut state = base::scramble(number + 1);
    let mut jobs = sixteen();
    let last = jobs.iter().map(|j| j.after).fold(0.0, f64::max);
    let mean = last / (jobs.len() - 1) as f64;
    for place in (1..jobs.len()).rev() {
        let other = (base::split_mix(&mut state) % (place as u64 + 1)) as usize;
        jobs.swap(place, other);
    }
    let mut now = 0.0;
    for job in &mut jobs {
        job.after = now;
        now -= mean * (1.0 - base::fraction(base::split_mix(&mut state))).ln();
        if let Source::Generated { seed, .. } = &mut job.data {
            *seed = seed.wrapping_add(1_000 * (number + 1));
        }
    }
    jobs
}

/// Returns the four measures of a run: the mean remaining loss in percent, the times to 90 % and to 95 % of the loss
/// reduction, and the mean completion time.
fn measures(curves: &[RecordedJob], outcome: &Outcome, until: f64) -> [f64; 4] {
    [
        100.0 * outcome.mean_left(curves, until),
        outcome.mean_time_to(curves, 0.1),
        outcome.mean_time_to(curves, 0.05),
        outcome.mean_completion(),
    ]
}

fn main() {
    let towards = |share| Policy::Towards(Objective::new(share).expect("a share"));
    let policies = [
        ("fair", Policy::Fair),
        ("slaq", Policy::Slaq),
        ("slaq, objective 0.5", towards(0.5)),
        ("slaq, objective 0.9", towards(0.9)),
        ("slaq, objective 1", towards(1.0)),
        ("shortest", Policy::Shortest),
    ];
    let mut found: Vec<Vec<[f64; 4]>> = vec![Vec::new(); policies.len()];
    for number in 0..WORKLOADS {
        let curves: Vec<RecordedJob> = workload(number).iter().map(train).collect();
        let outcomes: Vec<Outcome> = policies.iter().map(|(_, policy)| replay(&curves, *policy, POOL)).collect();
        let until = outcomes.iter().map(|o| o.makespan).fold(0.0, f64::max);
        for (of_policy, outcome) in found.iter_mut().zip(&outcomes) {
            of_policy.push(measures(&curves, outcome, until));
        }
    }
    println!("ten workloads of sixteen trainings on eight slots; mean and 95 % interval, and in brackets against fair");
    println!("| policy | left to learn, % | time to 90 %, s | time to 95 %, s | mean completion, s |");
    println!("|---|---|---|---|---|");
    let fair = found[0].clone();
    for ((name, _), of_policy) in policies.iter().zip(&found) {
        let cells = (0..4).map(|measure| {
            let values: Vec<f64> = of_policy.iter().map(|m| m[measure]).collect();
            let against: Vec<f64> =
                of_policy.iter().zip(&fair).map(|(m, f)| 100.0 * (m[measure] / f[measure] - 1.0)).collect();
            let ((mean, half), (ratio, around)) = (interval(&values), interval(&against));
            format!("{mean:.1} ± {half:.1} ({ratio:+.0} ± {around:.0} %)")
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}
