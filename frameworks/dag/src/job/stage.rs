//! Reads one stage of a job file. The caller resolves the names of other stages once all of them are known.

use std::collections::BTreeMap;

use jobs::constraint::Constraint;
use jobs::file::Fields;
use jobs::file::common::{constraints, env_name, name, need, restart, run, time_limit, uris};
use jobs::{Containerizer, Run};

use super::template::{PARTITION, flat};
use super::volumes::directory;
use super::{FilesInput, Input, RangeInput, Size, Stage, approximate, input};

/// Maximum number of tasks of a stage.
pub const COUNT_MAX: u32 = 1_000_000;
/// Longest name of a stage.
const NAME_MAX: usize = 64;
/// Maximum number of outputs of a task.
const OUTPUTS_MAX: usize = 1_000;
/// Maximum number of directories of input files that become volumes.
const VOLUMES_MAX: usize = 100;
/// Maximum number of partitions of an output.
const PARTITIONS_MAX: i64 = 10_000;

/// A stage as in the file, where other stages are named, with the position of each name.
pub(super) struct Draft<'a> {
    pub(super) stage: Stage,
    pub(super) after: Vec<(&'a str, usize)>,
    pub(super) input: input::Draft<'a>,
    pub(super) at: usize,
}

/// Returns the fault of the name of a file in a directory of a task, if it has one.
pub(super) fn file_name(name: &str) -> Option<&'static str> {
    let wrong =
        name.starts_with('/') || name.split('/').any(|part| matches!(part, "" | "." | "..")) || name.contains('\n');
    if wrong {
        Some("a file's name is relative to the output directory, without '.' and '..' as parts")
    } else if name.starts_with(".tepui") {
        Some("names that begin with .tepui are the framework's")
    } else {
        None
    }
}

/// Reads a stage.
pub(super) fn read<'a>(fields: &mut Fields<'a, '_>) -> Draft<'a> {
    let at = fields.at();
    let name = stage_name(fields);
    let after = match fields.take("after").map(|node| &node.value) {
        Some(jobs::file::Value::Text(_)) => fields.text("after").into_iter().collect(),
        _ => fields.texts("after"),
    };
    let image = fields.text("image").map(|(image, _)| image.to_owned());
    let containerizer = Containerizer::read(fields, image.is_some());
    // The program of an image takes no part as arguments, and the runner cannot run it, so it is not accepted here.
    let list = if fields.take("program").is_some() { "program" } else { "argv" };
    let run: Run = run(fields, "a stage", list, false);
    let mut env: BTreeMap<String, String> = fields.map("env", env_name);
    env.retain(|name, _| !name.is_empty());
    let input = input::read(fields);
    let (outputs, partitions) = outputs(fields);
    let approximate_at = fields.take("approximate").map(|node| node.at);
    let stage = Stage {
        name,
        after: Vec::new(),
        run,
        need: need(fields),
        env,
        uris: uris(fields),
        user: user(fields, containerizer),
        image,
        containerizer,
        constraints: rules_on_agents(fields),
        retries: fields.whole("retries", 0, 1_000).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        restart: restart(fields),
        time_limit: time_limit(fields),
        stdin: stdin(fields, &input),
        input: Input::Tasks(1),
        outputs,
        partitions,
        approximate: approximate::read(fields),
    };
    if let (Some(at), Some(_)) = (approximate_at, &stage.approximate) {
        check_sample(&input, at, fields);
    }
    if stage.image.is_some() {
        check_directories(&input, at, fields);
    }
    Draft { stage, after, input, at }
}

/// Reports a fault if the tasks of an approximate stage are not known before it runs: dropped tasks must be a sample of
/// which it is known what fraction of the input they are.
fn check_sample(input: &input::Draft<'_>, at: usize, fields: &mut Fields<'_, '_>) {
    let size = match input {
        input::Draft::Ready(Input::Files(FilesInput { size, .. }) | Input::Range(RangeInput { size, .. })) => *size,
        input::Draft::Ready(_) => return,
        input::Draft::Stages { .. } => {
            fields.faults.add(at, "approximate is for stages that do not read stages: none of their tasks is dropped");
            return;
        }
    };
    if !matches!(size, Size::Fixed(_)) {
        let rule = "approximate needs a size that is a number or an amount: where sizes are found while the stage runs, \
                    no task is dropped";
        fields.faults.add(at, rule);
    }
}

