//! Reads the batch tasks of Alibaba's cluster trace of 2018: `batch_task.csv`, whose task names contain their
//! dependencies. It opens no file.
//!
//! `J5_2_3` is task 5, after tasks 2 and 3 of its job; letters have no meaning. Names of another form, such as
//! `task_x`, are tasks without dependencies. [`generated`] generates jobs with the published distributions of the
//! trace.

pub mod generated;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, Read};
use std::sync::Arc;

use super::StudyError;
use super::job::{Durations, JobModel, StageModel};
use crate::order::Amounts;
use line::Line;

/// Capacity of a machine of the trace: 96 CPUs, and all of a machine's memory.
pub const MACHINE: Amounts = Amounts { cpus: 96_000, mem: 100_000, gpus: 0 };

/// Maximum number of tasks of a job; jobs with more are omitted.
const TASKS: usize = 1000;

/// Number of tasks of all jobs from which no new job is started.
const ALL_TASKS: usize = 1_000_000;

/// Maximum number of instances of a task; those with more count as this many.
const INSTANCES: u32 = 10_000;

/// Maximum number of bytes of a line.
const LINE: u64 = 4096;

/// A job of the trace, with the time at which its first task started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedJob {
    /// Seconds after the first job that was read.
    pub at: u64,
    /// Model of the job.
    pub job: Arc<JobModel>,
}

/// The jobs that were read from a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Jobs in the order of their start.
    pub jobs: Vec<TracedJob>,
    /// Numbers of omitted jobs.
    pub left_out: LeftOut,
}

/// The number of omitted jobs for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Reason, usize>);

/// The reason why a job was omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Unfinished,
    Outside,
    TooWide,
    TooMany,
    Twice,
    Unknown,
    Circle,
    Short,
    Beyond,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Reason::Unfinished => "have tasks that have not succeeded",
            Reason::Outside => "began or ended outside of the trace, or have tasks without instances",
            Reason::TooWide => "have tasks that request more than a machine has",
            Reason::TooMany => "have more than 1000 tasks",
            Reason::Twice => "have two tasks with the same number",
            Reason::Unknown => "have tasks that depend on missing tasks",
            Reason::Circle => "have tasks that depend on each other",
            Reason::Short => "have too few tasks",
            Reason::Beyond => "are above the maximum number of jobs",
        }
    }
}

impl LeftOut {
    /// Returns whether no job was omitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.0.values().sum();
        write!(f, "{all} jobs are omitted")?;
        for (place, (reason, count)) in self.0.iter().enumerate() {
            write!(f, "{} {count} {}", if place == 0 { ":" } else { "," }, reason.text())?;
        }
        Ok(())
    }
}

/// A task of the trace, which becomes a stage.
struct Task {
    number: Option<u32>,
    after: Vec<u32>,
    instances: u32,
    times: (u64, u64),
    demand: Amounts,
}

/// Parses a task name to its number and those of the tasks before it. `None` if the name has another form.
pub fn parse_name(name: &str) -> Option<(u32, Vec<u32>)> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if digits.len() == name.len() {
        return None;
    }
    let mut parts = digits.split('_');
    let number: u32 = parts.next()?.parse().ok()?;
    // Parts that are no numbers, such as `Stg1`, name no task.
    let after: Vec<u32> = parts.filter_map(|part| part.parse().ok()).filter(|other| *other != number).collect();
    Some((number, after))
}

/// Reads up to this many jobs that have ended, and have at least `least` tasks with consistent dependencies. Other jobs
/// are omitted and counted.
///
/// # Errors
/// A line that cannot be read, or breaks a rule.
pub fn read(text: &mut dyn BufRead, jobs: usize, least: usize) -> Result<Trace, StudyError> {
    let mut reader = Reader { most: jobs.saturating_mul(4).saturating_add(1000), ..Reader::default() };
    let (mut bytes, mut number) = (Vec::new(), 0);
    loop {
        number += 1;
        let wrong = |rule: String| StudyError::Line { line: number, rule };
        bytes.clear();
        let length =
            Read::take(&mut *text, LINE + 1).read_until(b'\n', &mut bytes).map_err(|e| wrong(e.to_string()))?;
        if length == 0 {
            break;
        }
        if length as u64 > LINE {
            return Err(wrong(format!("must have {LINE} bytes at most")));
        }
        let line = std::str::from_utf8(&bytes).map_err(|_| wrong("must be UTF-8".to_owned()))?.trim();
        let is_header = number == 1 && line.starts_with("task_name");
        if !(line.is_empty() || is_header) {
            reader.take(&Line::read(line).map_err(wrong)?);
        }
    }
    Ok(reader.finish(jobs, least))
}

