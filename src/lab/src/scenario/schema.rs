//! The fields of a scenario file. Rules beyond their types are in `check.rs`.

use std::collections::BTreeMap;

use allocator::policies::Policies;
use serde::Deserialize;

use super::faults::FaultPart;
use crate::bundled::Catalog;
use crate::dist::Dist;
use crate::span::Span;
use crate::users::{Deed, Place, Preset, Release};
use crate::world::Fidelity;

/// A whole scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// What it is for, in words.
    #[serde(default)]
    pub about: String,
    /// The first seed; repetitions count up from it.
    #[serde(default = "one")]
    pub seed: u64,
    /// With how many seeds it is run.
    #[serde(default = "one_small")]
    pub repetitions: u32,
    /// How much virtual time passes at most.
    pub duration: Span,
    /// Ends as soon as all jobs are done.
    #[serde(default)]
    pub until_done: bool,
    /// How often shares and queues are examined.
    #[serde(default = "second")]
    pub sample: Span,
    /// The master.
    #[serde(default)]
    pub master: MasterPart,
    /// The modelled parts.
    #[serde(default)]
    pub model: ModelPart,
    /// The agents.
    pub agents: Vec<AgentGroup>,
    /// Roles with weights or quota, by name.
    #[serde(default)]
    pub roles: BTreeMap<String, RolePart>,
    /// A queue manager in front of the frameworks.
    pub manager: Option<ManagerPart>,
    /// The frameworks.
    pub frameworks: Vec<Framework>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<FaultPart>,
    /// Parts of the run that are measured for themselves. Without any: the whole run.
    #[serde(default)]
    pub windows: Vec<Window>,
    /// Fields to vary, by their way (`frameworks.NAME.conduct.refuse`; several joined by `+` vary together), each with
    /// its values.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
    /// The bundled frameworks that it can name; not of the file.
    #[serde(skip)]
    pub catalog: Catalog,
}

fn one() -> u64 {
    1
}
pub(super) fn one_small() -> u32 {
    1
}
fn second() -> Span {
    Span(std::time::Duration::from_secs(1))
}

/// The master's settings: its flags, by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MasterPart {
    /// `--allocation_interval`.
    pub allocation_interval: Option<Span>,
    /// `--agent_ping_timeout`.
    pub agent_ping_timeout: Option<Span>,
    /// `--max_agent_ping_timeouts`.
    pub max_agent_ping_timeouts: Option<u32>,
    /// `--role_sorter`: drf, random, psdsf, bfdrf.
    pub role_sorter: Option<String>,
    /// `--framework_sorter`.
    pub framework_sorter: Option<String>,
    /// `--min_allocatable_resources`.
    pub min_allocatable_resources: Option<String>,
    /// `--fair_sharing_excluded_resource_names`: what does not count for shares.
    pub fair_sharing_excluded_resource_names: Vec<String>,
    /// `--policies`: the same table as in that file.
    pub policies: Policies,
}

impl MasterPart {
    /// Nothing is set.
    pub fn is_default(&self) -> bool {
        *self == MasterPart::default()
    }
}

/// A queue manager in front of the frameworks: it holds their jobs back, and releases task by task.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerPart {
    /// Which job's task is released next.
    pub release: Release,
    /// Interval at which it checks what is free.
    #[serde(default = "second")]
    pub every: Span,
}

/// The modelled parts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelPart {
    /// One way through the network.
    pub latency: Option<Dist>,
    /// The master's CPU time for each input.
    pub master_cost: Option<Span>,
    /// A durable write of the registry.
    pub registry_write: Option<Dist>,
    /// A durable write of an agent's checkpoints.
    pub agent_write: Option<Dist>,
    /// The start of a container.
    pub container_start: Option<Dist>,
    /// The share of tasks that fail.
    pub failures: f64,
    /// The share of tasks that are slow.
    pub stragglers: f64,
    /// How many times as long those take.
    pub straggling: Option<f64>,
    /// `full` or `light`.
    pub fidelity: Fidelity,
}

/// Agents that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentGroup {
    /// How many.
    #[serde(default = "one_small")]
    pub count: u32,
    /// What their hosts' names begin with.
    #[serde(default = "agent")]
    pub name: String,
    /// As in `--resources`.
    pub resources: String,
    /// As in `--attributes`.
    #[serde(default)]
    pub attributes: String,
    /// Region of the agents.
    pub region: Option<String>,
    /// Zone of the agents; needs a region.
    pub zone: Option<String>,
    /// The share of tasks that fail on them, beside those of the model.
    #[serde(default)]
    pub failures: f64,
}

fn agent() -> String {
    "agent".to_owned()
}

/// What is set for a role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolePart {
    /// Its weight; 1 if unset.
    pub weight: Option<f64>,
    /// What it is guaranteed.
    pub guarantee: Option<String>,
    /// What it may have at most.
    pub limit: Option<String>,
}

