//! What the demo runs: reading `examples/demo.toml` or another file of its form.

use std::path::Path;

use anyhow::{Context, Result, bail};
use resources::{Resources, Role, parse_text};
use sdk::task::shell;
use sdk::v1::TaskInfo;
use serde::Deserialize;

/// The plan that is used when none is named.
const BUILT_IN: &str = include_str!("../../../../examples/demo.toml");
/// A demo is looked at by a person.
const TASKS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<Job>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: String,
    command: String,
    over: Vec<String>,
    cpus: f64,
    mem: f64,
}

/// The tasks of a plan, the largest first: those are the hardest to place.
///
/// # Errors
/// The file cannot be read, or breaks a rule; names both.
pub(super) fn tasks(path: Option<&Path>) -> Result<Vec<TaskInfo>> {
    match path {
        None => parse(BUILT_IN),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            parse(&text).with_context(|| format!("in {}", path.display()))
        }
    }
}

fn parse(text: &str) -> Result<Vec<TaskInfo>> {
    let file: File = toml::from_str(text)?;
    let mut jobs = file.job;
    jobs.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    let mut tasks: Vec<TaskInfo> = Vec::new();
    for job in &jobs {
        let needs = needs(job)?;
        for entry in &job.over {
            let id = format!("{}-{entry}", job.name);
            base::TaskId::new(&id).with_context(|| format!("job '{}'", job.name))?;
            if tasks.iter().any(|t| t.task_id.value == id) {
                bail!("job '{}': the task '{id}' is there twice", job.name);
            }
            tasks.push(shell(&id, &job.command.replace("{}", entry), &needs));
        }
    }
    match tasks.len() {
        0 => bail!("the plan has no tasks"),
        1..=TASKS_MAX => Ok(tasks),
        n => bail!("the plan has {n} tasks, and {TASKS_MAX} is the limit"),
    }
}

fn needs(job: &Job) -> Result<Resources> {
    for (name, amount) in [("cpus", job.cpus), ("mem", job.mem)] {
        if !(amount > 0.0 && amount.is_finite()) {
            bail!("job '{}': {name} must be more than 0", job.name);
        }
    }
    let text = format!("cpus:{};mem:{}", job.cpus, job.mem);
    parse_text(&text, &Role::star()).with_context(|| format!("job '{}'", job.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_that_comes_along() {
        let tasks = tasks(None).unwrap();
        assert_eq!(tasks.len(), 24);
        assert_eq!(tasks[0].task_id.value, "compress-a");
        assert!(tasks.iter().all(|t| !t.command.as_ref().unwrap().value().contains("{}")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let job = |rest: &str| format!("[[job]]\nname = \"j\"\ncommand = \"true\"\n{rest}\n");
        for (text, named) in [
            ("", "job"),
            (&job("over = [\"a\"]\ncpus = 1"), "mem"),
            (&job("over = [\"a\"]\ncpus = 0\nmem = 1"), "cpus"),
            (&job("over = [\"a\", \"a\"]\ncpus = 1\nmem = 1"), "j-a"),
            (&job("over = [\"a/b\"]\ncpus = 1\nmem = 1"), "invalid characters"),
            (&job("over = []\ncpus = 1\nmem = 1"), "no tasks"),
            (&job("over = []\ncpus = 1\nmem = 1\ngpu = 1"), "gpu"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
