//! Builds a world from a scenario and a seed.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use allocator::SorterKind;
use master::Config;
use protos::mesos::domain_info::{FaultDomain, fault_domain};
use protos::mesos::{self as pb, DomainInfo};
use resources::{Role, parse_alternatives, parse_attributes, parse_quantities, parse_text};
use sdk::Scheduler;
use sdk::v1::FrameworkInfo;
use sdk::v1::framework_info::{Capability, capability};

use super::error::{InvalidField, ScenarioError};
use super::jobs::Arrivals;
use super::schema::{AgentGroup, ConductPart, Framework, JobKind, Scenario, ScriptPart};
use crate::bundled::{ConfiguredFramework, EventLog, FrameworkConfig, Kind, Measure, SchedulerContext};
use crate::seeds::Seed;
use crate::users::{Behaviour, Inbox, ModelledScheduler, Script, Step};
use crate::world::{AgentSpec, FrameworkSpec, Model, Setup};

/// A scenario that is ready to run.
pub struct Prepared {
    /// Parameters of the world.
    pub setup: Setup,
    /// Frameworks in the order of the world.
    pub frameworks: Vec<PreparedFramework>,
}

/// The jobs and measures of a framework that is ready to run.
pub struct PreparedFramework {
    /// Name of the framework.
    pub name: String,
    /// Role of the framework.
    pub role: String,
    /// Receives the framework's jobs.
    pub inbox: Inbox,
    /// Jobs of the framework, by kind.
    pub arrivals: Vec<PreparedJobs>,
    /// Events that a bundled framework reports.
    pub event_log: EventLog,
    /// Own measures of a bundled framework.
    pub measures: &'static [Measure],
}

/// Jobs of one kind that are ready to arrive.
pub struct PreparedJobs {
    /// Name under which the jobs are measured; `None` if they are not measured separately.
    pub name: Option<String>,
    /// Time from the end of a job to the arrival of the next one; `None` if jobs do not wait for each other. With it,
    /// the times of arrivals are ignored.
    pub chain: Option<Duration>,
    /// Arrivals of the jobs.
    pub arrivals: Arrivals,
}

/// Checks the bundled frameworks of a scenario and the files that they name, before anything runs. `text` is the
/// scenario's, `file` its name. Returns the files and directories that they read.
///
/// # Errors
/// Returns the first invalid field, with file, line and rule.
pub fn check_bundled(scenario: &Scenario, text: &str, file: &Path) -> Result<BTreeSet<PathBuf>, ScenarioError> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let files = RefCell::default();
    for (n, part) in scenario.frameworks.iter().enumerate() {
        configure(scenario, part, directory, &files)
            .map_err(|broken| broken.below(&format!("frameworks.{n}")).at(file, text))
            .map(drop)?;
    }
    Ok(files.into_inner())
}

/// Reads the bundled framework of a part of a scenario, if it is one. The files that it reads are added to `files`.
fn configure(
    scenario: &Scenario,
    part: &Framework,
    directory: &Path,
    files: &RefCell<BTreeSet<PathBuf>>,
) -> Result<Option<Rc<dyn ConfiguredFramework>>, InvalidField> {
    let Some(name) = &part.bundled else { return Ok(None) };
    let config = FrameworkConfig { options: &part.options, jobs: &part.jobs, directory, files };
    Ok(Some(Rc::from(scenario.catalog.find(name)?.read(config)?)))
}

/// Returns the jobs of all frameworks, by kind.
pub(crate) fn all_kinds(scenario: &Scenario, directory: &Path) -> Result<Vec<JobKind>, InvalidField> {
    let mut all = Vec::new();
    for part in &scenario.frameworks {
        all.extend(kinds_of(scenario, part, directory)?.into_iter().map(|kind| kind.jobs));
    }
    Ok(all)
}

/// Returns the jobs of one framework, by kind, with the fields that a bundled framework fills in.
pub(crate) fn kinds_of(scenario: &Scenario, part: &Framework, directory: &Path) -> Result<Vec<Kind>, InvalidField> {
    let configured = configure(scenario, part, directory, &RefCell::default())?;
    Ok(configured.map_or_else(|| Kind::each(part.jobs.iter()), |configured| configured.kinds()))
}

