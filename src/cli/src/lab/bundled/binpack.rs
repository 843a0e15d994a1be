//! The bin-packing framework in scenarios: converts jobs of a scenario, or of a job file, to its jobs.
//!
//! Its scheduler is the one that runs live. Tasks take the time that the scenario or their command (`sleep 5`) states.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use ::binpack::core::{Core, JobEvent, Request, RequestError};
use ::binpack::job::{Job, Kind as JobType, Run, Syntax, read};
use ::binpack::place::Policy;
use ::binpack::{Behaviour, Knobs, Need, Pace};
use ::lab::bundled::{
    Bundled, ConfiguredFramework, FrameworkConfig, FrameworkEvent, InvalidField, JobKind, Kind, SchedulerContext,
    options,
};
use ::lab::scenario::work;
use ::lab::span::{Span, show_span};
use ::lab::users;
use ::lab::work::{TASK, WORK, Work};
use base::Time;
use protos::mesos as v0;
use resources::parse_quantities;
use sdk::v1::TaskInfo;
use sdk::{Calls, Event, Scheduler};
use serde::Deserialize;
use toml::Table;

use super::{add_labels, jobs_of_file, launched, may_have_jobs, needs_text, variable};

/// The bundled framework `binpack`.
pub(super) struct Binpack;

/// The framework's options: a behaviour, and settings that differ from it. A setting without a value is that of the
/// behaviour.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    behaviour: Option<Behaviour>,
    policy: Option<Policy>,
    hold: Option<Span>,
    hold_jitter: Option<Span>,
    decline_fast: Option<bool>,
    refuse: Option<Span>,
    refuse_idle: Option<Span>,
    refuse_rest: Option<Span>,
    suppress_idle: Option<bool>,
    revive_every: Option<Span>,
    pace: Option<PaceOption>,
    tasks_per_offer: Option<u32>,
    avoid_failing_agents: bool,
}

/// A limit on launches: at most `tasks` in each interval `every`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaceOption {
    tasks: u32,
    every: Span,
}

impl Options {
    fn knobs(&self) -> Knobs {
        let like = self.behaviour.unwrap_or(Behaviour::Tepui).knobs();
        let span = |own: Option<Span>, like| own.map_or(like, |span| span.0);
        Knobs {
            policy: self.policy.unwrap_or(like.policy),
            hold: span(self.hold, like.hold),
            hold_jitter: span(self.hold_jitter, like.hold_jitter),
            decline_fast: self.decline_fast.unwrap_or(like.decline_fast),
            refuse: span(self.refuse, like.refuse),
            refuse_idle: span(self.refuse_idle, like.refuse_idle),
            refuse_rest: span(self.refuse_rest, like.refuse_rest),
            suppress_idle: self.suppress_idle.unwrap_or(like.suppress_idle),
            revive_every: self.revive_every.map(|span| span.0).or(like.revive_every),
            pace: self.pace.map(|pace| Pace { tasks: pace.tasks, every: pace.every.0 }).or(like.pace),
            tasks_per_offer: self.tasks_per_offer.or(like.tasks_per_offer),
            avoid_failing_agents: self.avoid_failing_agents,
            ..like
        }
    }
}

/// The definition of jobs of one kind.
#[derive(Clone, Debug)]
struct Template {
    kind: Kind,
    job: Job,
    /// Whether tasks take the drawn time; otherwise they take that of their command.
    timed: bool,
}

impl Bundled for Binpack {
    fn name(&self) -> &'static str {
        "binpack"
    }

    fn read(&self, config: FrameworkConfig<'_>) -> Result<Box<dyn ConfiguredFramework>, InvalidField> {
        let own: Options = options("options", config.options)?;
        if own.pace.is_some_and(|pace| pace.tasks == 0 || pace.every.0.is_zero()) {
            return Err(InvalidField::new("options.pace", "must be at least one task in more than 0 seconds"));
        }
        if own.tasks_per_offer == Some(0) {
            return Err(InvalidField::new("options.tasks_per_offer", "must be at least 1"));
        }
        let mut templates = Vec::new();
        for (n, kind) in config.jobs.iter().enumerate() {
            if !kind.options.contains_key("file") {
                templates.push(of_scenario(n, kind)?);
                continue;
            }
            for job in jobs_of_file(n, kind, config, read)? {
                templates.push(of_job(n, kind, job)?);
            }
        }
        Ok(Box::new(BinpackSetup { knobs: own.knobs(), templates: templates.into() }))
    }
}

