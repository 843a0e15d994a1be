//! Runs video queries that share cores (VideoStorm) in virtual time: the policy code of the video framework decides,
//! with profiles of its profiler. A query's lag grows by what its cores cannot process in time; no video is decoded.

use std::path::Path;

use lab::seeds::{Rng, Seed};
use lab::span::Span;
use plot::{Line, Lines};
use rand_distr::{Distribution, StandardUniform};
use serde::Deserialize;
use video::profile::{Point, Profile};
use video::schedule::{AgentView, Demand, Goals, Horizon, Objective, Policy, QueryView, Share, decide};

use crate::Failed;
use crate::row::{Row, over_seeds};

/// A scenario with video queries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "`name`, `about` and `replay` are for readers and for the choice of this kind")]
pub struct Streams {
    name: String,
    about: String,
    replay: String,
    /// Directory of profiles, relative to the scenario: `STREET-KIND.json`.
    profiles: String,
    seed: u64,
    repetitions: u64,
    duration: Span,
    /// Interval of decisions.
    every: Span,
    agents: usize,
    /// Number of cores of each agent.
    cores: f64,
    /// Factors for the cores that queries need, relative to our own profiles: a row for each.
    times: Vec<f64>,
    base: Group,
    burst: Group,
    /// Time at which the burst begins, and time at which it ends.
    from: Span,
    to: Span,
    /// Numbers of queries in the burst: a row for each.
    queries: Vec<usize>,
}

/// A group of queries that are drawn from the same distributions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(default)]
    count: usize,
    /// Kinds of the queries.
    kinds: Vec<String>,
    /// Share of the queries that tolerate a lag of up to `patient`.
    tolerant: f64,
    patient: [f64; 2],
    /// Range of the lag goals of the other queries.
    hasty: [f64; 2],
    min_quality: [f64; 2],
}

/// The state of a running query.
struct Query<'a> {
    points: &'a [Point],
    goals: Goals,
    agent: Option<usize>,
    share: Share,
    lag: f64,
    burst: bool,
}

/// Sums over queries and decisions during the burst.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    quality: f64,
    looked: f64,
    lag: f64,
    late: f64,
    over: f64,
}

impl Streams {
    /// Runs the scenario, and returns its rows.
    pub fn rows(text: &str, directory: &Path) -> Result<Vec<Row>, Failed> {
        let scenario: Streams = toml::from_str(text)?;
        let mut rows = Vec::new();
        for times in &scenario.times {
            let profiles = read(&directory.join(&scenario.profiles), *times)?;
            rows.extend(scenario.queries.iter().map(|burst| scenario.row(*times, *burst, &profiles)));
        }
        Ok(rows)
    }

    fn row(&self, times: f64, burst: usize, profiles: &[(String, Vec<Point>)]) -> Row {
        let (mut numbers, mut pictures) = (Vec::new(), Vec::new());
        for seed in self.seed..self.seed + self.repetitions {
            let runs =
                POLICIES.map(|(name, _, policy, objective)| (name, self.run(burst, profiles, policy, objective, seed)));
            let mut all: Vec<(String, f64)> = Vec::new();
            for (name, run) in &runs {
                all.extend(run.numbers().map(|(number, value)| (format!("{name}.{number}"), value)));
            }
            for policy in ["sum", "min"] {
                let number = |name: String| all.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |one| one.1);
                let of = |what: &str| (number(format!("{policy}.{what}")), number(format!("fair.{what}")));
                let ((quality, fair), (lag, fair_lag), (over, fair_over)) = (of("quality"), of("lag"), of("over"));
                let more = [
                    ("better", quality / fair - 1.0),
                    ("shorter", fair_lag / lag.max(1e-3)),
                    ("within", fair_over / over.max(1e-3)),
                ];
                all.extend(more.map(|(name, value)| (format!("{policy}.{name}"), value)));
            }
            numbers.push(all);
            if pictures.is_empty() {
                pictures.push(("quality", drawn("quality, mean over all queries", &runs, |moment| moment.1)));
                pictures.push(("lag", drawn("lag in seconds, mean over all queries", &runs, |moment| moment.2)));
            }
        }
        Row {
            values: vec![("times".to_owned(), times.to_string()), ("burst".to_owned(), burst.to_string())],
            numbers: over_seeds(&numbers),
            pictures,
            ..Row::default()
        }
    }

    fn run<'a>(
        &self,
        burst: usize,
        profiles: &'a [(String, Vec<Point>)],
        policy: Policy,
        objective: Objective,
        seed: u64,
    ) -> Run {
        let seed = Seed::root(seed);
        let draw = |group: &Group, name: &str, count: usize, burst: bool| -> Vec<Query<'a>> {
            (0..count).map(|n| group.query(profiles, &mut seed.nth(name, n).rng(), burst)).collect()
        };
        let mut queries = draw(&self.base, "base", self.base.count, false);
        let mut waiting = draw(&self.burst, "burst", burst, true);
        let agents = vec![AgentView { cores: self.cores }; self.agents];
        let (step, end) = (self.every.0.as_secs_f64(), self.duration.0.as_secs_f64());
        let (from, to) = (self.from.0.as_secs_f64(), self.to.0.as_secs_f64());
        let (mut now, mut run) = (0.0, Run::default());
        while now < end {
            if now >= from {
                queries.append(&mut waiting);
            }
            if now >= to {
                queries.retain(|query| !query.burst);
            }
            let view = |q: &Query<'a>| QueryView {
                demand: Demand { goals: q.goals, points: q.points, lag: q.lag, correction: 1.0 },
                agent: q.agent,
            };
            let views: Vec<QueryView<'_>> = queries.iter().map(view).collect();
            let decided = decide(&agents, &views, policy, objective, Horizon::default());
            let mut moment = Sums::default();
            for (query, decision) in queries.iter_mut().zip(decided) {
                (query.agent, query.share) = (decision.agent, decision.share);
                query.live(step, &mut moment);
            }
            run.course.push((now, moment.quality / moment.looked.max(1.0), moment.lag / moment.count.max(1.0)));
            if (from..to).contains(&now) {
                run.sums.add(moment);
            }
            now += step;
        }
        run
    }
}

