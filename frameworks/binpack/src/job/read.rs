//! Reading a job file: the fields, their types and rules. A file with one fault is refused as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use resources::Amount;

use super::fault::{Collector, Faults};
use super::fields::Fields;
use super::tree::{Field, Node, Value, from_json, from_toml};
use super::{GATHER, GangEnd, Job, Kind, Restart, Run, Update, Uri, container, health};
use crate::Need;
use crate::constraint::Constraint;

/// The most jobs in one file.
pub const JOBS_MAX: usize = 1_000;
/// The most tasks of one job.
pub const COUNT_MAX: u32 = 100_000;
/// The largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// The longest name of a job; task ids are made of it.
const NAME_MAX: usize = 128;
/// The most of anything that a task can need, in whole units. No machine has more.
const AMOUNT_MAX: f64 = 1e9;
/// The most ports of a task.
const PORTS_MAX: i64 = 1_000;

/// How a job file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `[[job]]` tables.
    Toml,
    /// One job, a list of jobs, or `{"job": [...]}`.
    Json,
}

impl Syntax {
    /// By the file's name: JSON if it ends with `.json`, else TOML.
    pub fn of_file(name: &str) -> Syntax {
        if name.to_ascii_lowercase().ends_with(".json") { Syntax::Json } else { Syntax::Toml }
    }
}

/// Reads the jobs of a file. `file` is the name for faults.
///
/// # Errors
/// Everything that is wrong with it, each with line, column and rule.
pub fn read(file: &str, text: &str, syntax: Syntax) -> Result<Vec<Job>, Faults> {
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
    let jobs = jobs(&document, &mut faults);
    faults.finish()?;
    Ok(jobs)
}

/// All jobs of the document that can be read, and all faults of it.
fn jobs<'a>(document: &'a Node, faults: &mut Collector<'a>) -> Vec<Job> {
    let nodes = match job_nodes(document, faults) {
        Some(nodes) if nodes.is_empty() => {
            faults.add(document.at, "there is no job; write [[job]] with a name and a command");
            return Vec::new();
        }
        Some(nodes) => nodes,
        None => return Vec::new(),
    };
    if nodes.len() > JOBS_MAX {
        faults.add(nodes[JOBS_MAX].at, format!("a file has at most {JOBS_MAX} jobs"));
    }
    let mut names = BTreeMap::new();
    let mut jobs = Vec::new();
    for node in nodes.into_iter().take(JOBS_MAX) {
        let Some(fields) = Fields::of("a job", node, faults) else { continue };
        let Some(job) = job(fields) else { continue };
        if names.insert(job.name.clone(), node.at).is_some() {
            faults.add(node.at, format!("a second job has the name '{}'", job.name));
        }
        jobs.push(job);
    }
    jobs
}