/// Prepares a world from a scenario. `directory` has the traces and other files that the scenario names.
///
/// # Errors
/// Returns an error if a trace is invalid, or if the files of a bundled framework have changed since the check.
pub fn prepare(scenario: &Scenario, seed: Seed, directory: &Path) -> Result<Prepared, ScenarioError> {
    // The settings were checked when the scenario was read.
    let master = master_config(scenario).unwrap_or_default();
    let agents = scenario.agents.iter().flat_map(agents_of).collect();
    let (mut specs, mut frameworks) = (Vec::new(), Vec::new());
    for part in &scenario.frameworks {
        let configured =
            configure(scenario, part, directory, &RefCell::default()).map_err(|broken| broken.at(directory, ""))?;
        for n in 0..part.count {
            let name = if part.count == 1 { part.name.clone() } else { format!("{}-{n}", part.name) };
            let branch = seed.child("frameworks").child(&name);
            let context = SchedulerContext {
                inbox: Rc::new(RefCell::new(VecDeque::new())),
                event_log: EventLog::default(),
                seed: branch.child("conduct"),
            };
            frameworks.push(PreparedFramework {
                arrivals: arrivals_of(part, configured.as_deref(), branch, directory)?,
                role: part.role.clone(),
                inbox: Rc::clone(&context.inbox),
                event_log: context.event_log.clone(),
                measures: configured.as_ref().map_or(&[], |configured| configured.measures()),
                name: name.clone(),
            });
            specs.push(FrameworkSpec {
                info: info_of(part, &name),
                scheduler: scheduler_of(part, configured.clone(), context),
                persists_state: false,
                start: part.start.0,
            });
        }
    }
    Ok(Prepared { setup: Setup { master, agents, frameworks: specs, model: model_of(scenario) }, frameworks })
}

/// Returns a function that creates a framework's scheduler.
fn scheduler_of(
    part: &Framework,
    configured: Option<Rc<dyn ConfiguredFramework>>,
    context: SchedulerContext,
) -> Box<dyn FnMut() -> Box<dyn Scheduler>> {
    let (conduct, steps) = (conduct_of(part), steps_of(part));
    Box::new(move || match &configured {
        Some(configured) => configured.scheduler(context.clone()),
        None => {
            let scheduler = ModelledScheduler::new(conduct.clone(), Rc::clone(&context.inbox), context.seed.rng());
            Box::new(scheduler.with_script(Script::new(steps.clone())))
        }
    })
}

/// Returns the jobs of a framework, by kind.
fn arrivals_of(
    part: &Framework,
    configured: Option<&dyn ConfiguredFramework>,
    branch: Seed,
    directory: &Path,
) -> Result<Vec<PreparedJobs>, ScenarioError> {
    let kinds = configured.map_or_else(|| Kind::each(part.jobs.iter()), ConfiguredFramework::kinds);
    let prepared = |Kind { of, jobs }: &Kind| {
        let arrivals = Arrivals::new(jobs, branch.nth("jobs", *of), directory)?;
        Ok(PreparedJobs { name: jobs.name.clone(), chain: jobs.chain.map(|span| span.0), arrivals })
    };
    kinds.iter().map(prepared).collect()
}

fn sorter(path: &str, name: Option<&String>) -> Result<Option<SorterKind>, InvalidField> {
    let known = SorterKind::ALL.map(|(name, _)| name).join(", ");
    let unknown = |name: &String| InvalidField::new(path, format!("'{name}' is not a sorter: must be one of {known}"));
    name.map(|name| SorterKind::parse(name).ok_or_else(|| unknown(name))).transpose()
}

/// Returns the master's settings, with the weights of roles.
pub(super) fn master_config(scenario: &Scenario) -> Result<Config, InvalidField> {
    let (part, default) = (&scenario.master, Config::default());
    let weights = scenario.roles.iter().filter_map(|(role, part)| Some((role.clone(), part.weight?))).collect();
    // The flag is a list of names that commas separate, so a name is not empty and has no comma.
    if part.fair_sharing_excluded_resource_names.iter().any(|name| name.trim().is_empty() || name.contains(',')) {
        let rule = "must be names of resources, as in [\"mem\", \"disk\"]";
        return Err(InvalidField::new("master.fair_sharing_excluded_resource_names", rule));
    }
    Ok(Config {
        allocation_interval: part.allocation_interval.map_or(default.allocation_interval, |span| span.0),
        agent_ping_timeout: part.agent_ping_timeout.map_or(default.agent_ping_timeout, |span| span.0),
        max_agent_ping_timeouts: part.max_agent_ping_timeouts.unwrap_or(default.max_agent_ping_timeouts),
        role_sorter: sorter("master.role_sorter", part.role_sorter.as_ref())?.unwrap_or(default.role_sorter),
        framework_sorter: sorter("master.framework_sorter", part.framework_sorter.as_ref())?
            .unwrap_or(default.framework_sorter),
        min_allocatable_resources: match &part.min_allocatable_resources {
            None => default.min_allocatable_resources,
            Some(text) => parse_alternatives(text)
                .map_err(|why| InvalidField::new("master.min_allocatable_resources", why.to_string()))?,
        },
        fair_sharing_excluded_resource_names: part.fair_sharing_excluded_resource_names.clone(),
        policies: part.policies.clone(),
        weights,
        // Completed tasks are not read.
        max_completed_tasks_per_framework: 0,
        ..default
    })
}

