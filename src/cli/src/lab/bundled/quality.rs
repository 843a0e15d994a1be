//! The training framework in scenarios: each job of a scenario is a training whose losses were recorded.
//!
//! Its scheduler is the one that runs live. Workers are modelled (`quality::modelled`): their number determines the
//! duration of an iteration, which yields the next of the recorded losses.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ::lab::bundled::{
    Bundled, ConfiguredFramework, EventLog, FrameworkConfig, FrameworkEvent, InvalidField, JobKind, Kind, Measure,
    SchedulerContext, Sum, options,
};
use ::lab::span::Span;
use ::lab::users;
use ::quality::allocate::Policy;
use ::quality::job::{Job, parse};
use ::quality::modelled::{Modelled, TrainingEvent};
use ::quality::replay::{RecordedJob, read_losses};
use ::quality::scheduler::{Settings, Worker};
use base::Time;
use resources::{Amount, Name, Quantities};
use sdk::{Calls, Event, Scheduler};
use serde::Deserialize;

use super::{may_have_jobs, name_of, replace_commands, text_of, without_tasks};

/// The bundled framework `quality`.
pub(super) struct Trainings;

/// The framework's options, with the names of its flags.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    policy: Policy,
    epoch: Span,
    cores: Option<u32>,
    worker_cores: u32,
    worker_mem: u32,
}

impl Default for Options {
    fn default() -> Options {
        let epoch = Span(Duration::from_secs(3));
        Options { policy: Policy::Slaq, epoch, cores: None, worker_cores: 1, worker_mem: 64 }
    }
}

/// The options of the framework's jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobOptions {
    curves: String,
    shards: u32,
    max_cores: Option<u32>,
    overhead: Span,
    priority: f64,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        let overhead = Span(Duration::from_millis(100));
        JobOptions { curves: String::new(), shards: 24, max_cores: None, overhead, priority: 1.0 }
    }
}

/// The definition of trainings of one kind.
struct Template {
    jobs: JobKind,
    name: String,
    own: JobOptions,
    losses: Vec<Vec<f64>>,
    job: Job,
}

const MEASURES: [Measure; 3] = [
    Measure { name: "loss", title: "Mean normalised loss of active trainings", of: Sum::Time },
    Measure { name: "t90", title: "Seconds until the normalised loss is 0.1", of: Sum::Each },
    Measure { name: "t95", title: "Seconds until the normalised loss is 0.05", of: Sum::Each },
];
/// Shares of the remaining loss whose times are reported, with the indices of their measures.
const SHARES: [(usize, f64); 2] = [(1, 0.1), (2, 0.05)];

impl Bundled for Trainings {
    fn name(&self) -> &'static str {
        "quality"
    }

    fn read(&self, config: FrameworkConfig<'_>) -> Result<Box<dyn ConfiguredFramework>, InvalidField> {
        let own: Options = options("options", config.options)?;
        let least = [
            ("epoch", !own.epoch.0.is_zero()),
            ("worker_cores", (1..=1024).contains(&own.worker_cores)),
            ("worker_mem", own.worker_mem > 0),
            ("cores", own.cores.is_none_or(|cores| cores >= own.worker_cores)),
        ];
        if let Some((field, _)) = least.iter().find(|(_, good)| !good) {
            let rule =
                "epoch and worker_mem must be more than 0, worker_cores 1 to 1024, and `cores` enough for one worker";
            return Err(InvalidField::new(format!("options.{field}"), rule));
        }
        let templates = config.jobs.iter().enumerate().map(|(n, kind)| template(n, kind, config));
        Ok(Box::new(QualitySetup { own, templates: templates.collect::<Result<_, _>>()? }))
    }

    fn not_live(&self) -> Option<&'static str> {
        Some(
            "its workers are modelled and cannot run on a real cluster: run this without --live, or use `tepui framework \
             quality --master`",
        )
    }
}

fn template(n: usize, kind: &JobKind, config: FrameworkConfig<'_>) -> Result<Template, InvalidField> {
    let at = |field: &str| format!("jobs.{n}.{field}");
    without_tasks(n, kind, "a training")?;
    if kind.time.is_none() {
        return Err(InvalidField::new(
            at("time"),
            "must be the time of an iteration on one core, as in `time = \"lognormal 20s 0.5\"`",
        ));
    }
    let own: JobOptions = options(&at("options"), &kind.options)?;
    if own.curves.is_empty() {
        let rule = "`curves` must name a file of recorded losses, such as lab/papers/data/slaq-curves.csv";
        return Err(InvalidField::new(at("options"), rule));
    }
    let path = at("options.curves");
    let file = config.file(&own.curves);
    let losses = read_losses(&text_of(&path, &file)?)
        .map_err(|why| InvalidField::new(path, format!("{}, {why}", file.display())))?;
    let job = parse("a training", ANY).map(|mut jobs| jobs.remove(0));
    let job = job.map_err(|why| InvalidField::new(at("options"), why.to_string()))?;
    let template = Template { name: name_of(n, kind, "training")?, jobs: kind.clone(), own, losses, job };
    // The framework's own rules are checked for each training that can be drawn.
    for losses in &template.losses {
        let (job, curve) = template.training(0, losses, Duration::from_secs(1));
        let job = Job { iterations: curve.losses.len() as u64, ..job };
        job.check().map_err(|why| InvalidField::new(at(&format!("options.{}", why.item)), why.rule))?;
    }
    Ok(template)
}

