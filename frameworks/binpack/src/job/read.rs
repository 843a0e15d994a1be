//! Parses job files: the fields of a job, their types and rules. A file with one fault is rejected as a whole.

use std::time::Duration;

use jobs::file::common::{constraints, env_name, name, need, policy, restart, run, time_limit, uris};
use jobs::file::{Faults, Fields, Syntax};

use super::{GATHER, GangEnd, Job, Kind, Update, container, health};

/// Maximum number of tasks of one job.
pub const COUNT_MAX: u32 = 100_000;

/// Parses the jobs of a file. `file` is the name of the file in faults.
///
/// # Errors
/// Returns all faults of the file, each with line, column and rule.
pub fn read(file: &str, text: &str, syntax: Syntax) -> Result<Vec<Job>, Faults> {
    jobs::file::read(file, text, syntax, "a name and a command", |fields| {
        let job = job(fields);
        (job.name.clone(), job)
    })
}

/// Parses one job.
fn job(mut fields: Fields<'_, '_>) -> Job {
    let start = fields.at();
    let name = name(&mut fields, "a job");
    let kind = kind(&mut fields);
    let count = count(&mut fields, kind);
    let need = need(&mut fields);
    let image = fields.text("image").map(|(image, _)| image.to_owned());
    let container = container::read(&mut fields, image.is_some(), need.0[4] / 1_000);
    let run = run(&mut fields, "a job", "program", image.is_some());
    let job = Job {
        name,
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
    job
}

/// Returns a hint if the field `name` exists only for other kinds of jobs.
fn elsewhere(name: &str, kind: Kind) -> Option<String> {
    let wanted = match name {
        "update" => "service",
        "gather" | "ends" => "gang",
        "time_limit" => return Some("time_limit is not for a service, which does not end".to_owned()),
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

/// Parses the kind of a job. Without one, a job of several tasks is an array.
fn kind(fields: &mut Fields<'_, '_>) -> Kind {
    let Some((text, at)) = fields.text("kind") else {
        return if fields.is_above("count", 1) { Kind::Array } else { Kind::Batch };
    };
    let kinds = [Kind::Batch, Kind::Array, Kind::Service, Kind::Gang];
    kinds.into_iter().find(|k| k.name() == text).unwrap_or_else(|| {
        fields.faults.add(at, format!("'{text}' is not a kind of job; take batch, array, service or gang"));
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
