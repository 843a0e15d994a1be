//! Measurements of a cluster, by job; and what follows from them for each job and role.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Advice, Amounts, History, Reading, Risk, family};

/// Jobs that are kept; measurements of further ones are counted and left out.
pub const JOBS_MAX: usize = 10_000;

/// A measurement of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its round of measurements: the time in milliseconds since 1970, by the clock of the process that measures.
    pub round: u64,
    /// The framework's name.
    pub framework: String,
    /// The role that the task's resources are allocated to.
    pub role: String,
    /// The task's name.
    pub name: String,
    /// What tells it apart from others of its name.
    pub task: String,
    /// What it asks for.
    #[serde(flatten)]
    pub asked: Amounts,
    /// What its container has used.
    #[serde(flatten)]
    pub reading: Reading,
}

#[derive(Clone, Debug, Default)]
struct Job {
    role: String,
    asked: Amounts,
    history: History,
    /// Number of its samples, in all rounds together.
    samples: u64,
}

/// The measurements of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Book {
    jobs: BTreeMap<(String, String), Job>,
    round: Option<u64>,
    rounds: u64,
    left_out: u64,
}

/// What is said about a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobAdvice {
    /// The framework's name.
    pub framework: String,
    /// The name that its tasks have in common.
    pub job: String,
    /// Its role.
    pub role: String,
    /// How many tasks it had, in the mean of the rounds.
    pub tasks: f64,
    /// How many tasks were measured.
    pub seen: usize,
    /// Number of measurements.
    pub measured: u64,
    /// What is said about each resource.
    #[serde(flatten)]
    pub advice: Advice,
}

impl JobAdvice {
    /// What all its tasks together ask for, used, and should ask for, in the mean.
    fn sums(&self) -> Sums {
        let mean = |part: &crate::Part| part.used.map_or(0.0, |used| used.mean);
        let Advice { cpus, mem } = &self.advice;
        Sums {
            tasks: self.tasks,
            asked: Amounts { cpus: cpus.asked, mem: mem.asked }.scaled(self.tasks),
            used: Amounts::of(mean(cpus), mean(mem)).scaled(self.tasks),
            proposed: self.advice.wanted().scaled(self.tasks),
        }
    }
}

/// Sums over jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Sums {
    tasks: f64,
    asked: Amounts,
    used: Amounts,
    proposed: Amounts,
}

/// What is said about a role, or about all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleAdvice {
    /// The role; empty for all.
    pub role: String,
    /// How many tasks it had, in the mean of the rounds.
    pub tasks: f64,
    /// What they requested.
    pub asked: Amounts,
    /// What they used.
    pub used: Amounts,
    /// What they should ask for; what they ask for where nothing is proposed.
    pub proposed: Amounts,
    /// What that frees; negative if more is needed.
    pub freed: Amounts,
}

impl RoleAdvice {
    fn of(role: &str, sums: &Sums) -> RoleAdvice {
        let Sums { tasks, asked, used, proposed } = *sums;
        RoleAdvice { role: role.to_owned(), tasks, asked, used, proposed, freed: asked - proposed }
    }
}

/// What is said about a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The risk that proposals keep to.
    pub risk: Risk,
    /// Number of rounds of measurements.
    pub rounds: u64,
    /// Jobs, by framework and name.
    pub jobs: Vec<JobAdvice>,
    /// Roles, by name.
    pub roles: Vec<RoleAdvice>,
    /// All of them.
    pub total: RoleAdvice,
    /// Samples of jobs that are not kept, because there are too many.
    pub left_out: u64,
}

impl Book {
    /// Takes a sample. Samples of a round must follow each other.
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
        // The last request counts: it may have been changed meanwhile.
        job.asked = sample.asked;
        job.samples += 1;
        job.history.add(&sample.task, sample.reading);
    }

    /// Number of rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Says what jobs and roles should ask for.
    pub fn report(&self, risk: Risk) -> Report {
        let of_job = |((framework, name), job): (&(String, String), &Job)| JobAdvice {
            framework: framework.clone(),
            job: name.clone(),
            role: job.role.clone(),
            tasks: job.samples as f64 / self.rounds.max(1) as f64,
            seen: job.history.tasks(),
            measured: job.history.measured(),
            advice: job.history.advise(job.asked, risk),
        };
        let jobs: Vec<JobAdvice> = self.jobs.iter().map(of_job).collect();
        let (mut roles, mut total): (BTreeMap<&str, Sums>, Sums) = Default::default();
        for job in &jobs {
            let sums = job.sums();
            for sum in [roles.entry(&job.role).or_default(), &mut total] {
                sum.tasks += sums.tasks;
                sum.asked += sums.asked;
                sum.used += sums.used;
                sum.proposed += sums.proposed;
            }
        }
        let roles = roles.iter().map(|(role, sums)| RoleAdvice::of(role, sums)).collect();
        let total = RoleAdvice::of("", &total);
        Report { risk, rounds: self.rounds, jobs, roles, total, left_out: self.left_out }
    }
}
