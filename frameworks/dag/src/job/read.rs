//! Reads a job file: the fields of a job, and the references between its stages. A file with one fault is rejected as a
//! whole.

use std::collections::BTreeMap;

use jobs::file::common::name;
use jobs::file::{Faults, Fields, Syntax, Value};

use super::stage::{self, Draft};
use super::{Class, Grouping, Input, Job, Stage, StagesInput, graph, input, keep};

/// Maximum number of stages of a job.
pub const STAGES_MAX: usize = 1_000;
/// Largest weight of a job.
const WEIGHT_MAX: f64 = 1e6;

/// Reads the jobs of a file. Faults refer to the file by the name `file`.
///
/// # Errors
/// All faults of the file, each with line, column and rule.
pub fn read(file: &str, text: &str, syntax: Syntax) -> Result<Vec<Job>, Faults> {
    jobs::file::read(file, text, syntax, "a name and stages", |fields| {
        let job = job(fields);
        (job.name.clone(), job)
    })
}

fn job(mut fields: Fields<'_, '_>) -> Job {
    let start = fields.at();
    let name = name(&mut fields, "a job");
    let shared = fields.text("shared").map(|(path, at)| {
        if !path.starts_with('/') {
            fields.faults.add(at, "shared must be an absolute path, the same on all agents");
        } else if path.trim_end_matches('/').is_empty() {
            fields.faults.add(at, "shared must be a directory of its own, and not the root");
        }
        path.trim_end_matches('/').to_owned()
    });
    let keep = keep::read(&mut fields);
    let priority = match fields.text("priority") {
        None | Some(("normal", _)) => Class::Normal,
        Some(("low", _)) => Class::Low,
        Some(("high", _)) => Class::High,
        Some((text, at)) => {
            fields.faults.add(at, format!("priority must be low, normal or high, and this is \"{text}\""));
            Class::Normal
        }
    };
    let deadline = fields.time("deadline");
    let weight = fields.number_within("weight", 1e-3, WEIGHT_MAX).unwrap_or(1.0);
    let stages = stages(&mut fields, start);
    fields.finish(|name| {
        let of_stages = ["command", "argv", "program", "tasks", "input", "after", "outputs", "cpus", "mem", "retries"];
        of_stages
            .contains(&name)
            .then(|| format!("'{name}' is a field of a stage: it must follow [[job.stage]] or [[stage]]"))
    });
    Job { name, stages, shared, keep, priority, deadline, weight }
}

/// Reads all stages and resolves the names of other stages.
fn stages(fields: &mut Fields<'_, '_>, start: usize) -> Vec<Stage> {
    // A single stage may be written as a table.
    let one = fields.take("stage").filter(|node| matches!(node.value, Value::Table(_)));
    let nodes = match one {
        Some(node) => std::slice::from_ref(node),
        None => fields.list("stage"),
    };
    if nodes.is_empty() {
        fields.faults.add(start, "a job needs stages: write [[job.stage]] with a name and a command");
    }
    if let Some(node) = nodes.get(STAGES_MAX) {
        fields.faults.add(node.at, format!("a job has at most {STAGES_MAX} stages"));
    }
    let mut drafts = Vec::new();
    for node in nodes.iter().take(STAGES_MAX) {
        let Some(mut stage) = Fields::of("a stage", node, fields.faults) else { continue };
        drafts.push(stage::read(&mut stage));
        stage.finish(|name| {
            let of_job = ["shared", "keep", "priority", "deadline", "weight"];
            of_job.contains(&name).then(|| format!("'{name}' is a field of a job: it must precede the stages"))
        });
    }
    linked(drafts, fields)
}

