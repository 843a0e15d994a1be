//! The video framework in scenarios: each job of a scenario is a query on a stream, with a profile of its profiler.
//!
//! Its scheduler is the one that runs live. Workers are modelled (`video::modelled`): they process as much of a stream
//! as their cores can in their configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use ::lab::bundled::{
    Bundled, ConfiguredFramework, FrameworkConfig, FrameworkEvent, InvalidField, JobKind, Kind, Measure,
    SchedulerContext, Sum, options,
};
use ::lab::dist::Dist;
use ::lab::span::Span;
use ::lab::users;
use ::video::core::{Options as Settings, Submission, WorkerCommand};
use ::video::modelled::{Modelled, QueryEvent};
use ::video::pipeline::{QueryKind, UnknownKind};
use ::video::profile::{Point, Profile};
use ::video::schedule::{Goals, Horizon, Objective, Policy};
use ::video::spec::QuerySpec;
use base::Time;
use resources::{Amount, Name, Quantities};
use sdk::{Calls, Event, Scheduler};
use serde::Deserialize;

use super::{may_have_jobs, name_of, replace_commands, without_tasks};

/// The bundled framework `video`.
pub(super) struct Queries;

/// The framework's options, with the names of its flags.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    policy: Option<Policy>,
    objective: Option<Objective>,
    horizon: Option<Span>,
    epoch: Option<Span>,
    cores: Option<f64>,
}

impl Options {
    fn settings(&self) -> Settings {
        let worker = WorkerCommand {
            program: "worker".to_owned(),
            arguments: Vec::new(),
            uri: None,
            driver: String::new(),
            token: String::new(),
        };
        let default = Settings::new(worker);
        Settings {
            policy: self.policy.unwrap_or(default.policy),
            objective: self.objective.unwrap_or(default.objective),
            horizon: self.horizon.map_or(default.horizon, |span| Horizon { seconds: span.0.as_secs_f64() }),
            epoch: self.epoch.map_or(default.epoch, |span| span.0),
            cores_max: self.cores,
            ..default
        }
    }
}

/// The options of the framework's jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobOptions {
    profiles: String,
    kinds: Vec<String>,
    times: f64,
    min_quality: [f64; 2],
    max_lag: Dist,
    weight: f64,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        let Goals { min_quality, max_lag, quality_weight, .. } = Goals::default();
        JobOptions {
            profiles: String::new(),
            kinds: Vec::new(),
            times: 1.0,
            min_quality: [min_quality; 2],
            max_lag: Dist::Constant(Duration::from_secs_f64(max_lag)),
            weight: quality_weight,
        }
    }
}

/// The profiles of queries: the kind of each query, and its configurations from cheap to expensive.
type Profiles = Vec<(QueryKind, Vec<Point>)>;

/// The definition of queries of one kind.
struct Template {
    jobs: JobKind,
    name: String,
    own: JobOptions,
    profiles: Profiles,
}

const MEASURES: [Measure; 4] = [
    Measure { name: "quality", title: "Mean quality of analysed frames", of: Sum::Time },
    Measure { name: "lag", title: "Mean lag of queries in seconds", of: Sum::Time },
    Measure { name: "late", title: "Share of queries whose lag exceeds their goal", of: Sum::Time },
    Measure { name: "seen", title: "Quality over a finished stream", of: Sum::Each },
];

impl Bundled for Queries {
    fn name(&self) -> &'static str {
        "video"
    }

    fn read(&self, config: FrameworkConfig<'_>) -> Result<Box<dyn ConfiguredFramework>, InvalidField> {
        let own: Options = options("options", config.options)?;
        let least = [
            ("horizon", own.horizon.is_none_or(|span| !span.0.is_zero())),
            ("epoch", own.epoch.is_none_or(|span| !span.0.is_zero())),
            ("cores", own.cores.is_none_or(|cores| cores.is_finite() && cores > 0.0)),
        ];
        if let Some((field, _)) = least.iter().find(|(_, good)| !good) {
            return Err(InvalidField::new(format!("options.{field}"), "must be more than 0"));
        }
        let templates = config.jobs.iter().enumerate().map(|(n, kind)| template(n, kind, config));
        Ok(Box::new(VideoSetup { own, templates: templates.collect::<Result<_, _>>()? }))
    }

    fn not_live(&self) -> Option<&'static str> {
        Some(
            "its workers are modelled and cannot run on a real cluster: run this without --live, or use `tepui framework \
             video --master`",
        )
    }
}

