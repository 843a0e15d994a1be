//! Job files on their way to a framework: reads and checks them, and joins them, so that none of several files is
//! submitted if one is invalid. Also prints files that tasks have left.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use binpack::job::{FILE_BYTES_MAX, Faults, Syntax};
use serde_json::{Value, json};

use super::model::Place;
use crate::connect::MasterArgs;
use crate::read::model::Agents;
use crate::read::print;
use crate::sandbox;
use crate::service::{Service, encode};

/// Maximum length of a file of a sandbox that is printed as JSON, in bytes.
const JSON_MAX: usize = 16 << 20;

/// A job file that was read, and is valid.
pub(crate) struct File {
    /// Name of the file, for errors.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) syntax: Syntax,
    /// Names of the file's jobs.
    pub(crate) jobs: Vec<String>,
}

/// Reads files, and reports the faults of all of them together. `read` returns the names of a file's jobs.
pub(crate) fn read_all(
    paths: &[PathBuf],
    read: impl Fn(&str, &str, Syntax) -> Result<Vec<String>, Faults>,
) -> Result<Vec<File>> {
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for path in paths {
        let (name, text) = text(path)?;
        let syntax = Syntax::of_file(&name);
        match read(&name, &text, syntax) {
            Ok(jobs) => files.push(File { jobs, name, text, syntax }),
            Err(wrong) => faults.push(wrong.to_string()),
        }
    }
    if faults.is_empty() { Ok(files) } else { bail!("nothing was submitted:\n{}", faults.join("\n")) }
}

fn text(path: &Path) -> Result<(String, String)> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        // One byte more than is allowed is enough to reject the input.
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

/// Joins several files, so that either all of their jobs are accepted or none.
pub(crate) fn together(files: &[File]) -> Result<File> {
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

/// Converts TOML to JSON; a date becomes its text.
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

/// Submits files, all of their jobs or none, and returns the result for each job.
///
/// # Errors
/// The framework refuses them.
pub(crate) async fn submit(service: &Service, files: &[File]) -> Result<Vec<Value>> {
    match files {
        [file] => submit_one(service, file).await,
        several => submit_one(service, &together(several)?).await,
    }
}

async fn submit_one(service: &Service, file: &File) -> Result<Vec<Value>> {
    let content_type = match file.syntax {
        Syntax::Toml => "application/toml",
        Syntax::Json => "application/json",
    };
    let path = format!("/v1/jobs?file={}", encode(&file.name));
    let answer = service.post_text(&path, content_type, &file.text).await?;
    Ok(answer["submitted"].as_array().cloned().unwrap_or_default())
}

/// Finds a file of a task's sandbox. The framework knows the agent's address at the launch; if no agent answers there,
/// the master is asked for the current one.
///
/// # Errors
/// The agent is gone, or does not know the task.
pub(crate) async fn place_file(place: &Place, master: &MasterArgs, name: &str) -> Result<sandbox::File> {
    let of = (None, place.task_id.as_str());
    if !place.agent.is_empty()
        && let Ok(file) = sandbox::File::find(master, &place.agent, of, name).await
    {
        return Ok(file);
    }
    let agents: Agents = master.read("/slaves").await?;
    match agents.slaves.iter().find(|agent| agent.id == place.agent_id) {
        Some(agent) => sandbox::File::find(master, agent.address(), of, name).await,
        None => bail!("agent {} is not connected: the task's output cannot be read", place.agent_id),
    }
}

/// Prints a file of the sandboxes of tasks, which are given with their numbers: one after the other, or as JSON.
///
/// # Errors
/// The file of a task cannot be read. This ends the command at once for JSON, otherwise after the other tasks' files.
pub(crate) async fn print_files(
    tasks: &[(u32, Place)],
    master: &MasterArgs,
    name: &str,
    json: bool,
) -> Result<ExitCode> {
    if json {
        let mut logs = Vec::new();
        for (number, place) in tasks {
            let data = place_file(place, master, name).await?.rest(JSON_MAX).await?;
            logs.push(json!({ "task": number, "place": place, "file": name, "data": data }));
        }
        return print(&serde_json::to_string_pretty(&logs)?);
    }
    let mut failed = false;
    for (number, place) in tasks {
        if tasks.len() > 1 {
            print(&format!("==> {} on {} <==", place.task_id, place.host))?;
        }
        let printed = async { place_file(place, master, name).await?.copy(&mut std::io::stdout()).await };
        if let Err(error) = printed.await {
            failed = true;
            stdio::err!("task {number}: {error:#}");
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;
    use binpack::job;

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