/// A framework, or several that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framework {
    /// Its name; several get a number behind it.
    pub name: String,
    /// How many.
    #[serde(default = "one_small")]
    pub count: u32,
    /// Its role.
    #[serde(default = "star")]
    pub role: String,
    /// When it subscribes.
    #[serde(default)]
    pub start: Span,
    /// The bundled framework that it is. Then it behaves as that does, with its `options`.
    pub bundled: Option<String>,
    /// Options of the bundled framework.
    #[serde(default)]
    pub options: toml::Table,
    /// The preset of its behaviour, unless it is a bundled framework; plain if unset.
    pub like: Option<Preset>,
    /// And what is different.
    #[serde(default)]
    pub conduct: ConductPart,
    /// What it does at which time.
    #[serde(default)]
    pub script: Vec<ScriptPart>,
    /// What it has to do.
    #[serde(default)]
    pub jobs: Vec<JobKind>,
}

/// A step of a framework's script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// When, after the framework's start.
    pub at: Span,
    /// What of its conduct is different from then on.
    #[serde(default)]
    pub conduct: ConductPart,
    /// What it does then.
    #[serde(rename = "do")]
    pub deed: Option<Deed>,
}

fn star() -> String {
    "*".to_owned()
}

/// Parts of a conduct that a scenario sets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductPart {
    /// `first`, `pack` or `spread`.
    pub place: Option<Place>,
    /// For how long an offer of no use is kept.
    pub hold: Option<Dist>,
    /// `refuse_seconds` while work waits and (unless `refuse_idle` is set) otherwise.
    pub refuse: Option<Span>,
    /// `refuse_seconds` when there is nothing to launch.
    pub refuse_idle: Option<Span>,
    /// Time to think about an offer.
    pub think: Option<Span>,
    /// And for each task.
    pub think_per_task: Option<Span>,
    /// One job at a time.
    pub job_at_a_time: Option<bool>,
    /// Of all that waits, the task of the job with the fewest running ones is the next.
    pub fair_jobs: Option<bool>,
    /// Tasks launched at once, at most.
    pub attempt: Option<usize>,
    /// Tasks on one offer, at most.
    pub tasks_per_offer: Option<usize>,
    /// Wants no offers when there is nothing to launch.
    pub suppress: Option<bool>,
    /// Forgets refusals when work comes.
    pub revive: Option<bool>,
    /// Keeps every offer.
    pub hoard: Option<bool>,
}

/// Jobs of one kind, and when they arrive: one of `at`, `every`, `poisson`, `burst`, `diurnal`, `chain` and `trace`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobKind {
    /// Its name, if its jobs are to be measured for themselves.
    pub name: Option<String>,
    /// All at this moment.
    pub at: Option<Span>,
    /// One after another, so far apart.
    pub every: Option<Span>,
    /// At random, so far apart in the mean.
    pub poisson: Option<Span>,
    /// This many at once, every `gap`.
    pub burst: Option<u32>,
    /// See `burst`.
    pub gap: Option<Span>,
    /// At random, so far apart in the mean over a day, with a wave of `amplitude`.
    pub diurnal: Option<Span>,
    /// The length of the wave; a day if unset.
    pub period: Option<Span>,
    /// How far the rate goes up and down: 0 to 1.
    pub amplitude: Option<f64>,
    /// One after another: the next one so long after the one before has ended.
    pub chain: Option<Span>,
    /// A CSV file beside the scenario: `submit_s,tasks,cpus,mem_mb,duration_s`, or one of the public formats. `needs`
    /// and `time` override it.
    pub trace: Option<String>,
    /// Which shape it has, if it has no header: `alibaba-2017`, `alibaba-2018`, `alibaba-gpu-2020`, `azure-vm`, `gavel`
    /// or `google-2011`.
    pub shape: Option<String>,
    /// What the machine has of which its amounts are shares, as `cpus:32;mem:131072`.
    pub machine: Option<String>,
    /// How many jobs, at most.
    pub count: Option<u64>,
    /// The first not before.
    #[serde(default)]
    pub from: Span,
    /// The last not after.
    pub until: Option<Span>,
    /// Tasks of a job.
    #[serde(default = "one_small")]
    pub tasks: u32,
    /// If set, the number of tasks is exponential with this mean, at least 1, instead.
    pub tasks_mean: Option<f64>,
    /// What each task needs: scalars, as `cpus:1;mem:512`.
    pub needs: Option<String>,
    /// How long each task works.
    pub time: Option<Dist>,
    /// All tasks of a job start together.
    #[serde(default)]
    pub gang: bool,
    /// How often a task that fails is tried again.
    #[serde(default)]
    pub retries: u32,
    /// Description of the jobs for a bundled framework.
    #[serde(default)]
    pub options: toml::Table,
}

/// A part of the run that is measured for itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// It begins this long after the start.
    pub from: Span,
    /// And ends this long after the start.
    pub to: Span,
}
