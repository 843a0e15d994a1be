//! Compares the scheduler's policy with fair sharing during a burst of queries, with real decoding. Queries on small
//! videos tolerate lag; for a while there are also queries on large videos that do not, as when plates must be read in
//! high resolution after an incident.
//!
//! Fair sharing is measured twice: with each query fixed at the best configuration, as its user set it up, and with
//! each query at the best configuration that its equal share keeps up with, which is a part of the policy. Workers are
//! threads that limit themselves to their allotted processor time, so the results do not depend on the size of the
//! machine as long as that little time is available.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use video::core::{Orders, Start};
use video::pipeline::{Knobs, QueryKind};
use video::profile::{ClipOptions, Point, Profile};
use video::scene::{SceneOptions, generate};
use video::schedule::{AgentView, Correction, Demand, Goals, Horizon, Objective, Policy, QueryView, Share, decide};
use video::spec::QuerySpec;
use video::worker::LocalWorker;

const BASE: usize = 6;
const BURST: usize = 4;
const SECONDS: u64 = 36;
const BURST_AT: (u64, u64) = (6, 20);
/// Available cores divided by the cores that all queries need at their best configurations during the burst.
const LOADS: [f64; 3] = [0.4, 0.22, 0.16];
/// Largest allowed lag of the queries of the base and of the burst, in seconds.
const WAITS: (f64, f64) = (30.0, 1.0);

#[expect(clippy::disallowed_methods, reason = "a live stream goes by the clock on the wall")]
fn wall() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark waits for its next step")]
fn until(at: f64) {
    std::thread::sleep(Duration::from_secs_f64((at - wall()).max(0.0)));
}

struct Query {
    points: Vec<Point>,
    goals: Goals,
    worker: LocalWorker,
    share: Share,
    position: f64,
    /// Part of the stream that falls into the burst, from and to a position in seconds.
    window: (f64, f64),
    correction: Correction,
}

/// Sums over queries and seconds. Quality counts the stream time during the burst, whenever it is processed; what is
/// never processed counts as 0. Lag counts over the whole run.
#[derive(Default)]
struct Sums {
    quality: f64,
    stream: f64,
    lag_over: f64,
    samples: f64,
}

fn query(video: &Path, kind: QueryKind, (max_lag, window): (f64, (f64, f64)), points: &[Point]) -> Query {
    let goals = Goals { max_lag, min_quality: 0.6, ..Default::default() };
    let spec = QuerySpec {
        name: "q".to_owned(),
        kind,
        video: video.into(),
        reconnect: 0.0,
        scope: video::pipeline::Scope::default(),
        detector: video::vision::Detector::Colour,
        alert: false,
        model: None,
        looped: true,
        seconds: None,
        truth: None,
        profile: None,
        goals,
    };
    let orders = Orders { config: points[0].config, cores: 0.001 };
    let worker = LocalWorker::start(Start {
        spec,
        age: 0.0,
        position: 0.0,
        orders,
        golden: video::pipeline::Config::GOLDEN,
        sample_every: 0.0,
        patience: 1.0,
    });
    let share = Share { point: 0, cores: 0.001 };
    Query { points: points.to_vec(), goals, worker, share, position: 0.0, window, correction: Correction::new(1.0) }
}

impl Query {
    /// Adds the worker's report to the sums: the quality of what was processed, and the lag over its limit. Returns the
    /// lag.
    fn look(&mut self, sums: &mut Sums) -> f64 {
        let report = self.worker.report();
        if let Some(point) = report.config.and_then(|c| self.points.iter().find(|p| p.config == c)) {
            let within = |position: f64| position.clamp(self.window.0, self.window.1);
            sums.quality += (within(report.position) - within(self.position)) * point.quality;
            self.correction.record(point, report.position, report.core_seconds);
        }
        self.position = report.position;
        sums.lag_over += (report.lag - self.goals.max_lag).max(0.0);
        sums.samples += 1.0;
        report.lag
    }
}

/// A video with the profiles of the query kinds that run on it.
struct Street {
    path: PathBuf,
    profiles: Vec<(QueryKind, Vec<Point>)>,
}

impl Street {
    fn make(name: &str, size: (usize, usize), kinds: &[QueryKind]) -> Street {
        let path = std::env::temp_dir().join(format!("tepui-bench-burst-{name}-{}.mp4", std::process::id()));
        let options = SceneOptions { seed: 12, seconds: 12.0, width: size.0, height: size.1, ..Default::default() };
        generate(&options, &path).expect("a scene");
        let clip = || ClipOptions { seconds: options.seconds, bytes: 2 << 30, ..Default::default() };
        let profile = |kind| Profile::make(&path, kind, &Knobs::default(), clip()).expect("a profile").frontier;
        Street { profiles: kinds.iter().map(|kind| (*kind, profile(*kind))).collect(), path }
    }

