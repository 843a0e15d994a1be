//! The bundled frameworks in scenarios: `bundled = "binpack"`, `"dag"`, `"quality"`, `"video"`.
//!
//! Each runs its live scheduler. The file of the framework here, and its crate, state what is modelled: the durations
//! of tasks, and the progress of workers of a training or a query on their cores.

mod binpack;
mod dag;
mod quality;
mod video;

use std::path::Path;

use ::jobs::file::{Faults, Syntax};
use ::jobs::{NAMES, Need};
use ::lab::bundled::{Catalog, FrameworkConfig, InvalidField, JobKind};
use ::sdk::Event;
use ::sdk::v1::scheduler::Call;
use ::sdk::v1::{CommandInfo, Label, Labels, TaskInfo};

/// The bundled frameworks that scenarios can name.
pub const CATALOG: Catalog = Catalog(&[&binpack::Binpack, &dag::Dag, &quality::Trainings, &video::Queries]);

/// Returns the tasks that calls launch.
fn launched(calls: &mut [Call]) -> impl Iterator<Item = &mut TaskInfo> {
    let accepted = calls.iter_mut().filter_map(|call| call.accept.as_mut());
    let launches = accepted.flat_map(|accept| &mut accept.operations).filter_map(|one| one.launch.as_mut());
    launches.flat_map(|launch| &mut launch.task_infos)
}

/// Returns the value of a variable in the environment of a task's command.
fn variable<'a>(task: &'a TaskInfo, name: &str) -> Option<&'a str> {
    let environment = task.command.as_ref()?.environment.as_ref()?;
    environment.variables.iter().filter(|one| one.name == name).find_map(|one| one.value.as_deref())
}

/// Adds labels to a task.
fn add_labels(task: &mut TaskInfo, own: impl Iterator<Item = (&'static str, String)>) {
    let labels = task.labels.get_or_insert_with(Labels::default);
    labels.labels.extend(own.map(|(key, value)| Label { key: key.to_owned(), value: Some(value) }));
}

/// Returns whether a scheduler checks for new jobs at this event.
fn may_have_jobs(event: &Event) -> bool {
    matches!(event, Event::Wake | Event::Subscribed { .. })
}

/// Replaces the commands of launched workers, which are modelled, by a process that runs until it is killed.
fn replace_commands(calls: &mut [Call]) {
    let words = ["sleep", "infinity"].map(str::to_owned);
    let command = CommandInfo {
        shell: Some(false),
        value: Some(words[0].clone()),
        arguments: words.to_vec(),
        ..CommandInfo::default()
    };
    launched(calls).for_each(|task| task.command = Some(command.clone()));
}

/// Returns the first field, if any, of jobs that describes tasks.
fn task_field(kind: &JobKind) -> Option<&'static str> {
    let given = [
        ("tasks", kind.tasks != 1),
        ("tasks_mean", kind.tasks_mean.is_some()),
        ("needs", kind.needs.is_some()),
        ("gang", kind.gang),
        ("retries", kind.retries != 0),
        ("trace", kind.trace.is_some()),
    ];
    given.iter().find(|(_, given)| *given).map(|(field, _)| *field)
}

/// Rule for fields of a scenario that a job file has.
const IN_FILE: &str = "must be set in the job file, not here";

/// Reads the jobs of the job file that a kind of jobs names. Everything about their tasks is in that file.
fn jobs_of_file<J>(
    n: usize,
    kind: &JobKind,
    config: FrameworkConfig<'_>,
    read: fn(&str, &str, Syntax) -> Result<Vec<J>, Faults>,
) -> Result<Vec<J>, InvalidField> {
    let at = |field: &str| format!("jobs.{n}.{field}");
    let Some(name) = kind.options.get("file").and_then(toml::Value::as_str) else {
        return Err(InvalidField::new(at("options.file"), "must be the name of a job file"));
    };
    if let Some(other) = kind.options.keys().find(|key| *key != "file") {
        return Err(InvalidField::new(at(&format!("options.{other}")), IN_FILE));
    }
    if let Some(field) = task_field(kind) {
        return Err(InvalidField::new(at(field), IN_FILE));
    }
    let path = config.file(name);
    let text = text_of(&at("options.file"), &path)?;
    let jobs = read(&path.display().to_string(), &text, Syntax::of_file(name));
    jobs.map_err(|faults| InvalidField::new(at("options.file"), faults.to_string().replace('\n', "; ")))
}

/// Formats the resources of a task as a scenario has them.
fn needs_text(need: &Need) -> String {
    let amounts = (0..4).map(|place| (NAMES[place], need.amount(place)));
    let some = amounts.filter(|(_, amount)| !amount.is_zero());
    some.map(|(name, amount)| format!("{name}:{amount}")).collect::<Vec<_>>().join(";")
}

/// Rejects fields of jobs that describe tasks, for frameworks that decide about the number of workers. `what` is the
/// word for such a job.
fn without_tasks(n: usize, kind: &JobKind, what: &str) -> Result<(), InvalidField> {
    match task_field(kind) {
        Some(field) => {
            let rule = format!(
                "a job of this framework is {what}: the framework decides the number and the resources of its tasks"
            );
            Err(InvalidField::new(format!("jobs.{n}.{field}"), rule))
        }
        None => Ok(()),
    }
}

/// Returns the base of the names of jobs, for which the frameworks have limits.
fn name_of(n: usize, kind: &JobKind, otherwise: &str) -> Result<String, InvalidField> {
    const MOST: usize = 40;
    match &kind.name {
        Some(name) if name.len() > MOST => {
            Err(InvalidField::new(format!("jobs.{n}.name"), format!("must have {MOST} bytes at most")))
        }
        Some(name) => Ok(name.clone()),
        None => Ok(otherwise.to_owned()),
    }
}

/// Reads the text of a file that a scenario names in the field at `path`.
fn text_of(path: &str, file: &Path) -> Result<String, InvalidField> {
    std::fs::read_to_string(file)
        .map_err(|why| InvalidField::new(path, format!("{} cannot be read: {why}", file.display())))
}

#[cfg(test)]
mod tests;
