//! Collects measurements of a cluster by job, and derives advice for each job and role.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Advice, Amounts, History, Reading, Risk, family};

/// Number of jobs that are kept; measurements of further jobs are counted and dropped.
pub const JOBS_MAX: usize = 10_000;

/// A measurement of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Round of measurements: milliseconds since 1970, by the clock of the process that measures.
    pub round: u64,
    /// Name of the framework.
    pub framework: String,
    /// The role that the task's resources are allocated to.
    pub role: String,
    /// Name of the task.
    pub name: String,
    /// Id of the task, which distinguishes it from others of the same name.
    pub task: String,
    /// Resources that the task requests.
    #[serde(flatten)]
    pub requested: Amounts,
    /// Resources that the task's container has used.
    #[serde(flatten)]
    pub reading: Reading,
}

#[derive(Clone, Debug, Default)]
struct Job {
    role: String,
    requested: Amounts,
    history: History,
    /// Number of the job's samples in all rounds together.
    samples: u64,
}

/// The measurements of a cluster, by job.
#[derive(Clone, Debug, Default)]
pub struct ClusterMeasurements {
    jobs: BTreeMap<(String, String), Job>,
    round: Option<u64>,
    rounds: u64,
    left_out: u64,
}

/// Advice about one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobAdvice {
    /// Name of the job's framework.
    pub framework: String,
    /// Name that the job's tasks have in common.
    pub job: String,
    /// Role of the job's tasks.
    pub role: String,
    /// Mean number of the job's tasks over all rounds.
    pub tasks: f64,
    /// Number of tasks whose measurements are kept.
    pub seen: usize,
    /// Number of measurements of processors.
    pub measured: u64,
    /// Advice about each resource.
    #[serde(flatten)]
    pub advice: Advice,
}

impl JobAdvice {
    /// Returns the means of what all tasks together request, use, and should request.
    fn sums(&self) -> Sums {
        let mean = |part: &crate::ResourceAdvice| part.used.map_or(0.0, |used| used.mean);
        let Advice { cpus, mem } = &self.advice;
        Sums {
            tasks: self.tasks,
            requested: Amounts { cpus: cpus.requested, mem: mem.requested }.scaled(self.tasks),
            used: Amounts::of(mean(cpus), mean(mem)).scaled(self.tasks),
            proposed: self.advice.recommended().scaled(self.tasks),
        }
    }
}

/// Sums of the tasks and amounts of several jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Sums {
    tasks: f64,
    requested: Amounts,
    used: Amounts,
    proposed: Amounts,
}

/// Advice about a role, or about all roles together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleAdvice {
    /// Name of the role; empty for all roles together.
    pub role: String,
    /// Mean number of the role's tasks over all rounds.
    pub tasks: f64,
    /// Resources that the role's tasks request.
    pub requested: Amounts,
    /// Resources that the role's tasks used, in the mean.
    pub used: Amounts,
    /// Resources that the role's tasks should request; the present request where nothing is proposed.
    pub proposed: Amounts,
    /// Resources that the proposals free; negative if more are needed.
    pub freed: Amounts,
}

impl RoleAdvice {
    fn of(role: &str, sums: &Sums) -> RoleAdvice {
        let Sums { tasks, requested, used, proposed } = *sums;
        RoleAdvice { role: role.to_owned(), tasks, requested, used, proposed, freed: requested - proposed }
    }
}

/// Advice about a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Risk of a shortage that the proposals keep to.
    pub risk: Risk,
    /// Number of rounds of measurements.
    pub rounds: u64,
    /// Advice about jobs, ordered by framework and name.
    pub jobs: Vec<JobAdvice>,
    /// Advice about roles, ordered by name.
    pub roles: Vec<RoleAdvice>,
    /// Advice about all roles together.
    pub total: RoleAdvice,
    /// Number of samples that were dropped because there are too many jobs.
    pub left_out: u64,
}

impl ClusterMeasurements {
    /// Adds a sample. Samples of the same round must be consecutive.
    pub fn add(&mut self, sample: &Sample) {
        if self.round != Some(sample.round) {
            self.round = Some(sample.round);
            self.rounds += 1;
        }
        let key = (sample.framework.clone(), family(&sample.name).to_owned());
        if self.jobs.len() >= JOBS_MAX && !self.jobs.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let job = self.jobs.entry(key).or_default();
        job.role.clone_from(&sample.role);
        // The last request counts: the job may have been changed since.
        job.requested = sample.requested;
        job.samples += 1;
        job.history.add(&sample.task, sample.reading);
    }

    /// Returns the number of rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns what jobs and roles should request.
    pub fn report(&self, risk: Risk) -> Report {
        let of_job = |((framework, name), job): (&(String, String), &Job)| JobAdvice {
            framework: framework.clone(),
            job: name.clone(),
            role: job.role.clone(),
            tasks: job.samples as f64 / self.rounds.max(1) as f64,
            seen: job.history.tasks(),
            measured: job.history.measured(),
            advice: job.history.advise(job.requested, risk),
        };
        let jobs: Vec<JobAdvice> = self.jobs.iter().map(of_job).collect();
        let (mut roles, mut total): (BTreeMap<&str, Sums>, Sums) = Default::default();
        for job in &jobs {
            let sums = job.sums();
            for sum in [roles.entry(&job.role).or_default(), &mut total] {
                sum.tasks += sums.tasks;
                sum.requested += sums.requested;
                sum.used += sums.used;
                sum.proposed += sums.proposed;
            }
        }
        let roles = roles.iter().map(|(role, sums)| RoleAdvice::of(role, sums)).collect();
        let total = RoleAdvice::of("", &total);
        Report { risk, rounds: self.rounds, jobs, roles, total, left_out: self.left_out }
    }
}