/// Fields of a job file that the scenario sets itself.
const SCENARIO_FIELDS: [&str; 12] =
    ["name", "kind", "count", "command", "program", "image", "cpus", "mem", "disk", "gpus", "ports", "retries"];

/// Reads a kind of jobs that the scenario describes; its options are further fields of a job file.
fn of_scenario(n: usize, kind: &JobKind) -> Result<Template, InvalidField> {
    let at = |field: &str| format!("jobs.{n}.{field}");
    work(kind).map_err(|broken| broken.below(&format!("jobs.{n}")))?;
    if let Some(said) = SCENARIO_FIELDS.into_iter().find(|field| kind.options.contains_key(*field)) {
        return Err(InvalidField::new(
            at(&format!("options.{said}")),
            "is set by the scenario's own fields; for a job file use `file`",
        ));
    }
    let sort = if kind.gang { JobType::Gang } else { JobType::Array };
    let mut whole = kind.options.clone();
    for (name, value) in [("name", "job"), ("command", "sleep"), ("kind", sort.name())] {
        whole.insert(name.to_owned(), value.into());
    }
    let file = Table::from_iter([("job".to_owned(), toml::Value::Array(vec![whole.into()]))]);
    let text = toml::to_string(&file).map_err(|why| InvalidField::new(at("options"), why.to_string()))?;
    let read = read("options", &text, Syntax::Toml);
    let rules = |faults: ::binpack::job::Faults| faults.0.into_iter().map(|fault| fault.rule).collect::<Vec<_>>();
    let mut jobs = read.map_err(|faults| InvalidField::new(at("options"), rules(faults).join("; ")))?;
    let Some(job) = jobs.pop() else { return Err(InvalidField::new(at("options"), "must describe one job")) };
    let need = need(kind.needs.as_deref()).map_err(|rule| InvalidField::new(at("needs"), rule))?;
    if kind.tasks > ::binpack::job::COUNT_MAX {
        let rule = format!("must be {} at most for this framework", ::binpack::job::COUNT_MAX);
        return Err(InvalidField::new(at("tasks"), rule));
    }
    let of = Kind { of: n, jobs: kind.clone() };
    Ok(Template { kind: of, job: Job { need, retries: kind.retries, ..job }, timed: true })
}

/// Parses the resources of a task into the framework's own form.
fn need(text: Option<&str>) -> Result<Need, String> {
    let mut need = Need::default();
    // A trace contains the resources of its tasks.
    let Some(text) = text else { return Ok(need) };
    for (name, amount) in parse_quantities(text).map_err(|why| why.to_string())?.iter() {
        // Ports are not an amount.
        let known = &::binpack::NAMES[..4];
        match known.iter().position(|known| *known == name.as_str()) {
            Some(place) => need.0[place] = amount.thousandths(),
            None => {
                return Err(format!(
                    "'{name}' is not a resource of this framework's tasks: must be one of {}",
                    known.join(", ")
                ));
            }
        }
    }
    Ok(need)
}

fn of_job(n: usize, kind: &JobKind, job: Job) -> Result<Template, InvalidField> {
    let broken = |field: &str, rule: String| Err(InvalidField::new(format!("jobs.{n}.{field}"), rule));
    if job.count == 0 {
        return broken("options.file", format!("the job '{}' has no tasks", job.name));
    }
    if job.kind != JobType::Service && kind.time.is_none() && span_of(&job.run).is_none() {
        let rule = format!(
            "the duration of the tasks of '{}' is unknown: use the command `sleep SECONDS`, or set `time` for all jobs of the \
             file",
            job.name
        );
        return broken("options.file", rule);
    }
    let jobs = JobKind {
        name: kind.name.as_ref().map(|name| format!("{name}-{}", job.name)),
        tasks: job.count,
        needs: Some(needs_text(&job.need)),
        gang: job.kind == JobType::Gang,
        retries: job.retries,
        ..kind.clone()
    };
    // A service runs until the run ends.
    let timed = kind.time.is_some() && job.kind != JobType::Service;
    Ok(Template { kind: Kind { of: n, jobs }, job, timed })
}

/// Returns the duration of a command, if it states one.
pub(super) fn span_of(run: &Run) -> Option<Duration> {
    let command = match run {
        Run::Command(text) => v0::CommandInfo { value: Some(text.clone()), ..v0::CommandInfo::default() },
        Run::Program(words) => {
            v0::CommandInfo { shell: Some(false), arguments: words.clone(), ..v0::CommandInfo::default() }
        }
        Run::Image => return None,
    };
    Work::of(&v0::TaskInfo { command: Some(command), ..v0::TaskInfo::default() }).span
}