/// Where the jobs are: under `job` (or `jobs`), in a list, or the whole document.
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
        // A single job stands without a heading; a document without anything has none.
        return Some(if fields.is_empty() { Vec::new() } else { vec![document] });
    };
    for other in fields.iter().filter(|f| !is_list(f)) {
        faults.add(other.at, format!("'{}' stands outside of a job; fields of a job follow [[job]]", other.name));
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

/// One job; `None` if it has no name, and then there is a fault.
fn job(mut fields: Fields<'_, '_>) -> Option<Job> {
    let start = fields.at();
    let name = name(&mut fields);
    let kind = kind(&mut fields);
    let count = count(&mut fields, kind);
    let need = need(&mut fields);
    let image = fields.text("image").map(|(image, _)| image.to_owned());
    let container = container::read(&mut fields, image.is_some(), need.0[4] / 1_000);
    let run = run(&mut fields, image.is_some());
    let job = Job {
        name: name?,
        kind,
        count,
        run,
        need,
        env: fields.map("env", env_name),
        labels: fields.map("labels", |name| name.is_empty().then_some("a label needs a name")),
        uris: uris(&mut fields),
        user: fields.text("user").map(|(user, _)| user.to_owned()),
        image,
        container,
        constraints: constraints(&mut fields),
        policy: policy(&mut fields),
        priority: fields.whole("priority", -1_000_000, 1_000_000).map_or(0, |p| i32::try_from(p).unwrap_or(0)),
        retries: if kind == Kind::Service { 0 } else { small(fields.whole("retries", 0, 1_000), 0) },
        health: health::read(&mut fields, need.0[4] / 1_000),
        restart: restart(&mut fields),
        update: if kind == Kind::Service { update(&mut fields) } else { Update::default() },
        gather: if kind == Kind::Gang { gather(&mut fields, start) } else { GATHER },
        ends: if kind == Kind::Gang { ends(&mut fields) } else { GangEnd::All },
        time_limit: if kind == Kind::Service { None } else { time_limit(&mut fields) },
        kill_grace: fields.time("kill_grace"),
    };
    fields.finish(|name| elsewhere(name, kind));
    Some(job)
}

/// Fields that only other kinds of jobs have.
fn elsewhere(name: &str, kind: Kind) -> Option<String> {
    let wanted = match name {
        "update" => "service",
        "gather" | "ends" => "gang",
        "time_limit" => return Some("time_limit is not for a service: it has no end".to_owned()),
        "retries" => {
            return Some("retries is not for a service: it is started again for as long as it exists".to_owned());
        }
        _ => return None,
    };
    Some(format!("{name} is for kind = \"{wanted}\" only, and this is kind = \"{kind}\""))
}

fn small(number: Option<i64>, default: u32) -> u32 {
    number.and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
}

fn name(fields: &mut Fields<'_, '_>) -> Option<String> {
    let start = fields.at();
    let before = fields.faults.len();
    let Some((name, at)) = fields.text("name") else {
        if fields.faults.len() == before {
            fields.faults.add(start, "a job needs a name");
        }
        // The rest is still looked at, so that all faults are shown at once.
        return Some(String::new());
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !first || !name.chars().all(allowed) || name.len() > NAME_MAX {
        let rule = format!(
            "'{name}' is no name of a job: letters, digits, '.', '_' and '-', the first a letter or digit, \
             {NAME_MAX} at most"
        );
        fields.faults.add(at, rule);
    }
    Some(name.to_owned())
}

/// The kind; without one, a job of several tasks is an array.
fn kind(fields: &mut Fields<'_, '_>) -> Kind {
    let Some((text, at)) = fields.text("kind") else {
        return if fields.is_above("count", 1) { Kind::Array } else { Kind::Batch };
    };
    let kinds = [Kind::Batch, Kind::Array, Kind::Service, Kind::Gang];
    kinds.into_iter().find(|k| k.name() == text).unwrap_or_else(|| {
        fields.faults.add(at, format!("'{text}' is no kind of job; take batch, array, service or gang"));
        Kind::Batch
    })
}

fn count(fields: &mut Fields<'_, '_>, kind: Kind) -> u32 {
    let least = if kind == Kind::Service { 0 } else { 1 };
    let at = fields.take("count").map(|node| node.at);
    let count = fields.whole("count", least, i64::from(COUNT_MAX));
    if let (Kind::Batch, Some(at), Some(2..)) = (kind, at, count) {
        fields.faults.add(at, "a job of the kind batch is one task; for more, write kind = \"array\", or no kind");
    }
    small(count, 1)
}

/// Amounts that no machine has are refused here; what no agent of this cluster has is seen when offers come.
fn need(fields: &mut Fields<'_, '_>) -> Need {
    let mut amount = |name: &'static str, default: f64| {
        let Some((number, at)) = fields.number(name) else { return Amount::from_f64(default).thousandths() };
        let amount = Amount::from_f64(number);
        if number > AMOUNT_MAX {
            fields.faults.add(at, format!("{name} must be at most {AMOUNT_MAX}, and this is {number}"));
        } else if amount.is_negative() || (default > 0.0 && amount.is_zero()) {
            let least = if default > 0.0 { "above 0, 0.001 at least" } else { "0 or more" };
            fields.faults.add(at, format!("{name} must be {least}, and this is {number}"));
        } else if name == "gpus" && !amount.is_whole() {
            fields.faults.add(at, format!("gpus must be a whole number, and this is {number}"));
        }
        amount.thousandths()
    };
    let [cpus, mem, disk, gpus] =
        [("cpus", 0.1), ("mem", 32.0), ("disk", 0.0), ("gpus", 0.0)].map(|(n, d)| amount(n, d));
    let ports = fields.whole("ports", 0, PORTS_MAX).unwrap_or(0);
    Need([cpus, mem, disk, gpus, ports * 1_000])
}

fn run(fields: &mut Fields<'_, '_>, has_image: bool) -> Run {
    let start = fields.at();
    let before = fields.faults.len();
    let command = fields.text("command");
    let has_program = fields.take("program").map(|node| node.at);
    let program = fields.texts("program");
    let names_none = program.first().is_none_or(|(first, _)| first.is_empty());
    match (command, has_program) {
        (Some(_), Some(at)) => fields.faults.add(at, "a job has either a command or a program, not both"),
        (None, Some(at)) if names_none && fields.faults.len() == before => {
            fields.faults.add(at, "program is a list of a program and its arguments; it names none");
        }
        (None, None) if !has_image && fields.faults.len() == before => {
            fields.faults.add(start, "a job needs a command, a program (a list, without a shell) or an image");
        }
        _ => {}
    }
    match command {
        Some((command, _)) => Run::Command(command.to_owned()),
        None if has_program.is_some() => Run::Program(program.iter().map(|(text, _)| (*text).to_owned()).collect()),
        None => Run::Image,
    }
}

fn env_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a variable needs a name")
    } else if name.contains(['=', '\0']) {
        Some("a variable's name has no '=' and no NUL character")
    } else {
        None
    }
}

