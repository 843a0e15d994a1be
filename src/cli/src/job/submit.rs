//! `tepui job submit`: submits jobs from files, or one from flags.
//!
//! Files are checked here first, so that none of several files is submitted if one is invalid.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use binpack::job::{self, Syntax};
use serde_json::{Map, Value, json};

use super::ServiceArgs;
use super::files::{File, read_all, submit};
use super::model::View;
use super::show::waiting;
use crate::read::print;
use crate::service::{self, Service};
use crate::waiting::WaitExplanation;

/// Interval of requests for the state of a job whose end the command waits for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Beginning of the framework's reasons that say that a job may never run.
const WARNING: &str = "warning: ";
/// Number of jobs whose warnings are requested: each answer has all tasks of its job.
const WARNED_MAX: usize = 20;
/// Number of requests after which the master is asked why a job does not run: by then it knows that the framework wants
/// offers.
const SETTLED: u32 = 5;

/// Flags of `tepui job submit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// Job files in TOML, or in JSON if their names end with .json; - is standard input, in TOML
    #[arg(value_name = "FILE", required_unless_present = "name", conflicts_with = "name")]
    files: Vec<PathBuf>,
    /// Wait until all of these jobs have ended, or run as requested; fail if one fails
    #[arg(long, short)]
    wait: bool,
    /// Name of a job that is given by flags
    #[arg(long, help_heading = "A job by flags")]
    name: Option<String>,
    /// Shell command of the job
    #[arg(long, requires = "name", help_heading = "A job by flags")]
    command: Option<String>,
    /// batch, array, service or gang
    #[arg(long, requires = "name", help_heading = "A job by flags")]
    kind: Option<String>,
    /// Number of tasks
    #[arg(long, requires = "name", help_heading = "A job by flags")]
    count: Option<u32>,
    /// Cores of each task
    #[arg(long, requires = "name", help_heading = "A job by flags", allow_negative_numbers = true)]
    cpus: Option<f64>,
    /// Megabytes of memory of each task
    #[arg(long, requires = "name", help_heading = "A job by flags", allow_negative_numbers = true)]
    mem: Option<f64>,
    /// Ports of each task
    #[arg(long, requires = "name", help_heading = "A job by flags")]
    ports: Option<u32>,
    /// An environment variable
    #[arg(long, requires = "name", help_heading = "A job by flags", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A constraint, such as "rack equal r1"
    #[arg(long, requires = "name", help_heading = "A job by flags", value_name = "RULE")]
    constraint: Vec<String>,
    /// A program and its arguments, instead of a command
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = ["command", "files"])]
    program: Vec<String>,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let files = match &args.name {
        Some(name) => vec![by_flags(name, args)?],
        None => read_all(&args.files, |name, text, syntax| {
            Ok(job::read(name, text, syntax)?.into_iter().map(|job| job.name).collect())
        })?,
    };
    let service = args.service.find().await?;
    let submitted = submit(&service, &files).await?;
    if args.service.json {
        print(&serde_json::to_string_pretty(&submitted)?)?;
    } else {
        for one in &submitted {
            print(&summary(one))?;
        }
    }
    let names: Vec<&String> = files.iter().flat_map(|f| &f.jobs).collect();
    let mut warnings = Warnings::default();
    for name in names.iter().take(WARNED_MAX) {
        // The jobs are submitted: a failure to explain them is not one of the command.
        if let Ok(view) = view(&service, name).await {
            warnings.print(&view);
        }
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    wait(&service, &names, &args.service, warnings).await
}

/// The warnings among the framework's reasons why jobs wait, on standard error. Each is printed once.
#[derive(Debug, Default)]
struct Warnings {
    printed: Vec<String>,
}

impl Warnings {
    fn print(&mut self, view: &View) {
        let mut reasons: Vec<String> = view.why.iter().filter(|why| why.starts_with(WARNING)).cloned().collect();
        if reasons.is_empty() {
            reasons.extend(view.impossible.iter().map(|own| format!("{WARNING}{}", own.reason)));
        }
        for reason in reasons {
            let line = format!("{}: {reason}", view.summary.name);
            if !self.printed.contains(&line) {
                stdio::err!("{line}");
                self.printed.push(line);
            }
        }
    }
}

/// Returns a job as the framework describes it.
async fn view(service: &Service, name: &str) -> Result<View> {
    serde_json::from_value(service.get(&service::path(name, "")).await?).context("the framework's answer")
}

