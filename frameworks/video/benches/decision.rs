//! Measures how long one decision takes for 8,000 queries on 1,000 agents: allocation, placement, and the settlement of
//! each agent.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::time::Instant;

use video::pipeline::{Config, Knobs};
use video::profile::Point;
use video::schedule::{AgentView, Demand, Goals, Horizon, Objective, Policy, QueryView, decide};

const QUERIES: usize = 8_000;
const AGENTS: usize = 1_000;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn main() {
    // A few dozen points on each frontier, as in real profiles, with differing demands and goals.
    let configs: Vec<Config> = Knobs::default().all();
    let frontier = |seed: usize| -> Vec<Point> {
        let scale = 0.5 + (seed % 17) as f64 / 8.0;
        let point = |i: usize| {
            let part = (i + 1) as f64 / 24.0;
            Point { config: configs[i], quality: part.powf(0.4 + (seed % 5) as f64 / 10.0), cores: scale * part * part }
        };
        (0..24).map(point).collect()
    };
    let frontiers: Vec<Vec<Point>> = (0..QUERIES).map(frontier).collect();
    let goals = |i: usize| Goals {
        max_lag: [1.0, 5.0, 60.0, 300.0][i % 4],
        min_quality: 0.3 + (i % 5) as f64 / 10.0,
        ..Default::default()
    };
    let queries = |placed: bool| -> Vec<QueryView<'_>> {
        let view = |(i, points): (usize, &'static [Point])| QueryView {
            demand: Demand { goals: goals(i), points, lag: (i % 13) as f64, correction: 0.8 + (i % 5) as f64 / 10.0 },
            agent: placed.then_some(i % AGENTS),
        };
        frontiers.iter().map(|f| -> &'static [Point] { f.clone().leak() }).enumerate().map(view).collect()
    };
    let agents = vec![AgentView { cores: 4.0 }; AGENTS];
    println!("decision, {QUERIES} queries on {AGENTS} agents of 4 cores:");
    for (name, policy, objective) in [
        ("videostorm, max-sum", Policy::Videostorm, Objective::MaxSum),
        ("videostorm, max-min", Policy::Videostorm, Objective::MaxMin),
        ("fair", Policy::Fair, Objective::MaxSum),
    ] {
        for (what, placed) in [("all to be placed", false), ("all placed", true)] {
            let queries = queries(placed);
            let mut times: Vec<f64> = (0..5)
                .map(|_| {
                    let start = Instant::now();
                    std::hint::black_box(decide(&agents, &queries, policy, objective, Horizon::default()));
                    start.elapsed().as_secs_f64() * 1000.0
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("  {name:<20} {what:<17} {:>7.1} ms", times[2]);
        }
    }
}
