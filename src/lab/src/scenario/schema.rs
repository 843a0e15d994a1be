//! The fields of a scenario file. Rules beyond their types are in `check.rs`.

use std::collections::BTreeMap;

use allocator::policies::Policies;
use serde::Deserialize;

use super::faults::FaultPart;
use crate::bundled::Catalog;
use crate::dist::Dist;
use crate::span::Span;
use crate::users::{Place, Preset, Release, ScriptAction};
use crate::world::Fidelity;

/// A scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario: letters, digits, `-` and `_`.
    pub name: String,
    /// Purpose of the scenario, in words.
    #[serde(default)]
    pub about: String,
    /// First seed of the runs; repetitions count up from it.
    #[serde(default = "one")]
    pub seed: u64,
    /// Number of seeds with which the scenario is run.
    #[serde(default = "one_small")]
    pub repetitions: u32,
    /// The longest virtual time of a run.
    pub duration: Span,
    /// Whether a run ends as soon as all jobs are done.
    #[serde(default)]
    pub until_done: bool,
    /// Interval of the samples of shares and queues.
    #[serde(default = "second")]
    pub sample: Span,
    /// Settings of the master.
    #[serde(default)]
    pub master: MasterPart,
    /// Parameters of the modelled network, disks and containers.
    #[serde(default)]
    pub model: ModelPart,
    /// Groups of agents.
    pub agents: Vec<AgentGroup>,
    /// Roles with weights or quota, by name.
    #[serde(default)]
    pub roles: BTreeMap<String, RolePart>,
    /// A queue manager in front of the frameworks; `None` if frameworks receive their jobs directly.
    pub manager: Option<ManagerPart>,
    /// The frameworks of the cluster.
    pub frameworks: Vec<Framework>,
    /// Faults that are injected.
    #[serde(default)]
    pub faults: Vec<FaultPart>,
    /// Parts of the run that are measured separately. If empty, the whole run is one.
    #[serde(default)]
    pub windows: Vec<Window>,
    /// Fields to vary, by their paths (`frameworks.NAME.conduct.refuse`; several joined by `+` vary together), each
    /// with its values.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<toml::Value>>,
    /// Bundled frameworks that the scenario can name. The caller sets it; it is not a field of the file.
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

/// Settings of the master: its flags, by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MasterPart {
    /// Value of `--allocation_interval`.
    pub allocation_interval: Option<Span>,
    /// Value of `--agent_ping_timeout`.
    pub agent_ping_timeout: Option<Span>,
    /// Value of `--max_agent_ping_timeouts`.
    pub max_agent_ping_timeouts: Option<u32>,
    /// Value of `--role_sorter`: drf, random, psdsf, bfdrf.
    pub role_sorter: Option<String>,
    /// Value of `--framework_sorter`.
    pub framework_sorter: Option<String>,
    /// Value of `--min_allocatable_resources`.
    pub min_allocatable_resources: Option<String>,
    /// Value of `--fair_sharing_excluded_resource_names`: resources that do not count for shares.
    pub fair_sharing_excluded_resource_names: Vec<String>,
    /// Content of the file of `--policies`: the same table.
    pub policies: Policies,
}

impl MasterPart {
    /// Returns whether no setting is given.
    pub fn is_default(&self) -> bool {
        *self == MasterPart::default()
    }
}

/// A queue manager in front of the frameworks, which holds their jobs back and releases task by task.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerPart {
    /// Policy that selects the task to release next.
    pub release: Release,
    /// Interval at which the manager checks for free resources.
    #[serde(default = "second")]
    pub every: Span,
}

/// Parameters of the modelled network, disks and containers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelPart {
    /// Distribution of the network's one-way latency.
    pub latency: Option<Dist>,
    /// The master's CPU time for each input.
    pub master_cost: Option<Span>,
    /// Distribution of the duration of a durable write of the registry.
    pub registry_write: Option<Dist>,
    /// Distribution of the duration of a durable write of an agent's checkpoints.
    pub agent_write: Option<Dist>,
    /// Distribution of the start time of a container.
    pub container_start: Option<Dist>,
    /// Share of tasks that fail, 0 to 1.
    pub failures: f64,
    /// Share of tasks that are slow, 0 to 1.
    pub stragglers: f64,
    /// Factor by which slow tasks take longer.
    pub straggling: Option<f64>,
    /// Fidelity of agents: `full` or `light`.
    pub fidelity: Fidelity,
}

/// A group of equal agents.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentGroup {
    /// Number of agents in the group.
    #[serde(default = "one_small")]
    pub count: u32,
    /// Prefix of the agents' host names, which a number follows.
    #[serde(default = "agent")]
    pub name: String,
    /// Resources of each agent, as in `--resources`.
    pub resources: String,
    /// Attributes of each agent, as in `--attributes`.
    #[serde(default)]
    pub attributes: String,
    /// Region of the agents.
    pub region: Option<String>,
    /// Zone of the agents; needs a region.
    pub zone: Option<String>,
    /// Share of tasks that fail on these agents, beside those of the model.
    #[serde(default)]
    pub failures: f64,
}

fn agent() -> String {
    "agent".to_owned()
}

/// Weight and quota of a role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolePart {
    /// Weight of the role; 1 if unset.
    pub weight: Option<f64>,
    /// Quota guarantee of the role.
    pub guarantee: Option<String>,
    /// Quota limit of the role.
    pub limit: Option<String>,
}