/// Names of the policies in numbers and in pictures, with their definitions.
const POLICIES: [(&str, &str, Policy, Objective); 3] = [
    ("sum", "videostorm, max-sum", Policy::Videostorm, Objective::MaxSum),
    ("min", "videostorm, max-min", Policy::Videostorm, Objective::MaxMin),
    ("fair", "fair", Policy::Fair, Objective::MaxSum),
];

fn drawn(y: &str, runs: &[(&str, Run)], of: fn(&(f64, f64, f64)) -> f64) -> Lines {
    let points = |run: &Run| run.course.iter().map(|moment| (moment.0, of(moment))).collect();
    let lines = POLICIES.iter().zip(runs).map(|(policy, (_, run))| Line::new(policy.1, points(run)));
    Lines { x: "seconds".to_owned(), y: y.to_owned(), lines: lines.collect(), ..Lines::default() }
}

/// The results of a run.
#[derive(Default)]
struct Run {
    sums: Sums,
    /// Time, mean quality and mean lag of each decision.
    course: Vec<(f64, f64, f64)>,
}

impl Run {
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let of = |sum: f64| sum / self.sums.count.max(1.0);
        let Sums { quality, looked, lag, late, over, .. } = self.sums;
        [("quality", quality / looked.max(1.0)), ("lag", of(lag)), ("late", of(late)), ("over", of(over))].into_iter()
    }
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.count += other.count;
        self.quality += other.quality;
        self.looked += other.looked;
        self.lag += other.lag;
        self.late += other.late;
        self.over += other.over;
    }
}

impl Query<'_> {
    /// Advances by one step: the stream delivers `step` seconds, and the cores process as many as they can.
    fn live(&mut self, step: f64, sums: &mut Sums) {
        let point = &self.points[self.share.point];
        let looked = (step * self.share.cores / point.cores).min(self.lag + step);
        self.lag += step - looked;
        sums.count += 1.0;
        // Quality counts for what is processed in this step; the rest counts when it is processed.
        sums.quality += point.quality * looked;
        sums.looked += looked;
        sums.lag += self.lag;
        let over = (self.lag - self.goals.max_lag).max(0.0);
        sums.over += over;
        sums.late += f64::from(over > 0.0);
    }
}

impl Group {
    fn query<'a>(&self, profiles: &'a [(String, Vec<Point>)], rng: &mut Rng, burst: bool) -> Query<'a> {
        let mut part = || -> f64 { StandardUniform.sample(rng) };
        let within = |[least, most]: [f64; 2], part: f64| least + part * (most - least);
        let fit: Vec<&Vec<Point>> =
            profiles.iter().filter(|(kind, _)| self.kinds.contains(kind)).map(|(_, points)| points).collect();
        let points = fit[(part() * fit.len() as f64) as usize % fit.len()];
        let lag = if part() < self.tolerant { self.patient } else { self.hasty };
        let goals =
            Goals { max_lag: within(lag, part()), min_quality: within(self.min_quality, part()), ..Goals::default() };
        let share = Share { point: 0, cores: 0.0 };
        Query { points, goals, agent: None, share, lag: 0.0, burst }
    }
}

/// Reads all profiles of a directory, with the kinds of their queries.
fn read(directory: &Path, times: f64) -> Result<Vec<(String, Vec<Point>)>, Failed> {
    let mut files: Vec<_> =
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failed>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut profiles = Vec::new();
    for file in files {
        let profile = Profile::read(&file)?;
        let points = profile.frontier.iter().map(|point| Point { cores: point.cores * times, ..*point });
        profiles.push((profile.kind.name().to_owned(), points.collect()));
    }
    match profiles.is_empty() {
        true => Err(format!("{} has no profiles", directory.display()).into()),
        false => Ok(profiles),
    }
}