/// The jobs that were read so far.
#[derive(Default)]
struct Reader {
    /// Limit of the number of jobs. The trace has them in no order, and the earliest of these are taken.
    most: usize,
    jobs: BTreeMap<String, Result<Vec<Task>, Reason>>,
    tasks: usize,
}

impl Reader {
    fn take(&mut self, line: &Line<'_>) {
        if !self.jobs.contains_key(line.job) {
            if self.jobs.len() >= self.most || self.tasks >= ALL_TASKS {
                return;
            }
            self.jobs.insert(line.job.to_owned(), Ok(Vec::new()));
        }
        let Some(entry) = self.jobs.get_mut(line.job) else { return };
        let Ok(tasks) = entry else { return };
        match task(line, tasks) {
            Ok(task) => {
                self.tasks += 1;
                tasks.push(task);
            }
            Err(reason) => {
                self.tasks -= tasks.len();
                *entry = Err(reason);
            }
        }
    }

    fn finish(self, jobs: usize, least: usize) -> Trace {
        let mut trace = Trace::default();
        for (name, tasks) in self.jobs {
            match tasks.and_then(|tasks| job(name, tasks, least)) {
                Ok(job) => trace.jobs.push(job),
                Err(reason) => trace.left_out.add(reason),
            }
        }
        trace.jobs.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.job.name.cmp(&b.job.name)));
        for _ in jobs..trace.jobs.len() {
            trace.left_out.add(Reason::Beyond);
        }
        trace.jobs.truncate(jobs);
        let first = trace.jobs.first().map_or(0, |first| first.at);
        trace.jobs.iter_mut().for_each(|job| job.at -= first);
        trace
    }
}

/// Converts a line to a task of a job with these other tasks.
fn task(line: &Line<'_>, others: &[Task]) -> Result<Task, Reason> {
    let (start, end) = line.times;
    let known = parse_name(line.task);
    let number = known.as_ref().map(|(number, _)| *number);
    if !line.ended {
        return Err(Reason::Unfinished);
    } else if line.instances == 0 || start == 0 || end < start {
        return Err(Reason::Outside);
    } else if MACHINE.fits(line.demand) == 0 {
        return Err(Reason::TooWide);
    } else if others.len() >= TASKS {
        return Err(Reason::TooMany);
    } else if number.is_some() && others.iter().any(|other| other.number == number) {
        return Err(Reason::Twice);
    }
    Ok(Task {
        number,
        after: known.map_or_else(Vec::new, |(_, after)| after),
        instances: line.instances.min(INSTANCES),
        times: line.times,
        demand: line.demand,
    })
}

/// Converts the tasks of a job to stages, each after those that it names.
fn job(name: String, tasks: Vec<Task>, least: usize) -> Result<TracedJob, Reason> {
    if tasks.len() < least {
        return Err(Reason::Short);
    }
    let mut place: BTreeMap<u32, usize> = BTreeMap::new();
    let mut order: Vec<usize> = Vec::new();
    let numbers: BTreeSet<u32> = tasks.iter().filter_map(|task| task.number).collect();
    if !tasks.iter().flat_map(|task| &task.after).all(|after| numbers.contains(after)) {
        return Err(Reason::Unknown);
    }
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    while !left.is_empty() {
        let ready = |task: &usize| tasks[*task].after.iter().all(|after| place.contains_key(after));
        let at = left.iter().position(ready).ok_or(Reason::Circle)?;
        let task = left.remove(at);
        if let Some(number) = tasks[task].number {
            place.insert(number, order.len());
        }
        order.push(task);
    }
    let at = tasks.iter().map(|task| task.times.0).min().ok_or(Reason::Short)?;
    let stages = order.iter().map(|task| {
        let task = &tasks[*task];
        let mut parents: Vec<u32> = task.after.iter().map(|after| place[after] as u32).collect();
        parents.sort_unstable();
        parents.dedup();
        let key = format!("{name}-{}", task.number.unwrap_or(0));
        stage(key, task.instances, parents, task.times.1 - task.times.0, task.demand)
    });
    let stages = stages.collect();
    Ok(TracedJob { at, job: Arc::new(JobModel { name, stages }) })
}

/// Returns a stage whose instances each take as long as the task of the trace from its start to its end, at least a
/// second. The table contains no more about them.
fn stage(key: String, tasks: u32, parents: Vec<u32>, seconds: u64, demand: Amounts) -> StageModel {
    let rough = seconds.max(1) * 1000;
    let durations = vec![Durations { executors: 1, first: vec![rough], ..Durations::default() }];
    StageModel { key, tasks, parents, rough, demand, durations }
}

#[cfg(test)]
mod tests;