    fn profile(&self, number: usize) -> &(QueryKind, Vec<Point>) {
        &self.profiles[number % self.profiles.len()]
    }

    fn query(&self, number: usize, max_lag: f64, window: (f64, f64)) -> Query {
        let (kind, points) = self.profile(number);
        query(&self.path, *kind, (max_lag, window), points)
    }

    /// Returns the cores that `many` queries need at their cheapest and at their best configurations.
    fn wanted(&self, many: usize) -> (f64, f64) {
        let ends = |number| (self.profile(number).1[0].cores, self.profile(number).1.last().map_or(0.0, |p| p.cores));
        (0..many).map(ends).fold((0.0, 0.0), |sum, (least, most)| (sum.0 + least, sum.1 + most))
    }
}

impl Drop for Street {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.path.with_extension("json"));
    }
}

/// A policy that divides the cores, and whether configurations stay fixed at the best.
#[derive(Clone, Copy)]
struct Rule {
    name: &'static str,
    policy: Policy,
    fixed: bool,
}

const RULES: [Rule; 3] = [
    Rule { name: "videostorm", policy: Policy::Videostorm, fixed: false },
    Rule { name: "fair, configurations fixed", policy: Policy::Fair, fixed: true },
    Rule { name: "fair, configurations chosen", policy: Policy::Fair, fixed: false },
];

fn run(small: &Street, large: &Street, cores: f64, rule: Rule) -> Sums {
    let begin = wall();
    let within = (BURST_AT.0 as f64, BURST_AT.1 as f64);
    let length = within.1 - within.0;
    let mut base: Vec<Query> = (0..BASE).map(|i| small.query(i, WAITS.0, within)).collect();
    let mut burst: Vec<Query> = Vec::new();
    let mut sums = Sums { stream: length * (BASE + BURST) as f64, ..Default::default() };
    for second in 0..SECONDS * 2 {
        if second == BURST_AT.0 * 2 {
            burst = (0..BURST).map(|i| large.query(i, WAITS.1, (0.0, length))).collect();
        }
        if second == BURST_AT.1 * 2 {
            burst.clear();
        }
        let mut all: Vec<&mut Query> = base.iter_mut().chain(&mut burst).collect();
        let lags: Vec<f64> = all.iter_mut().map(|query| query.look(&mut sums)).collect();
        let views: Vec<QueryView<'_>> = all
            .iter()
            .zip(&lags)
            .map(|(q, lag)| QueryView {
                demand: Demand { goals: q.goals, points: &q.points, lag: *lag, correction: q.correction.factor() },
                agent: Some(0),
            })
            .collect();
        let decided = decide(&[AgentView { cores }], &views, rule.policy, Objective::MaxSum, Horizon::default());
        for (query, decision) in all.iter_mut().zip(decided) {
            query.share = decision.share;
            if rule.fixed {
                query.share.point = query.points.len() - 1;
            }
            let config = query.points[query.share.point].config;
            query.worker.set_orders(Orders { config, cores: decision.share.cores });
        }
        until(begin + (second + 1) as f64 * 0.5);
    }
    sums
}

fn main() {
    let small = Street::make("small", (640, 360), &[QueryKind::Cars, QueryKind::Tracks, QueryKind::People]);
    let large = Street::make("large", (1280, 720), &[QueryKind::Plates, QueryKind::Cars]);
    let (base, burst) = (small.wanted(BASE), large.wanted(BURST));
    println!(
        "burst: {BASE} queries on 640x360 that can wait {} s, and from {} to {} s {BURST} on 1280x720 that can wait {} s;",
        WAITS.0, BURST_AT.0, BURST_AT.1, WAITS.1
    );
    println!("  all at their cheapest need {:.3} cores, at their best {:.3}", base.0 + burst.0, base.1 + burst.1);
    for load in LOADS {
        let cores = load * (base.1 + burst.1);
        println!("  on {cores:.3} cores, {load} of what all want at their best:");
        let rows = RULES.map(|rule| {
            let sums = run(&small, &large, cores, rule);
            let (quality, over) = (sums.quality / sums.stream, sums.lag_over / sums.samples);
            println!("    {:<27} mean quality {quality:.3}   mean lag over goal {over:.3} s", rule.name);
            (quality, over)
        });
        for (rule, row) in RULES.iter().zip(rows).skip(1) {
            println!(
                "    against {}: quality {:+.0} %, lag over goal {:.1}x lower",
                rule.name,
                (rows[0].0 / row.0 - 1.0) * 100.0,
                row.1 / rows[0].1.max(1e-3)
            );
        }
    }
}