fn model_of(scenario: &Scenario) -> Model {
    let (part, default) = (scenario.model.clone(), Model::default());
    Model {
        latency: part.latency.unwrap_or(default.latency),
        master_cost: part.master_cost.map_or(default.master_cost, |span| span.0),
        registry_write: part.registry_write.unwrap_or(default.registry_write),
        agent_write: part.agent_write.unwrap_or(default.agent_write),
        container_start: part.container_start.unwrap_or(default.container_start),
        failures: part.failures,
        stragglers: part.stragglers,
        straggling: part.straggling.unwrap_or(default.straggling),
        fidelity: part.fidelity,
        restarts: !scenario.faults.is_empty(),
    }
}

fn agents_of(group: &AgentGroup) -> impl Iterator<Item = AgentSpec> + '_ {
    let resources = parse_text(&group.resources, &Role::star()).unwrap_or_default();
    let attributes: Vec<pb::Attribute> = parse_attributes(&group.attributes).unwrap_or_default();
    let domain = group.region.clone().map(|region| DomainInfo {
        fault_domain: Some(FaultDomain {
            region: fault_domain::RegionInfo { name: region },
            zone: fault_domain::ZoneInfo { name: group.zone.clone().unwrap_or_else(|| "zone".to_owned()) },
        }),
    });
    (0..group.count).map(move |n| AgentSpec {
        attributes: attributes.clone(),
        domain: domain.clone(),
        failures: group.failures,
        ..AgentSpec::new(&format!("{}{n}", group.name), resources.clone())
    })
}

fn info_of(part: &Framework, name: &str) -> FrameworkInfo {
    let kinds =
        [capability::Type::MultiRole, capability::Type::ReservationRefinement, capability::Type::PartitionAware];
    let capability = |kind: capability::Type| Capability { r#type: Some(kind as i32) };
    FrameworkInfo {
        user: "lab".to_owned(),
        name: name.to_owned(),
        roles: vec![part.role.clone()],
        capabilities: kinds.map(capability).to_vec(),
        checkpoint: Some(true),
        failover_timeout: Some(7.0 * 86_400.0),
        ..FrameworkInfo::default()
    }
}

fn conduct_of(framework: &Framework) -> Behaviour {
    changed(&framework.conduct, framework.like.unwrap_or_default().conduct())
}

/// Returns the steps of a framework's script. Each changes the behaviour that the step before has set.
fn steps_of(framework: &Framework) -> Vec<Step> {
    let mut parts: Vec<&ScriptPart> = framework.script.iter().collect();
    parts.sort_by_key(|part| part.at);
    let mut conduct = conduct_of(framework);
    let step = |part: &ScriptPart| {
        conduct = changed(&part.conduct, conduct.clone());
        Step { at: part.at.0, conduct: conduct.clone(), action: part.action }
    };
    parts.into_iter().map(step).collect()
}

/// Returns a behaviour with the given settings replaced.
fn changed(part: &ConductPart, like: Behaviour) -> Behaviour {
    let refuse = part.refuse.map(|span| span.0);
    Behaviour {
        place: part.place.unwrap_or(like.place),
        hold: part.hold.clone().unwrap_or(like.hold),
        refuse: refuse.unwrap_or(like.refuse),
        refuse_idle: part.refuse_idle.map(|span| span.0).or(refuse).unwrap_or(like.refuse_idle),
        think: part.think.map_or(like.think, |span| span.0),
        think_per_task: part.think_per_task.map_or(like.think_per_task, |span| span.0),
        job_at_a_time: part.job_at_a_time.unwrap_or(like.job_at_a_time),
        fair_jobs: part.fair_jobs.unwrap_or(like.fair_jobs),
        attempt: part.attempt.unwrap_or(like.attempt),
        tasks_per_offer: part.tasks_per_offer.unwrap_or(like.tasks_per_offer),
        suppress: part.suppress.unwrap_or(like.suppress),
        revive: part.revive.unwrap_or(like.revive),
        hoard: part.hoard.unwrap_or(like.hoard),
    }
}

/// Returns the quota of each role that has one, in the form of the operator call.
pub fn quotas(scenario: &Scenario) -> Vec<pb::quota::QuotaConfig> {
    let scalars = |text: &Option<String>| {
        let amounts = text.as_deref().and_then(|text| parse_quantities(text).ok()).unwrap_or_default();
        let scalar = |(name, amount): (resources::Name, resources::Amount)| {
            (name.to_string(), pb::value::Scalar { value: amount.to_f64() })
        };
        amounts.iter().map(scalar).collect()
    };
    let limited = scenario.roles.iter().filter(|(_, part)| part.guarantee.is_some() || part.limit.is_some());
    limited
        .map(|(role, part)| pb::quota::QuotaConfig {
            role: role.clone(),
            guarantees: scalars(&part.guarantee),
            limits: scalars(&part.limit),
        })
        .collect()
}