/// Checks the directories of the input files, which are volumes of the container of an image.
fn check_directories(input: &input::Draft<'_>, at: usize, fields: &mut Fields<'_, '_>) {
    let input::Draft::Ready(Input::Files(input)) = input else { return };
    if let Some(file) = input.files.iter().find(|file| directory(file).is_empty()) {
        let rule = format!("with an image, files must be below a directory, which becomes a volume: '{file}' is not");
        fields.faults.add(at, rule);
    }
    let mut directories: Vec<&str> = input.files.iter().map(|file| directory(file)).collect();
    directories.sort_unstable();
    directories.dedup();
    if directories.len() > VOLUMES_MAX {
        let rule = format!("with an image, files must be in {VOLUMES_MAX} directories at most");
        fields.faults.add(at, rule);
    }
}

/// Reads the user. Docker runs programs as the image's user.
fn user(fields: &mut Fields<'_, '_>, containerizer: Containerizer) -> Option<String> {
    let (user, at) = fields.text("user")?;
    if containerizer == Containerizer::Docker {
        fields.faults.add(at, "user is for containerizer = \"mesos\": with Docker the image names the user");
    }
    Some(user.to_owned())
}

fn stage_name(fields: &mut Fields<'_, '_>) -> String {
    let place = fields.take("name").map(|node| node.at);
    let name = name(fields, "a stage");
    if let Some(at) = place
        && (name.contains('.') || name.len() > NAME_MAX)
    {
        fields.faults.add(at, format!("the name of a stage has no '.' and {NAME_MAX} characters at most"));
    }
    name
}

fn outputs(fields: &mut Fields<'_, '_>) -> (Vec<String>, Option<u32>) {
    let texts = fields.texts("outputs");
    let at = fields.take("partitions").map(|node| node.at);
    let partitions = fields.whole("partitions", 1, PARTITIONS_MAX).and_then(|n| u32::try_from(n).ok());
    if texts.len() > OUTPUTS_MAX {
        fields.faults.add(texts[OUTPUTS_MAX].1, format!("a task has at most {OUTPUTS_MAX} outputs"));
    }
    if let (Some(at), true) = (at, texts.is_empty()) {
        fields.faults.add(at, "partitions is for stages with outputs");
    }
    for (place, (text, at)) in texts.iter().enumerate() {
        if let Some(rule) = file_name(text) {
            fields.faults.add(*at, format!("outputs: {rule}"));
        } else if text.contains(PARTITION) != partitions.is_some() {
            let rule = format!("an output contains {PARTITION} if, and only if, its stage has partitions");
            fields.faults.add(*at, rule);
        } else if texts[..place].iter().any(|(other, _)| other == text) {
            fields.faults.add(*at, format!("'{text}' is named twice"));
        } else if let Some((other, _)) = texts[..place].iter().find(|(other, _)| flat(other) == flat(text)) {
            // Readers find all outputs of a task in one directory.
            fields.faults.add(*at, format!("'{text}' and '{other}' have the same name for readers, '{}'", flat(text)));
        }
    }
    (texts.into_iter().map(|(text, _)| text.to_owned()).collect(), partitions)
}

/// Reads the constraints. Tasks of a stage start and end while it runs, so constraints on the location of other tasks
/// are not accepted.
fn rules_on_agents(fields: &mut Fields<'_, '_>) -> Vec<Constraint> {
    let at = fields.take("constraints").map(|node| node.at);
    let constraints = constraints(fields);
    if let (Some(at), Some(other)) = (at, constraints.iter().find(|constraint| constraint.depends_on_other_tasks())) {
        fields.faults.add(at, format!("constraint '{other}': a stage can have equal, like and unlike"));
    }
    constraints
}

fn stdin(fields: &mut Fields<'_, '_>, input: &input::Draft<'_>) -> bool {
    let at = fields.take("stdin").map(|node| node.at);
    let stdin = fields.flag("stdin").unwrap_or(false);
    if let (Some(at), true, input::Draft::Ready(Input::Tasks(_) | Input::Range(_))) = (at, stdin, input) {
        fields.faults.add(at, "stdin is for stages whose input is files or outputs of stages");
    }
    stdin
}