fn template(n: usize, kind: &JobKind, config: FrameworkConfig<'_>) -> Result<Template, InvalidField> {
    let at = |field: &str| format!("jobs.{n}.{field}");
    without_tasks(n, kind, "a query")?;
    let own: JobOptions = options(&at("options"), &kind.options)?;
    if own.profiles.is_empty() {
        let rule = "`profiles` must name a profile, or a directory of them, such as lab/papers/data/video";
        return Err(InvalidField::new(at("options"), rule));
    }
    if !(own.times.is_finite() && own.times > 0.0) {
        return Err(InvalidField::new(at("options.times"), "must be more than 0"));
    }
    let [least, most] = own.min_quality;
    if !(0.0 <= least && least <= most && most <= 1.0) {
        return Err(InvalidField::new(
            at("options.min_quality"),
            "must be a range between 0 and 1, such as [0.5, 0.9]",
        ));
    }
    let profiles =
        read(&config.file(&own.profiles), &own).map_err(|(field, rule)| InvalidField::new(at(field), rule))?;
    let name = name_of(n, kind, "query")?;
    let template = Template { jobs: kind.clone(), name, own, profiles };
    let spec = template.spec(0, QueryKind::Cars, Goals { quality_weight: template.own.weight, ..Goals::default() });
    spec.check().map_err(|(field, rule)| InvalidField::new(at(&format!("options.{field}")), rule))?;
    Ok(template)
}

/// Reads the profiles of a file or a directory, of the requested kinds. Returns the invalid option and the reason if
/// that fails.
fn read(path: &Path, own: &JobOptions) -> Result<Profiles, (&'static str, String)> {
    let wanted: Result<Vec<QueryKind>, UnknownKind> = own.kinds.iter().map(|kind| kind.parse()).collect();
    let wanted = wanted.map_err(|rule| ("options.kinds", rule.to_string()))?;
    let files = files(path).map_err(|why| ("options.profiles", format!("{} cannot be read: {why}", path.display())))?;
    let mut profiles = Vec::new();
    for file in files {
        let profile = Profile::read(&file).map_err(|why| ("options.profiles", why.to_string()))?;
        if !wanted.is_empty() && !wanted.contains(&profile.kind) {
            continue;
        }
        let points = profile.frontier.iter().map(|point| Point { cores: point.cores * own.times, ..*point });
        let points: Vec<Point> = points.collect();
        if points.iter().all(|point| point.cores > 1.0) {
            let rule = format!(
                "{}: the cheapest configuration needs more than one core, the most that a task has",
                file.display()
            );
            return Err(("options.times", rule));
        }
        profiles.push((profile.kind, points));
    }
    match profiles.is_empty() {
        true => Err(("options.profiles", format!("{} has no profile of these kinds", path.display()))),
        false => Ok(profiles),
    }
}

/// Returns the file, or all profiles of the directory in a fixed order.
fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}

impl Template {
    fn spec(&self, first: u64, kind: QueryKind, goals: Goals) -> QuerySpec {
        QuerySpec {
            name: format!("{}-{first}", self.name),
            kind,
            video: PathBuf::from("stream").into(),
            reconnect: 0.0,
            scope: ::video::pipeline::Scope::default(),
            detector: ::video::vision::Detector::Colour,
            alert: false,
            model: None,
            looped: true,
            seconds: None,
            truth: None,
            profile: None,
            goals,
        }
    }