/// The definition of a training. The scheduler depends on its losses, and not on what it learns.
const ANY: &str = "[[job]]\nname = 'any'\nalgorithm = { kind = 'linear-regression' }\n\
                   data = { generator = 'linear', rows = 1000, columns = 2 }\n";

impl Template {
    /// Returns the training whose first task has this number.
    fn training(&self, first: u64, losses: &[f64], work: Duration) -> (Job, RecordedJob) {
        let JobOptions { shards, max_cores, overhead, priority, .. } = self.own;
        let curve = RecordedJob {
            losses: losses.to_vec(),
            after: 0.0,
            priority,
            shards,
            ceiling: max_cores.map_or(shards, |most| most.min(shards)),
            work: work.as_secs_f64(),
            overhead: overhead.0.as_secs_f64(),
            rounds: 1.0,
        };
        let name = format!("{}-{first}", self.name);
        (Job { name, shards: shards as usize, max_cores, priority, ..self.job.clone() }, curve)
    }
}

/// The framework with the scenario's options.
struct QualitySetup {
    own: Options,
    templates: Rc<[Template]>,
}

impl ConfiguredFramework for QualitySetup {
    fn kinds(&self) -> Vec<Kind> {
        Kind::each(self.templates.iter().map(|template| &template.jobs))
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn scheduler(&self, context: SchedulerContext) -> Box<dyn Scheduler> {
        let Options { policy, epoch, cores, worker_cores, worker_mem } = self.own.clone();
        let worker = Worker {
            command: vec!["worker".to_owned()],
            driver: String::new(),
            cores: worker_cores,
            mem: worker_mem,
            pace: None,
        };
        let workers_max = cores.map_or(u32::MAX, |cores| cores / worker_cores);
        Box::new(QualityScheduler {
            modelled: Modelled::new(Settings { policy, epoch: epoch.0, workers_max, worker }),
            templates: Rc::clone(&self.templates),
            needs: [(Name::Cpus, worker_cores), (Name::Mem, worker_mem)]
                .map(|(name, amount)| (name, Amount::from_units(i64::from(amount)))),
            trainings: BTreeMap::new(),
            context,
            left: None,
            wanted: 0,
        })
    }
}

/// A training that was submitted to the framework.
struct Submitted {
    /// Number of the training's only task.
    first: u64,
    at: Time,
    /// Number of shares that have been reported so far.
    reported: usize,
}

/// A scheduler of the framework that receives its trainings from the laboratory.
struct QualityScheduler {
    modelled: Modelled,
    templates: Rc<[Template]>,
    /// Resources of a worker.
    needs: [(Name, Amount); 2],
    trainings: BTreeMap<String, Submitted>,
    context: SchedulerContext,
    /// Last reported mean of what is left to learn.
    left: Option<f64>,
    wanted: u32,
}

impl QualityScheduler {
    fn submit_jobs(&mut self, now: Time) {
        let jobs: Vec<users::Job> = self.context.inbox.borrow_mut().drain(..).collect();
        for job in jobs {
            let template = &self.templates[job.kind];
            let draw = self.context.seed.nth("curve", job.first as usize).number();
            let losses = &template.losses[(draw % template.losses.len() as u64) as usize];
            let work = job.spans.first().copied().unwrap_or_default();
            let (own, curve) = template.training(job.first, losses, work);
            self.trainings.insert(own.name.clone(), Submitted { first: job.first, at: now, reported: 0 });
            self.modelled.submit(own, curve, now);
        }
    }

    /// Records what has happened in the laboratory's event log.
    fn log_events(&mut self, now: Time) {
        let event_log: &EventLog = &self.context.event_log;
        for event in self.modelled.take_events() {
            match event {
                TrainingEvent::Started(name) => {
                    if let Some(training) = self.trainings.get(&name) {
                        event_log.write(now, FrameworkEvent::JobStarted(training.first));
                    }
                }
                TrainingEvent::Iteration(name, left) => {
                    let Some(training) = self.trainings.get_mut(&name) else { continue };
                    while let Some((measure, _)) = SHARES.get(training.reported).filter(|(_, share)| left <= *share) {
                        event_log
                            .write(now, FrameworkEvent::MeasureSample(*measure, now.since(training.at).as_secs_f64()));
                        training.reported += 1;
                    }
                }
                TrainingEvent::Ended(name, well) => {
                    if let Some(training) = self.trainings.remove(&name) {
                        event_log.write(now, FrameworkEvent::JobEnded(training.first, well));
                    }
                }
            }
        }
        let (left, wanted) = (self.modelled.mean_left(), self.modelled.wanted());
        if left != self.left {
            event_log.write(now, FrameworkEvent::MeasureChanged(0, left));
            self.left = left;
        }
        if wanted != self.wanted {
            let all = self.needs.iter().map(|(name, amount)| (name.clone(), amount.scaled(f64::from(wanted))));
            event_log.write(now, FrameworkEvent::Demand(all.collect::<Quantities>()));
            self.wanted = wanted;
        }
    }
}

impl Scheduler for QualityScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        if may_have_jobs(&event) {
            self.submit_jobs(now);
        }
        let before = calls.queued().len();
        self.modelled.on_event(event, now, calls);
        replace_commands(&mut calls.queued()[before..]);
        self.log_events(now);
    }
}