/// Resolves names, and checks the references between stages.
fn linked(drafts: Vec<Draft<'_>>, fields: &mut Fields<'_, '_>) -> Vec<Stage> {
    let mut places = BTreeMap::new();
    for (place, draft) in drafts.iter().enumerate() {
        if places.insert(draft.stage.name.clone(), place).is_some() {
            fields.faults.add(draft.at, format!("a second stage has the name '{}'", draft.stage.name));
        }
    }
    let find = |name: &str| {
        places.get(name).copied().ok_or_else(|| {
            let known = places.keys().map(|known| (strsim::jaro_winkler(known, name), known));
            match known.max_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((alike, known)) if alike > 0.75 => format!("there is no stage '{name}'; did you mean '{known}'?"),
                _ => format!("there is no stage '{name}'"),
            }
        })
    };
    let mut at = Vec::new();
    let mut stages = Vec::new();
    for draft in drafts {
        let mut stage = draft.stage;
        for (name, place) in &draft.after {
            match find(name) {
                Ok(before) => stage.after.push(before),
                Err(rule) => fields.faults.add(*place, rule),
            }
        }
        stage.input = match draft.input {
            input::Draft::Ready(input) => input,
            input::Draft::Stages { names, by, size, at } => {
                let mut sources = Vec::new();
                for (name, place) in names {
                    match find(name) {
                        Ok(source) => sources.push(source),
                        Err(rule) => fields.faults.add(place, rule),
                    }
                }
                if by == Grouping::Task && sources.len() > 1 {
                    fields.faults.add(at, "by = \"task\" is for one stage");
                }
                stage.after.extend(&sources);
                Input::Stages(StagesInput { stages: sources, by, size })
            }
        };
        stage.after.sort_unstable();
        stage.after.dedup();
        at.push(draft.at);
        stages.push(stage);
    }
    check_sources(&stages, &at, fields);
    in_order(stages, &at, fields)
}

/// Checks that the stages which a stage reads have outputs, all with the same number of partitions.
fn check_sources(stages: &[Stage], at: &[usize], fields: &mut Fields<'_, '_>) {
    for (stage, at) in stages.iter().zip(at) {
        let Input::Stages(input) = &stage.input else { continue };
        let mut partitions = Vec::new();
        for source in input.stages.iter().filter_map(|source| stages.get(*source)) {
            if source.outputs.is_empty() {
                let rule = format!("stage '{}' reads stage '{}', which has no outputs", stage.name, source.name);
                fields.faults.add(*at, rule);
            }
            if input.by == Grouping::Partition && source.partitions.is_none() {
                let rule = format!("stage '{}' reads partitions of '{}', which has none", stage.name, source.name);
                fields.faults.add(*at, rule);
            }
            partitions.extend(source.partitions);
        }
        if input.by == Grouping::Partition && partitions.windows(2).any(|two| two[0] != two[1]) {
            fields.faults.add(*at, format!("stage '{}' reads stages of different numbers of partitions", stage.name));
        }
    }
}

/// Sorts the stages so that each follows those that it waits for, and otherwise as in the file.
fn in_order(stages: Vec<Stage>, at: &[usize], fields: &mut Fields<'_, '_>) -> Vec<Stage> {
    let after: Vec<Vec<usize>> = stages.iter().map(|stage| stage.after.clone()).collect();
    let order = match graph::order(&after) {
        Ok(order) => order,
        Err(circle) => {
            let mut names: Vec<&str> = circle.iter().map(|&stage| stages[stage].name.as_str()).collect();
            names.push(names[0]);
            let place = circle.first().map_or(0, |&stage| at[stage]);
            fields.faults.add(place, format!("stages wait for each other: {}", names.join(" after ")));
            return stages;
        }
    };
    let mut places = vec![0; stages.len()];
    for (place, &stage) in order.iter().enumerate() {
        places[stage] = place;
    }
    let moved = |list: &mut Vec<usize>| list.iter_mut().for_each(|stage| *stage = places[*stage]);
    let mut sorted: Vec<(usize, Stage)> =
        stages.into_iter().enumerate().map(|(at, stage)| (places[at], stage)).collect();
    sorted.sort_by_key(|(place, _)| *place);
    let mut stages: Vec<Stage> = sorted.into_iter().map(|(_, stage)| stage).collect();
    for stage in &mut stages {
        moved(&mut stage.after);
        stage.after.sort_unstable();
        if let Input::Stages(input) = &mut stage.input {
            moved(&mut input.stages);
        }
    }
    stages
}
