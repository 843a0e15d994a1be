//! Parses a job file as a whole: its syntax, its size, the places of its jobs, and that job names are unique.
//!
//! The framework parses the jobs themselves.

use std::collections::BTreeSet;

use super::fault::{Collector, Faults};
use super::fields::Fields;
use super::tree::{Field, Node, Value, from_json, from_toml};

/// Maximum number of jobs in a file.
pub const JOBS_MAX: usize = 1_000;
/// Maximum size of a file in bytes.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Syntax of a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `[[job]]` tables.
    Toml,
    /// One job, a list of jobs, or `{"job": [...]}`.
    Json,
}

impl Syntax {
    /// Returns the syntax by the file's name: JSON if it ends with `.json`, else TOML.
    pub fn of_file(name: &str) -> Syntax {
        if name.to_ascii_lowercase().ends_with(".json") { Syntax::Json } else { Syntax::Toml }
    }
}

/// Parses the jobs of a file, each with `job`, which returns its name as well. `file` is the name for faults; `needs`
/// says what a job must have at least.
///
/// # Errors
/// Returns all faults of the file, each with line, column and rule.
pub fn read<J>(
    file: &str,
    text: &str,
    syntax: Syntax,
    needs: &str,
    mut job: impl FnMut(Fields<'_, '_>) -> (String, J),
) -> Result<Vec<J>, Faults> {
    let mut faults = Collector::new(file, text);
    if text.len() > FILE_BYTES_MAX {
        faults.add(0, format!("a job file has at most {FILE_BYTES_MAX} bytes, and this one has {}", text.len()));
        return faults.finish().map(|()| Vec::new());
    }
    let document = match syntax {
        Syntax::Toml => from_toml(text),
        Syntax::Json => from_json(text),
    };
    let document = match document {
        Ok(document) => document,
        Err((at, rule)) => {
            faults.add(at, rule);
            return faults.finish().map(|()| Vec::new());
        }
    };
    let jobs = jobs(&document, needs, &mut job, &mut faults);
    faults.finish()?;
    Ok(jobs)
}

/// Returns all jobs of the document that can be parsed, and records all faults.
fn jobs<'a, J>(
    document: &'a Node,
    needs: &str,
    job: &mut impl FnMut(Fields<'_, '_>) -> (String, J),
    faults: &mut Collector<'a>,
) -> Vec<J> {
    let nodes = match job_nodes(document, faults) {
        Some(nodes) if nodes.is_empty() => {
            faults.add(document.at, format!("there is no job; write [[job]] with {needs}"));
            return Vec::new();
        }
        Some(nodes) => nodes,
        None => return Vec::new(),
    };
    if nodes.len() > JOBS_MAX {
        faults.add(nodes[JOBS_MAX].at, format!("a file has at most {JOBS_MAX} jobs"));
    }
    let mut names = BTreeSet::new();
    let mut jobs = Vec::new();
    for node in nodes.into_iter().take(JOBS_MAX) {
        let Some(fields) = Fields::of("a job", node, faults) else { continue };
        let (name, job) = job(fields);
        if !names.insert(name.clone()) {
            faults.add(node.at, format!("a second job has the name '{name}'"));
        }
        jobs.push(job);
    }
    jobs
}

/// Returns the nodes of the jobs: under `job` (or `jobs`), in a list, or the whole document.
fn job_nodes<'a>(document: &'a Node, faults: &mut Collector<'a>) -> Option<Vec<&'a Node>> {
    let fields = match &document.value {
        Value::List(list) => return Some(list.iter().collect()),
        Value::Table(fields) => fields,
        other => {
            faults.add(document.at, format!("a job file holds jobs, and this is {}", other.what()));
            return None;
        }
    };
    let is_list = |f: &&Field| f.name == "job" || f.name == "jobs";
    let Some(list) = fields.iter().find(is_list) else {
        // A single job has no heading; an empty document has no job.
        return Some(if fields.is_empty() { Vec::new() } else { vec![document] });
    };
    for other in fields.iter().filter(|f| !is_list(f)) {
        faults.add(other.at, format!("'{}' is outside of a job; fields of a job follow [[job]]", other.name));
    }
    match &list.node.value {
        Value::List(nodes) => Some(nodes.iter().collect()),
        Value::Table(_) => Some(vec![&list.node]),
        other => {
            faults.add(list.node.at, format!("'{}' must be a list of jobs, and this is {}", list.name, other.what()));
            None
        }
    }
}