/// The framework with the scenario's options.
struct BinpackSetup {
    knobs: Knobs,
    templates: Rc<[Template]>,
}

impl ConfiguredFramework for BinpackSetup {
    fn kinds(&self) -> Vec<Kind> {
        self.templates.iter().map(|template| template.kind.clone()).collect()
    }

    fn scheduler(&self, context: SchedulerContext) -> Box<dyn Scheduler> {
        let knobs = Knobs { seed: context.seed.number(), ..self.knobs.clone() };
        Box::new(BinpackScheduler {
            core: Core::new(knobs),
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
    /// Duration of each task; `None` if the command states it.
    spans: Option<Vec<Duration>>,
}

/// A scheduler of the framework that receives its jobs from the laboratory.
struct BinpackScheduler {
    core: Core,
    context: SchedulerContext,
    templates: Rc<[Template]>,
    /// Jobs that the framework could not hold yet.
    waiting: VecDeque<users::Job>,
    /// Jobs that have not ended, by name.
    jobs: BTreeMap<String, Submitted>,
}

impl BinpackScheduler {
    /// Submits the jobs that have arrived.
    fn submit_jobs(&mut self, now: Time, calls: &mut Calls) {
        self.waiting.extend(self.context.inbox.borrow_mut().drain(..));
        while let Some(job) = self.waiting.pop_front() {
            let template = &self.templates[job.kind];
            let name = format!("{}-{}", template.job.name, job.first);
            let request = Request::Submit(vec![own(template, &name, &job)]);
            match self.core.request(request, now, calls) {
                // The framework has as many jobs as it can hold; the job is submitted later.
                Err(RequestError::Full) => return self.waiting.push_front(job),
                // The drawn job is larger than the framework accepts.
                Err(_) => {
                    let tasks = job.first..job.first + job.spans.len() as u64;
                    tasks.for_each(|task| self.context.event_log.write(now, FrameworkEvent::JobEnded(task, false)));
                    continue;
                }
                Ok(_) => {}
            }
            let spans = template.timed.then_some(job.spans);
            self.jobs.insert(name, Submitted { first: job.first, spans });
        }
    }

    /// Removes the jobs that have ended.
    fn remove_ended_jobs(&mut self) {
        for event in self.core.take_events() {
            if let JobEvent::Ended { name, .. } = event {
                self.jobs.remove(&name);
            }
        }
    }

    /// Labels a task with its number in the scenario, and with its duration.
    fn label(&self, task: &mut TaskInfo) {
        let variable = |name: &str| variable(task, name);
        let (Some(name), Some(place)) = (variable("TEPUI_JOB"), variable("TEPUI_INDEX")) else { return };
        let (Some(job), Ok(place)) = (self.jobs.get(name), place.parse::<usize>()) else { return };
        let number = format!("{}.{}", job.first + place as u64, variable("TEPUI_ATTEMPT").unwrap_or("0"));
        let span = job.spans.as_ref().and_then(|spans| spans.get(place)).map(|span| (WORK, show_span(*span)));
        let own = [(TASK, number)].into_iter().chain(span);
        add_labels(task, own);
    }
}

/// Converts a job to the framework's form.
fn own(template: &Template, name: &str, job: &users::Job) -> Job {
    let mut own = Job { name: name.to_owned(), ..template.job.clone() };
    if template.timed {
        own.count = u32::try_from(job.spans.len()).unwrap_or(u32::MAX);
        if own.kind == JobType::Array && own.count == 1 {
            own.kind = JobType::Batch;
        }
    }
    // The resources of a trace's jobs are in its lines.
    if own.need == Need::default() {
        let place = |name: &str| ::binpack::NAMES.iter().position(|known| *known == name);
        for (name, amount) in job.needs.iter() {
            if let Some(place) = place(name.as_str()) {
                own.need.0[place] = amount.thousandths();
            }
        }
    }
    own
}

impl Scheduler for BinpackScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let before = calls.queued().len();
        let may_have_jobs = may_have_jobs(&event);
        self.core.on_event(event, now, calls);
        if may_have_jobs || !self.waiting.is_empty() {
            self.submit_jobs(now, calls);
        }
        launched(&mut calls.queued()[before..]).for_each(|task| self.label(task));
        self.remove_ended_jobs();
    }
}
