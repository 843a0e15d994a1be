//! `tepui job submit`: jobs from files, or one from flags.
//!
//! Files are looked at here first, so that of several files none is submitted if one is wrong.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use binpack::job::{self, FILE_BYTES_MAX, Syntax};
use serde_json::{Map, Value, json};

use super::model::View;
use super::service::{self, Service, ServiceArgs};
use super::show::waiting;
use crate::read::print;
use crate::waiting::Waiting;

/// Time between two looks at a job whose end is waited for.
const LOOK: Duration = Duration::from_millis(200);
/// Number of looks after which the master is asked why a job does not run: it must know the framework's wish for
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
    /// What it runs, in a shell
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

/// A job file that was read, and found right.
struct File {
    name: String,
    text: String,
    syntax: Syntax,
    jobs: Vec<String>,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let files = match &args.name {
        Some(name) => vec![by_flags(name, args)?],
        None => read_all(&args.files)?,
    };
    let service = args.service.find().await?;
    let submitted = match files.as_slice() {
        [file] => submit(&service, file).await?,
        several => submit(&service, &together(several)?).await?,
    };
    if args.service.json {
        print(&serde_json::to_string_pretty(&submitted)?)?;
    } else {
        for one in &submitted {
            print(&told(one))?;
        }
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&String> = files.iter().flat_map(|f| &f.jobs).collect();
    wait(&service, &names, &args.service).await
}

/// Reads files, and reports the faults of all of them together.
fn read_all(paths: &[PathBuf]) -> Result<Vec<File>> {
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for path in paths {
        let (name, text) = text(path)?;
        let syntax = Syntax::of_file(&name);
        match job::read(&name, &text, syntax) {
            Ok(jobs) => files.push(File { jobs: jobs.into_iter().map(|j| j.name).collect(), name, text, syntax }),
            Err(wrong) => faults.push(wrong.to_string()),
        }
    }
    if faults.is_empty() { Ok(files) } else { bail!("nothing was submitted:\n{}", faults.join("\n")) }
}

fn text(path: &Path) -> Result<(String, String)> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        // One byte more than is allowed is enough to refuse it.
        std::io::stdin().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).context("standard input")?;
        ("standard input".to_owned(), bytes)
    } else {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read '{name}'"))?;
        (name, bytes)
    };
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    Ok((name, text))
}

/// The job that flags describe, as a file would.
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

/// Several files as one, so that all of their jobs are taken or none.
fn together(files: &[File]) -> Result<File> {
    let (mut all, mut jobs) = (Vec::new(), Vec::new());
    for file in files {
        let document: Value = match file.syntax {
            Syntax::Toml => plain(toml::from_str(&file.text).with_context(|| file.name.clone())?),
            Syntax::Json => serde_json::from_str(&file.text).with_context(|| file.name.clone())?,
        };
        let listed = ["job", "jobs"].into_iter().find_map(|name| document.get(name)).unwrap_or(&document);
        match listed {
            Value::Array(list) => all.extend(list.iter().cloned()),
            one => all.push(one.clone()),
        }
        jobs.extend(file.jobs.iter().cloned());
    }
    let name = files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join("+");
    Ok(File { name, text: json!({ "job": all }).to_string(), syntax: Syntax::Json, jobs })
}

/// The same in JSON; a date is the text that it was written as.
fn plain(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) => json!(number),
        toml::Value::Boolean(flag) => json!(flag),
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(list) => list.into_iter().map(plain).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(name, value)| (name, plain(value))).collect(),
    }
}

async fn submit(service: &Service, file: &File) -> Result<Vec<Value>> {
    let content_type = match file.syntax {
        Syntax::Toml => "application/toml",
        Syntax::Json => "application/json",
    };
    let path = format!("/v1/jobs?file={}", service::encode(&file.name));
    let answer = service.post_text(&path, content_type, &file.text).await?;
    Ok(answer["submitted"].as_array().cloned().unwrap_or_default())
}

/// What became of a job, in words.
fn told(submitted: &Value) -> String {
    let name = submitted["name"].as_str().unwrap_or_default();
    let version = &submitted["version"];
    match submitted["taken"].as_str().unwrap_or_default() {
        "updated" => format!("{name}: becomes version {version}"),
        "scaled" => format!("{name}: gets another number of tasks"),
        "unchanged" => format!("{name}: is as it was"),
        _ => format!("{name}: submitted"),
    }
}

/// Waits until all have ended, or run as requested.
///
/// # Errors
/// The framework does not answer, or a job cannot run on the agents that are there.
async fn wait(service: &Service, names: &[&String], args: &ServiceArgs) -> Result<ExitCode> {
    let mut failed = false;
    for name in names {
        let (mut looks, mut is_asked) = (0, false);
        let state = loop {
            let view: View = serde_json::from_value(service.get(&service::path(name, "")).await?)
                .context("the framework's answer")?;
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
                if let Some(Waiting { impossible: Some(why), .. }) = waiting(service, &args.master, &summary.need).await
                {
                    bail!("{name} cannot run: {why}. It stays submitted; `tepui job stop {name}` takes it back");
                }
            }
            looks += 1;
            tokio::time::sleep(LOOK).await;
        };
        failed |= state == "failed" || state == "stopped";
        if !args.json {
            print(&format!("{name}: {state}"))?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_together_are_their_jobs_in_their_order() {
        let file = |name: &str, text: &str| {
            let syntax = Syntax::of_file(name);
            let jobs = job::read(name, text, syntax).unwrap().into_iter().map(|job| job.name).collect();
            File { name: name.into(), text: text.into(), syntax, jobs }
        };
        let toml = file(
            "a.toml",
            "[[job]]\nname = 'a'\ncommand = 'x'\nenv = { D = 1979-05-27 }\n[[job]]\nname = 'b'\nimage = 'i'",
        );
        let single = file("c.toml", "name = 'c'\ncommand = 'x'\nkill_grace = '1s'");
        let json = file("d.json", r#"[{"name": "d", "program": ["x"], "cpus": 0.5}]"#);
        let all = together(&[toml, single, json]).unwrap();
        assert_eq!(
            (all.name.as_str(), &all.jobs[..]),
            ("a.toml+c.toml+d.json", &["a", "b", "c", "d"].map(str::to_owned)[..])
        );
        let read = job::read("all", &all.text, Syntax::Json).unwrap();
        assert_eq!(read.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(read[0].env["D"], "1979-05-27");
    }
}