/// Returns the job that flags describe, as a file would.
fn by_flags(name: &str, args: &Args) -> Result<File> {
    let mut fields = Map::new();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value);
        }
    };
    set("name", Some(json!(name)));
    set("command", args.command.as_ref().map(|c| json!(c)));
    set("program", (!args.program.is_empty()).then(|| json!(args.program)));
    set("kind", args.kind.as_ref().map(|k| json!(k)));
    set("count", args.count.map(|c| json!(c)));
    set("cpus", args.cpus.map(|c| json!(c)));
    set("mem", args.mem.map(|m| json!(m)));
    set("ports", args.ports.map(|p| json!(p)));
    let constraints: Vec<Vec<&str>> = args.constraint.iter().map(|c| c.splitn(3, ' ').collect()).collect();
    set("constraints", (!constraints.is_empty()).then(|| json!(constraints)));
    let mut env = Map::new();
    for variable in &args.env {
        let Some((name, value)) = variable.split_once('=') else { bail!("--env={variable}: write it as NAME=VALUE") };
        env.insert(name.to_owned(), json!(value));
    }
    set("env", (!env.is_empty()).then_some(Value::Object(env)));
    let text = Value::Object(fields).to_string();
    let read = job::read("flags", &text, Syntax::Json);
    // Line and column of a generated file are meaningless.
    let rules = |faults: job::Faults| faults.0.into_iter().map(|f| f.rule).collect::<Vec<_>>().join("\n");
    match read {
        Ok(_) => Ok(File { name: "flags".into(), text, syntax: Syntax::Json, jobs: vec![name.to_owned()] }),
        Err(faults) => bail!("nothing was submitted:\n{}", rules(faults)),
    }
}

/// Describes the result of a job's submission in words.
fn summary(submitted: &Value) -> String {
    let name = submitted["name"].as_str().unwrap_or_default();
    let version = &submitted["version"];
    match submitted["taken"].as_str().unwrap_or_default() {
        "updated" => format!("{name}: updated to version {version}"),
        "scaled" => format!("{name}: number of tasks changed"),
        "unchanged" => format!("{name}: unchanged"),
        _ => format!("{name}: submitted"),
    }
}

/// Waits until all jobs have ended, or run as requested.
///
/// # Errors
/// The framework does not answer, or a job cannot run on the present agents.
async fn wait(service: &Service, names: &[&String], args: &ServiceArgs, mut warnings: Warnings) -> Result<ExitCode> {
    let mut failed = false;
    for name in names {
        let (mut looks, mut is_asked) = (0, false);
        let state = loop {
            let view = view(service, name).await?;
            let summary = &view.summary;
            match summary.state.as_str() {
                "finished" | "failed" | "stopped" => break summary.state.clone(),
                "running" if summary.kind == "service" => break summary.state.clone(),
                _ => {}
            }
            if summary.tasks.live > 0 {
                is_asked = true;
            } else if !is_asked && looks == SETTLED {
                is_asked = true;
                let waiting = waiting(service, &args.master, &summary.need).await;
                if let Some(why) = waiting.and_then(|waiting| impossible(&view, waiting)) {
                    bail!("{name} cannot run: {why}. It stays submitted; `tepui job stop {name}` removes it");
                }
                warnings.print(&view);
            }
            looks += 1;
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        failed |= state == "failed" || state == "stopped";
        if !args.json {
            print(&format!("{name}: {state}"))?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns why a job can run on none of the present agents; `None` if it can.
fn impossible(view: &View, waiting: WaitExplanation) -> Option<String> {
    // Nothing is known of agents that the framework does not know.
    let own = view.impossible.as_ref().filter(|own| own.agents >= waiting.agents).map(|own| own.reason.clone());
    waiting.impossible.or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frameworks_reason_counts_if_it_knows_all_agents() {
        let view: View = serde_json::from_value(json!({ "impossible": { "reason": "no rack", "agents": 2 } })).unwrap();
        let waiting = |agents| WaitExplanation { reasons: Vec::new(), impossible: None, agents };
        assert_eq!(impossible(&view, waiting(2)).as_deref(), Some("no rack"));
        assert_eq!(impossible(&view, waiting(3)), None);
        assert_eq!(impossible(&View::default(), waiting(0)), None);
    }
}
