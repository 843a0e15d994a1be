//! Parses the fields that all kinds of jobs have: names, amounts, programs, variables, files, retries.
//!
//! Each framework decides which of them a job has.

use std::time::Duration;

use resources::Amount;

use super::fields::Fields;
use super::tree::{Node, Value};
use crate::constraint::Constraint;
use crate::place::Policy;
use crate::{Need, Restart, Run, Uri};

/// Maximum length of a job's name in bytes; task ids contain it.
pub const NAME_MAX: usize = 128;
/// Maximum amount of a resource that a task can need, in whole units. No machine has more.
const AMOUNT_MAX: f64 = 1e9;
/// Maximum number of ports of a task.
const PORTS_MAX: i64 = 1_000;

/// Parses the name of a job or of a part of it; `what` says which, with its article. For an invalid name it reports a
/// fault and returns an empty text.
pub fn name(fields: &mut Fields<'_, '_>, what: &str) -> String {
    let start = fields.at();
    let before = fields.faults.len();
    let Some((name, at)) = fields.text("name") else {
        if fields.faults.len() == before {
            fields.faults.add(start, format!("{what} needs a name"));
        }
        // The rest is still parsed, so that all faults are reported at once.
        return String::new();
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !first || !name.chars().all(allowed) || name.len() > NAME_MAX {
        let rule = format!(
            "'{name}' is not a name of {what}: letters, digits, '.', '_' and '-', the first a letter or digit, \
             {NAME_MAX} at most"
        );
        fields.faults.add(at, rule);
    }
    name.to_owned()
}

/// Parses the amounts that a task needs. Amounts that no machine has are rejected here; whether an agent of this
/// cluster has them is known only when offers arrive.
pub fn need(fields: &mut Fields<'_, '_>) -> Need {
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

/// Parses the program of a task: a `command`, or a list in the field `list`.
pub fn run(fields: &mut Fields<'_, '_>, what: &str, list: &'static str, has_image: bool) -> Run {
    let start = fields.at();
    let before = fields.faults.len();
    let command = fields.text("command");
    let has_program = fields.take(list).map(|node| node.at);
    let program = fields.texts(list);
    let names_none = program.first().is_none_or(|(first, _)| first.is_empty());
    match (command, has_program) {
        (Some(_), Some(at)) => fields.faults.add(at, format!("{what} has either a command or a {list}, not both")),
        (None, Some(at)) if names_none && fields.faults.len() == before => {
            fields.faults.add(at, format!("{list} is a list of a program and its arguments; it names none"));
        }
        (None, None) if !has_image && fields.faults.len() == before => {
            fields.faults.add(start, format!("{what} needs a command, a {list} (a list, without a shell) or an image"));
        }
        _ => {}
    }
    match command {
        Some((command, _)) => Run::Command(command.to_owned()),
        None if has_program.is_some() => Run::Program(program.iter().map(|(text, _)| (*text).to_owned()).collect()),
        None => Run::Image,
    }
}

/// Returns the rule that the name of an environment variable breaks; `None` if it is valid.
pub fn env_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a variable needs a name")
    } else if name.contains(['=', '\0']) {
        Some("a variable's name has no '=' and no NUL character")
    } else {
        None
    }
}

/// Parses the field `uris`.
pub fn uris(fields: &mut Fields<'_, '_>) -> Vec<Uri> {
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
        let Some(mut uri) = Fields::of("a URI that is not text", node, fields.faults) else { continue };
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

/// Parses the field `constraints`.
pub fn constraints(fields: &mut Fields<'_, '_>) -> Vec<Constraint> {
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

/// Parses the field `policy`.
pub fn policy(fields: &mut Fields<'_, '_>) -> Option<Policy> {
    let (text, at) = fields.text("policy")?;
    match text.parse() {
        Ok(policy) => Some(policy),
        Err(error) => {
            fields.faults.add(at, format!("{error}"));
            None
        }
    }
}

/// Parses the field `restart`.
pub fn restart(fields: &mut Fields<'_, '_>) -> Restart {
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

/// Parses the field `time_limit`.
pub fn time_limit(fields: &mut Fields<'_, '_>) -> Option<Duration> {
    let at = fields.at();
    let time = fields.time("time_limit")?;
    if time.is_zero() {
        fields.faults.add(at, "time_limit must be above 0: for how long a task may run");
        return None;
    }
    Some(time)
}