/// A framework, or several equal ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framework {
    /// Name of the framework; if there are several, a number follows it.
    pub name: String,
    /// Number of equal frameworks.
    #[serde(default = "one_small")]
    pub count: u32,
    /// Role of the framework.
    #[serde(default = "star")]
    pub role: String,
    /// Time at which the framework subscribes.
    #[serde(default)]
    pub start: Span,
    /// Name of the bundled framework that runs with `options`; `None` for a modelled framework.
    pub bundled: Option<String>,
    /// Options of the bundled framework.
    #[serde(default)]
    pub options: toml::Table,
    /// Preset of a modelled framework's behaviour; plain if unset.
    pub like: Option<Preset>,
    /// Settings of the behaviour that differ from the preset.
    #[serde(default)]
    pub conduct: ConductPart,
    /// Changes of the behaviour and actions of the framework, with their times.
    #[serde(default)]
    pub script: Vec<ScriptPart>,
    /// Jobs that are submitted to the framework.
    #[serde(default)]
    pub jobs: Vec<JobKind>,
}

/// A step of a framework's script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// Time of the step, after the framework's start.
    pub at: Span,
    /// Settings of the behaviour that change with the step.
    #[serde(default)]
    pub conduct: ConductPart,
    /// Action of the framework in this step.
    #[serde(rename = "do")]
    pub action: Option<ScriptAction>,
}

fn star() -> String {
    "*".to_owned()
}

/// Settings of a framework's behaviour that a scenario gives.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductPart {
    /// Placement of tasks on offers: `first`, `pack` or `spread`.
    pub place: Option<Place>,
    /// Time for which an offer is held that no task can use.
    pub hold: Option<Dist>,
    /// `refuse_seconds` while work waits and, unless `refuse_idle` is set, at other times.
    pub refuse: Option<Span>,
    /// `refuse_seconds` when there is nothing to launch.
    pub refuse_idle: Option<Span>,
    /// Decision time for each set of offers.
    pub think: Option<Span>,
    /// Additional decision time for each task.
    pub think_per_task: Option<Span>,
    /// Whether each decision is about one job only.
    pub job_at_a_time: Option<bool>,
    /// Whether the next task is one of the job with the fewest running tasks.
    pub fair_jobs: Option<bool>,
    /// The most tasks that are launched at once.
    pub attempt: Option<usize>,
    /// The most tasks that are launched on one offer.
    pub tasks_per_offer: Option<usize>,
    /// Whether the framework suppresses offers when there is nothing to launch.
    pub suppress: Option<bool>,
    /// Whether the framework revives offers, which removes its offer filters, when work arrives.
    pub revive: Option<bool>,
    /// Whether the framework holds every offer forever.
    pub hoard: Option<bool>,
}

/// Jobs of one kind, and when they arrive: one of `at`, `every`, `poisson`, `burst`, `diurnal`, `chain` and `trace`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobKind {
    /// Name of the kind, if its jobs are measured separately.
    pub name: Option<String>,
    /// Time at which all jobs arrive.
    pub at: Option<Span>,
    /// Interval of jobs that arrive regularly.
    pub every: Option<Span>,
    /// Mean interval of jobs that arrive at random.
    pub poisson: Option<Span>,
    /// Number of jobs that arrive at once, every `gap`.
    pub burst: Option<u32>,
    /// Interval of the bursts; see `burst`.
    pub gap: Option<Span>,
    /// Mean interval of jobs that arrive at random, with a rate that varies over the day by `amplitude`.
    pub diurnal: Option<Span>,
    /// Period of the rate's variation; a day if unset.
    pub period: Option<Span>,
    /// Amplitude of the rate's variation: 0 to 1.
    pub amplitude: Option<f64>,
    /// Time from the end of a job to the arrival of the next one.
    pub chain: Option<Span>,
    /// Path of a CSV file, relative to the scenario: `submit_s,tasks,cpus,mem_mb,duration_s`, or one of the public
    /// formats. `needs` and `time` override it.
    pub trace: Option<String>,
    /// Format of a trace without a header: `alibaba-2017`, `alibaba-2018`, `alibaba-gpu-2020`, `azure-vm`, `gavel` or
    /// `google-2011`.
    pub shape: Option<String>,
    /// Resources of the machine to which the shares in a trace refer, as `cpus:32;mem:131072`.
    pub machine: Option<String>,
    /// The most jobs that arrive.
    pub count: Option<u64>,
    /// Earliest time of the first arrival.
    #[serde(default)]
    pub from: Span,
    /// Latest time of the last arrival.
    pub until: Option<Span>,
    /// Number of tasks of a job.
    #[serde(default = "one_small")]
    pub tasks: u32,
    /// Mean of an exponential distribution from which the number of tasks is drawn instead, at least 1.
    pub tasks_mean: Option<f64>,
    /// Resources that each task needs: scalars, as `cpus:1;mem:512`.
    pub needs: Option<String>,
    /// Distribution of the duration of a task.
    pub time: Option<Dist>,
    /// Whether all tasks of a job start together.
    #[serde(default)]
    pub gang: bool,
    /// Number of retries of a task that fails.
    #[serde(default)]
    pub retries: u32,
    /// Description of the jobs for a bundled framework.
    #[serde(default)]
    pub options: toml::Table,
}

/// A part of the run that is measured separately.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Name of the window.
    pub name: String,
    /// Time after the start at which the window begins.
    pub from: Span,
    /// Time after the start at which the window ends.
    pub to: Span,
}