fn uris(fields: &mut Fields<'_, '_>) -> Vec<Uri> {
    let plain =
        |value: &str| Uri { value: value.to_owned(), extract: true, executable: false, cache: false, output: None };
    let mut uris = Vec::new();
    for node in fields.list("uris") {
        if let Value::Text(text) = &node.value
            && !text.is_empty()
        {
            uris.push(plain(text));
            continue;
        }
        let Some(mut uri) = Fields::of("a URI that is no text", node, fields.faults) else { continue };
        let value = uri.text("value").map(|(value, _)| value.to_owned());
        if value.is_none() {
            uri.faults.add(node.at, "a URI needs a value");
        }
        uris.push(Uri {
            extract: uri.flag("extract").unwrap_or(true),
            executable: uri.flag("executable").unwrap_or(false),
            cache: uri.flag("cache").unwrap_or(false),
            output: uri.text("output").map(|(output, _)| output.to_owned()),
            ..plain(&value.unwrap_or_default())
        });
        uri.finish(|_| None);
    }
    uris
}

fn constraints(fields: &mut Fields<'_, '_>) -> Vec<Constraint> {
    let mut constraints = Vec::new();
    for node in fields.list("constraints") {
        let Value::List(words) = &node.value else {
            let what = node.value.what();
            let rule = format!("a constraint is a list such as [\"rack\", \"equal\", \"r1\"], and this is {what}");
            fields.faults.add(node.at, rule);
            continue;
        };
        let text = |node: &Node| match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Whole(number) => Some(number.to_string()),
            _ => None,
        };
        let texts: Option<Vec<String>> = words.iter().map(text).collect();
        let texts = texts.unwrap_or_default();
        let constraint = match texts.as_slice() {
            [field, operator] => Constraint::new(field, operator, None),
            [field, operator, value] => Constraint::new(field, operator, Some(value)),
            _ => {
                fields.faults.add(node.at, "a constraint has two or three texts: attribute, operator, value");
                continue;
            }
        };
        match constraint {
            Ok(constraint) => constraints.push(constraint),
            Err(error) => fields.faults.add(node.at, format!("constraint: {error}")),
        }
    }
    constraints
}

fn policy(fields: &mut Fields<'_, '_>) -> Option<crate::place::Policy> {
    let (text, at) = fields.text("policy")?;
    match text.parse() {
        Ok(policy) => Some(policy),
        Err(error) => {
            fields.faults.add(at, format!("{error}"));
            None
        }
    }
}

fn restart(fields: &mut Fields<'_, '_>) -> Restart {
    let default = Restart::default();
    let Some(node) = fields.take("restart") else { return default };
    let Some(mut fields) = Fields::of("restart", node, fields.faults) else { return default };
    let restart = Restart {
        first: fields.time("first").unwrap_or(default.first),
        factor: fields.number_within("factor", 1.0, 100.0).unwrap_or(default.factor),
        longest: fields.time("longest").unwrap_or(default.longest),
        steady: fields.time("steady").unwrap_or(default.steady),
    };
    fields.finish(|_| None);
    restart
}

fn update(fields: &mut Fields<'_, '_>) -> Update {
    let default = Update::default();
    let Some(node) = fields.take("update") else { return default };
    let Some(mut fields) = Fields::of("update", node, fields.faults) else { return default };
    let update = Update {
        min_healthy: fields.number_within("min_healthy", 0.0, 1.0).unwrap_or(default.min_healthy),
        max_over: fields.number_within("max_over", 0.0, 1.0).unwrap_or(default.max_over),
    };
    fields.finish(|_| None);
    update
}

fn time_limit(fields: &mut Fields<'_, '_>) -> Option<Duration> {
    let at = fields.at();
    let time = fields.time("time_limit")?;
    if time.is_zero() {
        fields.faults.add(at, "time_limit must be above 0: for how long a task may run");
        return None;
    }
    Some(time)
}

fn gather(fields: &mut Fields<'_, '_>, start: usize) -> Duration {
    let time = fields.time("gather").unwrap_or(GATHER);
    if time.is_zero() {
        fields.faults.add(start, "gather must be above 0: for how long a gang may hold offers");
    }
    time
}

fn ends(fields: &mut Fields<'_, '_>) -> GangEnd {
    match fields.text("ends") {
        None | Some(("all", _)) => GangEnd::All,
        Some(("first", _)) => GangEnd::First,
        Some((text, at)) => {
            fields.faults.add(at, format!("ends must be \"all\" or \"first\", and this is \"{text}\""));
            GangEnd::All
        }
    }
}
