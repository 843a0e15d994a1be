//! The policy against fair sharing when a burst of queries comes, with real decoding: base queries that can wait, and for
//! a while as many again that cannot, on cores for about half of what all would like.
//!
//! Workers are threads that keep to their allotted processor time, so what is measured does not depend on the machine's
//! size, only on its having that little time to spare.

use std::path::Path;
use std::time::{Duration, SystemTime};

use video::core::{Orders, Start};
use video::pipeline::{Knobs, QueryKind};
use video::profile::{ClipOptions, Point, Profile};
use video::scene::{SceneOptions, generate};
use video::schedule::{AgentView, Correction, Demand, Goals, Horizon, Objective, Policy, QueryView, Share, decide};
use video::spec::QuerySpec;
use video::worker::HandWorker;

const BASE: usize = 5;
const BURST: usize = 5;
const SECONDS: u64 = 36;
const BURST_AT: (u64, u64) = (8, 26);
const HORIZON: Horizon = Horizon { seconds: 3.0 };

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
    worker: HandWorker,
    share: Share,
    position: f64,
    correction: Correction,
}

/// Sums over queries and seconds.
#[derive(Default)]
struct Sums {
    quality: f64,
    stream: f64,
    lag_over: f64,
    samples: f64,
}

fn query(video: &Path, kind: QueryKind, max_lag: f64, points: &[Point]) -> Query {
    let goals = Goals { max_lag, min_quality: 0.6, ..Default::default() };
    let spec = QuerySpec {
        name: "q".to_owned(),
        kind,
        video: video.to_owned(),
        looped: true,
        seconds: None,
        truth: None,
        profile: None,
        goals,
    };
    let orders = Orders { config: points[0].config, cores: 0.001 };
    let worker = HandWorker::start(Start { spec, began: wall(), position: 0.0, orders, patience: 1.0 });
    let share = Share { point: 0, cores: 0.001 };
    Query { points: points.to_vec(), goals, worker, share, position: 0.0, correction: Correction::new(1.0) }
}

impl Query {
    /// Takes in what the worker says; the mean quality and the lag count.
    fn look(&mut self, sums: &mut Sums) -> f64 {
        let report = self.worker.report();
        if let Some(point) = report.config.and_then(|c| self.points.iter().find(|p| p.config == c)) {
            let moved = report.position - self.position;
            sums.quality += moved * point.quality;
            sums.stream += moved;
            self.correction.look(point, report.position, report.core_seconds);
        }
        self.position = report.position;
        sums.lag_over += (report.lag - self.goals.max_lag).max(0.0);
        sums.samples += 1.0;
        report.lag
    }
}

fn run(video: &Path, profiles: &[(QueryKind, Vec<Point>)], cores: f64, policy: Policy) -> Sums {
    let begin = wall();
    let of = |i: usize, max_lag| {
        let (kind, points) = &profiles[i % profiles.len()];
        query(video, *kind, max_lag, points)
    };
    let mut base: Vec<Query> = (0..BASE).map(|i| of(i, 30.0)).collect();
    let mut burst: Vec<Query> = Vec::new();
    let mut sums = Sums::default();
    for second in 0..SECONDS * 2 {
        if second == BURST_AT.0 * 2 {
            burst = (0..BURST).map(|i| of(i, 1.0)).collect();
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
        let decided = decide(&[AgentView { cores }], &views, policy, Objective::MaxSum, HORIZON);
        for (query, decision) in all.iter_mut().zip(decided) {
            query.share = decision.share;
            let config = query.points[decision.share.point].config;
            query.worker.order(Orders { config, cores: decision.share.cores });
        }
        until(begin + (second + 1) as f64 * 0.5);
    }
    sums
}

fn main() {
    let path = std::env::temp_dir().join(format!("tepui-bench-burst-{}.mp4", std::process::id()));
    let options = SceneOptions { seed: 12, seconds: 12.0, ..Default::default() };
    generate(&options, &path).expect("a scene");
    let clip = || ClipOptions { seconds: options.seconds, ..Default::default() };
    let profiles: Vec<(QueryKind, Vec<Point>)> = [QueryKind::Cars, QueryKind::Plates, QueryKind::People]
        .into_iter()
        .map(|kind| (kind, Profile::make(&path, kind, &Knobs::default(), clip()).expect("a profile").frontier))
        .collect();
    let best = |i: usize| profiles[i % profiles.len()].1.last().map_or(0.0, |p| p.cores);
    let wanted: f64 = (0..BASE).chain(0..BURST).map(best).sum();
    println!(
        "burst: {BASE} queries that can wait 30 s, and from {} to {} s {BURST} that can wait 1 s;",
        BURST_AT.0, BURST_AT.1
    );
    println!("  all at their best would need {wanted:.3} cores");
    for part in [0.6, 0.4, 0.25] {
        let cores = wanted * part;
        println!("  on {cores:.3} cores:");
        let mut rows = Vec::new();
        for (name, policy) in [("videostorm", Policy::Videostorm), ("fair", Policy::Fair)] {
            let sums = run(&path, &profiles, cores, policy);
            let (quality, over) = (sums.quality / sums.stream, sums.lag_over / sums.samples);
            println!("    {name:<11} mean quality {quality:.3}   mean lag over goal {over:.3} s");
            rows.push((quality, over));
        }
        println!(
            "    quality {:+.0} %, lag over goal {:.1}x lower",
            (rows[0].0 / rows[1].0 - 1.0) * 100.0,
            rows[1].1 / rows[0].1.max(1e-3)
        );
    }
    std::fs::remove_file(&path).expect("removes");
    std::fs::remove_file(path.with_extension("json")).expect("removes");
}
