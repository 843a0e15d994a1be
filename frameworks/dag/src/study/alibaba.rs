//! Reads the batch tasks of Alibaba's cluster trace of 2018: `batch_task.csv`, whose task names say what a task waits
//! for. It opens no file.
//!
//! A line is `task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem`, with 100 for a
//! CPU and with parts of a hundred of a machine's memory. `J5_2_3` is task 5, after tasks 2 and 3 of its job. Names of
//! another form, such as `task_x`, are tasks without dependencies.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use super::StudyError;
use super::job::{Durations, JobModel, StageModel};
use crate::order::Amounts;

/// Tasks of a job at most; jobs with more are left out.
const TASKS: usize = 1000;

/// Instances of a task at most; those with more count as this many.
const INSTANCES: u32 = 10_000;

/// A job of the trace, with the second at which its first task began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Seconds after the beginning of the trace.
    pub at: u64,
    /// The job.
    pub job: Arc<JobModel>,
}

/// A task of the trace: a stage.
struct Task {
    number: Option<u32>,
    after: Vec<u32>,
    instances: u32,
    start: u64,
    end: u64,
    demand: Amounts,
}

/// What a task name says: its number, and those of the tasks before it. None if the name has another form.
pub fn parse_name(name: &str) -> Option<(u32, Vec<u32>)> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if digits.len() == name.len() {
        return None;
    }
    let mut parts = digits.split('_');
    let number: u32 = parts.next()?.parse().ok()?;
    // Parts that are not numbers, such as `Stg1`, name no task.
    let after: Vec<u32> = parts.filter_map(|part| part.parse().ok()).filter(|other| *other != number).collect();
    Some((number, after))
}

/// Reads up to this many jobs that have ended, and have at least `least` tasks with dependencies that make sense. Other
/// jobs, and jobs of which a task has not terminated, are left out. Jobs are in the order in which they begin.
///
/// # Errors
/// A line that cannot be read or has not nine fields.
pub fn read(text: &mut dyn BufRead, jobs: usize, least: usize) -> Result<Vec<Traced>, StudyError> {
    let mut all: BTreeMap<String, Option<Vec<Task>>> = BTreeMap::new();
    // The trace has the tasks of a job near each other, in no order: a margin lets the last jobs be whole.
    let most = jobs.saturating_mul(4).saturating_add(1000);
    for (n, line) in text.lines().enumerate() {
        let wrong = |rule: &str| StudyError::Line { line: n + 1, rule: rule.to_owned() };
        let line = line.map_err(|why| wrong(&why.to_string()))?;
        if line.trim().is_empty() || (n == 0 && line.starts_with("task_name")) {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [name, instances, job, _, status, start, end, cpus, mem] = fields[..] else {
            return Err(wrong(
                "must have nine fields: task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem",
            ));
        };
        if !all.contains_key(job) && all.len() >= most {
            break;
        }
        let entry = all.entry(job.to_owned()).or_insert_with(|| Some(Vec::new()));
        let task = (status == "Terminated").then(|| task(name, instances, (start, end), (cpus, mem))).flatten();
        match (task, &mut *entry) {
            (Some(task), Some(tasks)) if tasks.len() < TASKS => tasks.push(task),
            _ => *entry = None,
        }
    }
    let whole =
        all.into_iter().filter_map(|(name, tasks)| Some((name, tasks?))).filter(|(_, tasks)| tasks.len() >= least);
    let mut traced: Vec<Traced> = whole.filter_map(|(name, tasks)| job(name, tasks)).collect();
    traced.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.job.name.cmp(&b.job.name)));
    traced.truncate(jobs);
    let first = traced.first().map_or(0, |first| first.at);
    traced.iter_mut().for_each(|job| job.at -= first);
    Ok(traced)
}

