//! The framework of jobs of stages in scenarios: submits the jobs of a job file, all of them at each arrival.
//!
//! Its scheduler is the one that runs live. Tasks take the time that the scenario or their command (`sleep 5`) states.
//! Outputs are not modelled, and stages that read files are rejected: a laboratory has none.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use ::dag::core::{Core, JobEvent, Request, RequestError, Settings, Sprinting};
use ::dag::job::{Job, read};
use ::dag::learned::Order;
use ::jobs::place;
use ::lab::bundled::{
    Bundled, ConfiguredFramework, FrameworkConfig, FrameworkEvent, InvalidField, JobKind, Kind, SchedulerContext,
    options,
};
use ::lab::span::show_span;
use ::lab::users;
use ::lab::work::{TASK, WORK};
use base::Time;
use sdk::v1::TaskInfo;
use sdk::{Calls, Event, Scheduler};
use serde::Deserialize;

use super::binpack::span_of;
use super::{add_labels, jobs_of_file, launched, may_have_jobs, needs_text, variable};

/// The bundled framework `dag`.
pub(super) struct Dag;

/// The framework's options: those of `tepui framework dag`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    order: Order,
    policy: place::Policy,
    drop: f64,
    drop_always: bool,
    sprint: f64,
    sprint_budget: f64,
    sprint_refill: f64,
}

impl Default for Options {
    fn default() -> Options {
        let (settings, sprint) = (Settings::default(), Sprinting::default());
        Options {
            order: settings.order,
            policy: settings.placement,
            drop: settings.drop,
            drop_always: false,
            sprint: sprint.boost,
            sprint_budget: sprint.budget,
            sprint_refill: sprint.refill,
        }
    }
}

impl Options {
    fn settings(&self) -> Settings {
        Settings {
            order: self.order.clone(),
            placement: self.policy,
            drop: self.drop,
            drop_under_load: !self.drop_always,
            sprint: Sprinting {
                boost: self.sprint,
                budget: self.sprint_budget,
                refill: self.sprint_refill,
                ..Sprinting::default()
            },
            // Outputs are not lost with agents, because there are none.
            shared: Some("/shared".to_owned()),
            ..Settings::default()
        }
    }
}

/// A job of a job file.
#[derive(Clone, Debug)]
struct Template {
    kind: Kind,
    job: Job,
    /// Number of the first task of each stage, and duration of its command.
    stages: Vec<(u32, Option<Duration>)>,
    /// Whether tasks take the drawn time; otherwise they take that of their command.
    timed: bool,
}

impl Bundled for Dag {
    fn name(&self) -> &'static str {
        "dag"
    }

    fn read(&self, config: FrameworkConfig<'_>) -> Result<Box<dyn ConfiguredFramework>, InvalidField> {
        let own: Options = options("options", config.options)?;
        if !(0.0..1.0).contains(&own.drop) {
            return Err(InvalidField::new("options.drop", "must be 0 or more and below 1"));
        }
        let mut templates = Vec::new();
        for (n, kind) in config.jobs.iter().enumerate() {
            for job in jobs_of_file(n, kind, config, read)? {
                templates.push(of_job(n, kind, job)?);
            }
        }
        Ok(Box::new(DagSetup { settings: own.settings(), templates: templates.into() }))
    }

    fn not_live(&self) -> Option<&'static str> {
        Some("its tasks need the runner of `tepui framework dag`: use that on a real cluster")
    }
}

fn of_job(n: usize, kind: &JobKind, job: Job) -> Result<Template, InvalidField> {
    let broken = |rule: String| Err(InvalidField::new(format!("jobs.{n}.options.file"), rule));
    let Some(counts) = job.task_counts() else {
        return broken(format!(
            "the job '{}' has a stage whose number of tasks depends on files or sizes: the laboratory has no data",
            job.name
        ));
    };
    let mut stages = Vec::new();
    let mut first = 0_u32;
    let mut largest = [0; 4];
    for (stage, count) in job.stages.iter().zip(counts) {
        let span = span_of(&stage.run);
        if kind.time.is_none() && span.is_none() {
            let rule = format!(
                "the duration of the tasks of '{}' in '{}' is unknown: use the command `sleep SECONDS`, or set `time` for \
                 all jobs of the file",
                stage.name, job.name
            );
            return broken(rule);
        }
        stages.push((first, span));
        first = first.saturating_add(count);
        for (amount, largest) in stage.need.0.iter().zip(&mut largest) {
            *largest = (*largest).max(*amount);
        }
    }
    // A job is measured over all its tasks, so the resources that it needs are the largest of any of them.
    let need = ::jobs::Need([largest[0], largest[1], largest[2], largest[3], 0]);
    let jobs = JobKind {
        name: kind.name.as_ref().map(|name| format!("{name}-{}", job.name)),
        tasks: first,
        needs: Some(needs_text(&need)),
        retries: job.stages.iter().map(|stage| stage.retries).max().unwrap_or(0),
        ..kind.clone()
    };
    Ok(Template { kind: Kind { of: n, jobs }, job, stages, timed: kind.time.is_some() })
}