    /// Returns the query whose first task has this number.
    fn query(&self, context: &SchedulerContext, job: &users::Job) -> Submission {
        let seed = context.seed.nth("query", job.first as usize);
        let part = |name: &str| base::fraction(seed.child(name).number());
        let (kind, points) = &self.profiles[(part("profile") * self.profiles.len() as f64) as usize];
        let [least, most] = self.own.min_quality;
        let goals = Goals {
            min_quality: least + part("quality") * (most - least),
            max_lag: self.own.max_lag.draw(&mut seed.child("lag").rng()).as_secs_f64(),
            quality_weight: self.own.weight,
            lag_weight: self.own.weight,
        };
        let seconds = self.jobs.time.as_ref().and(job.spans.first()).map(Duration::as_secs_f64);
        Submission {
            spec: QuerySpec { seconds, ..self.spec(job.first, *kind, goals) },
            points: points.clone(),
            golden: ::video::pipeline::Config::GOLDEN,
        }
    }
}

/// The framework with the scenario's options.
struct VideoSetup {
    own: Options,
    templates: Rc<[Template]>,
}

impl ConfiguredFramework for VideoSetup {
    fn kinds(&self) -> Vec<Kind> {
        Kind::each(self.templates.iter().map(|template| &template.jobs))
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn scheduler(&self, context: SchedulerContext) -> Box<dyn Scheduler> {
        Box::new(VideoScheduler {
            modelled: Modelled::new(self.own.settings()),
            templates: Rc::clone(&self.templates),
            queries: BTreeMap::new(),
            context,
            means: None,
            wanted: 0.0,
        })
    }
}

/// A scheduler of the framework that receives its queries from the laboratory.
struct VideoScheduler {
    modelled: Modelled,
    templates: Rc<[Template]>,
    /// Number of the only task of each query.
    queries: BTreeMap<String, u64>,
    context: SchedulerContext,
    /// Last reported means of quality, lag and lateness.
    means: Option<[f64; 3]>,
    wanted: f64,
}

impl VideoScheduler {
    fn submit_jobs(&mut self) {
        let jobs: Vec<users::Job> = self.context.inbox.borrow_mut().drain(..).collect();
        for job in jobs {
            let query = self.templates[job.kind].query(&self.context, &job);
            self.queries.insert(query.spec.name.clone(), job.first);
            self.modelled.submit(query);
        }
    }

    /// Records what has happened in the laboratory's event log.
    fn log_events(&mut self, now: Time) {
        let event_log = &self.context.event_log;
        for event in self.modelled.take_events() {
            match event {
                QueryEvent::Started(name) => {
                    if let Some(first) = self.queries.get(&name) {
                        event_log.write(now, FrameworkEvent::JobStarted(*first));
                    }
                }
                QueryEvent::Ended(name, life) => {
                    if let Some(life) = life {
                        event_log.write(now, FrameworkEvent::MeasureSample(3, life.quality));
                    }
                    if let Some(first) = self.queries.remove(&name) {
                        event_log.write(now, FrameworkEvent::JobEnded(first, life.is_some()));
                    }
                }
            }
        }
        let (means, wanted) = (self.modelled.means(now), self.modelled.wanted(now));
        if means != self.means {
            for measure in 0..3 {
                event_log.write(now, FrameworkEvent::MeasureChanged(measure, means.map(|means| means[measure])));
            }
            self.means = means;
        }
        if wanted != self.wanted {
            let wants = Quantities::from_iter([(Name::Cpus, Amount::from_f64(wanted))]);
            event_log.write(now, FrameworkEvent::Demand(wants));
            self.wanted = wanted;
        }
    }
}

impl Scheduler for VideoScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        if may_have_jobs(&event) {
            self.submit_jobs();
        }
        let before = calls.queued().len();
        self.modelled.on_event(event, now, calls);
        replace_commands(&mut calls.queued()[before..]);
        self.log_events(now);
    }
}