fn task(name: &str, instances: &str, (start, end): (&str, &str), (cpus, mem): (&str, &str)) -> Option<Task> {
    let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
    let known = parse_name(name);
    let amount = |text: &str, usual: f64| {
        text.parse().ok().filter(|amount: &f64| amount.is_finite() && (0.001..=1e6).contains(amount)).unwrap_or(usual)
    };
    Some(Task {
        number: known.as_ref().map(|(number, _)| *number),
        after: known.map_or_else(Vec::new, |(_, after)| after),
        instances: instances.parse::<f64>().ok().filter(|n| *n >= 1.0)?.min(f64::from(INSTANCES)) as u32,
        start,
        end: (end >= start && start > 0).then_some(end)?,
        // A hundred is a CPU, which is a thousand thousandths; of memory a hundred is all of a machine's.
        demand: Amounts {
            cpus: (amount(cpus, 100.0) * 10.0) as u64,
            mem: ((amount(mem, 0.5) * 1000.0) as u64).max(1),
            gpus: 0,
        },
    })
}

/// A job whose tasks come after those that they name; none if they name others or each other in a circle.
fn job(name: String, tasks: Vec<Task>) -> Option<Traced> {
    let mut place: BTreeMap<u32, usize> = BTreeMap::new();
    let mut order: Vec<usize> = Vec::new();
    let numbered = |number: u32| tasks.iter().any(|task| task.number == Some(number));
    if !tasks.iter().flat_map(|task| &task.after).all(|after| numbered(*after)) {
        return None;
    }
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    while !left.is_empty() {
        let at = left.iter().position(|task| tasks[*task].after.iter().all(|after| place.contains_key(after)))?;
        let task = left.remove(at);
        if let Some(number) = tasks[task].number {
            place.entry(number).or_insert(order.len());
        }
        order.push(task);
    }
    let at = tasks.iter().map(|task| task.start).min()?;
    let stages = order.iter().map(|task| {
        let task = &tasks[*task];
        let rough = (task.end - task.start).max(1) * 1000;
        let mut parents: Vec<u32> = task.after.iter().map(|after| place[after] as u32).collect();
        parents.sort_unstable();
        parents.dedup();
        let durations = vec![Durations { executors: 1, first: vec![rough], ..Durations::default() }];
        let key = format!("{name}-{}", task.number.unwrap_or(0));
        StageModel { key, tasks: task.instances, parents, rough, demand: task.demand, durations }
    });
    let stages = stages.collect();
    Some(Traced { at, job: Arc::new(JobModel { name, stages }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
M1,4,j_1,1,Terminated,100,110,100,0.5
R2_1,2,j_1,1,Terminated,110,140,50,0.3
J3_1_2,1,j_1,1,Terminated,140,145,,
M1,1,j_2,1,Failed,90,95,100,0.5
task_abc,3,j_3,1,Terminated,90,95,100,0.5
R2_7,1,j_4,1,Terminated,91,95,100,0.5
M1_2,1,j_5,1,Terminated,91,95,100,0.5
R2_1,1,j_5,1,Terminated,91,95,100,0.5
";

    #[test]
    fn names_say_what_comes_before() {
        assert_eq!(parse_name("J5_2_3"), Some((5, vec![2, 3])));
        assert_eq!(parse_name("M1"), Some((1, vec![])));
        assert_eq!(parse_name("R2_1_Stg4"), Some((2, vec![1])));
        assert_eq!((parse_name("task_MTY4"), parse_name("MergeTask"), parse_name("12")), (None, None, None));
    }

    #[test]
    fn jobs_that_make_sense_are_read() {
        let jobs = read(&mut TRACE.as_bytes(), 10, 1).unwrap();
        let names: Vec<&str> = jobs.iter().map(|traced| traced.job.name.as_str()).collect();
        assert_eq!(names, ["j_3", "j_1"]);
        let stages = &jobs[1].job.stages;
        assert_eq!((jobs[1].at, stages.len(), stages[2].parents.clone()), (10, 3, vec![0, 1]));
        assert_eq!(
            (stages[1].tasks, stages[1].rough, stages[1].demand.cpus, stages[1].demand.mem),
            (2, 30_000, 500, 300)
        );
        assert_eq!(read(&mut TRACE.as_bytes(), 10, 2).unwrap().len(), 1);
        let error = read(&mut "a,b\n".as_bytes(), 1, 1).unwrap_err().to_string();
        assert!(error.starts_with("line 1: must have nine fields"), "{error}");
    }
}