/// The framework with the scenario's options.
struct DagSetup {
    settings: Settings,
    templates: Rc<[Template]>,
}

impl ConfiguredFramework for DagSetup {
    fn kinds(&self) -> Vec<Kind> {
        self.templates.iter().map(|template| template.kind.clone()).collect()
    }

    fn scheduler(&self, context: SchedulerContext) -> Box<dyn Scheduler> {
        Box::new(DagScheduler {
            core: Core::new(self.settings.clone()),
            context,
            templates: Rc::clone(&self.templates),
            waiting: VecDeque::new(),
            jobs: BTreeMap::new(),
        })
    }
}

/// A job that was submitted to the framework.
struct Submitted {
    /// Number of the job's first task.
    first: u64,
    /// Index of the job's template.
    template: usize,
    /// Duration of each task, if the command does not state it.
    spans: Vec<Duration>,
}

/// A scheduler of the framework that receives its jobs from the laboratory.
struct DagScheduler {
    core: Core,
    context: SchedulerContext,
    templates: Rc<[Template]>,
    /// Jobs that the framework could not hold yet.
    waiting: VecDeque<users::Job>,
    /// Jobs that have not ended, by name.
    jobs: BTreeMap<String, Submitted>,
}

impl DagScheduler {
    /// Submits the jobs that have arrived.
    fn submit_jobs(&mut self, now: Time, calls: &mut Calls) {
        self.waiting.extend(self.context.inbox.borrow_mut().drain(..));
        while let Some(job) = self.waiting.pop_front() {
            let template = &self.templates[job.kind];
            let name = format!("{}-{}", template.job.name, job.first);
            let own = Job { name: name.clone(), ..template.job.clone() };
            match self.core.request(Request::Submit(vec![own]), now, calls) {
                // The framework has as many jobs as it can hold; the job is submitted later.
                Err(RequestError::Full) => return self.waiting.push_front(job),
                Err(_) => {
                    self.record_failure(job.first, job.spans.len(), now);
                    continue;
                }
                Ok(_) => {}
            }
            self.jobs.insert(name, Submitted { first: job.first, template: job.kind, spans: job.spans });
        }
    }

    /// Records that these tasks have ended without success.
    fn record_failure(&self, first: u64, tasks: usize, now: Time) {
        (first..first + tasks as u64)
            .for_each(|task| self.context.event_log.write(now, FrameworkEvent::JobEnded(task, false)));
    }

    /// Removes the jobs that have ended. For a job that did not finish, records the end of all its tasks.
    fn remove_ended_jobs(&mut self, now: Time) {
        for event in self.core.take_events() {
            let JobEvent::Ended { name, outcome, .. } = event else { continue };
            let Some(job) = self.jobs.remove(&name) else { continue };
            if outcome != ::dag::core::Outcome::Finished {
                self.record_failure(job.first, job.spans.len(), now);
            }
        }
    }

    /// Labels a task with its number in the scenario, and with its duration.
    fn label(&self, task: &mut TaskInfo) {
        let variable = |name: &str| variable(task, name);
        let (Some(name), Some(stage), Some(index)) =
            (variable("TEPUI_JOB"), variable("TEPUI_STAGE"), variable("TEPUI_INDEX"))
        else {
            return;
        };
        let (Some(job), Ok(index)) = (self.jobs.get(name), index.parse::<u32>()) else { return };
        let template = &self.templates[job.template];
        let Some((first, own)) = template.job.stage(stage).map(|place| template.stages[place]) else { return };
        let place = first + index;
        let number = format!("{}.{}", job.first + u64::from(place), variable("TEPUI_ATTEMPT").unwrap_or("0"));
        let drawn = job.spans.get(place as usize).copied().filter(|_| template.timed);
        let span = drawn.or(own).map(|span| (WORK, show_span(span)));
        let own = [(TASK, number)].into_iter().chain(span);
        add_labels(task, own);
    }
}

impl Scheduler for DagScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let before = calls.queued().len();
        let may_have_jobs = may_have_jobs(&event);
        self.core.on_event(event, now, calls);
        if may_have_jobs || !self.waiting.is_empty() {
            self.submit_jobs(now, calls);
        }
        launched(&mut calls.queued()[before..]).for_each(|task| self.label(task));
        self.remove_ended_jobs(now);
    }
}
