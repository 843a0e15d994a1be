//! Brings outputs of other stages into the sandbox: links to files that all agents share, or copies from other
//! sandboxes, which the agents' `/files` serve. Each is checked against its manifest.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use wire::client::Client;
use wire::http::StatusCode;

use super::failed::Failed;
use super::framework::Framework;
use super::{Fault, MANIFEST, Missing, OUTPUT, Published, SandboxSource, SharedSource, Sources};
use crate::job::template::flat;

/// How long an agent may take for one file.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often an agent is asked again that gives no answer.
const TRIES: u32 = 3;
/// The longest output that is fetched, in bytes.
const OUTPUT_MAX: usize = 1 << 30;

/// Brings all that a task reads of other stages into `input`.
///
/// # Errors
/// Outputs that cannot be read; all of them are named.
pub(super) async fn fetch(sources: &Sources, input: &Path, framework: &mut Framework) -> Result<(), Failed> {
    let room = |error: io::Error| Failed::new(Fault::Room, format!("{}: {error}", input.display()));
    fs::create_dir_all(input).map_err(room)?;
    let mut missing = Vec::new();
    let mut first = None;
    if sources.shared.is_empty() {
        for source in framework.sources().await? {
            if let Err(why) = from_sandbox(&source, sources.partition, input).await {
                let Why::Gone(why) = why else { return Err(why.failed(input)) };
                first.get_or_insert(why);
                missing.push(Missing { stage: source.stage, index: source.index, attempt: Some(source.attempt) });
            }
        }
    }
    for source in &sources.shared {
        for index in (source.first..source.first + source.count).filter(|index| !source.dropped.contains(index)) {
            if let Err(why) = link(source, index, sources.partition, input) {
                let Why::Gone(why) = why else { return Err(why.failed(input)) };
                first.get_or_insert(why);
                missing.push(Missing { stage: source.stage.clone(), index, attempt: None });
            }
        }
    }
    match first {
        None => Ok(()),
        Some(why) => Err(Failed { fault: Fault::Source, message: why, missing }),
    }
}

/// Why an output is not there.
enum Why {
    /// It is gone, or is not what was published.
    Gone(String),
    /// This sandbox cannot take it.
    Here(io::Error),
}

impl Why {
    fn failed(self, input: &Path) -> Failed {
        match self {
            Why::Gone(why) => Failed::new(Fault::Source, why),
            Why::Here(error) => Failed::new(Fault::Room, format!("{}: {error}", input.display())),
        }
    }
}

fn wanted(published: &Published, partition: Option<u32>) -> bool {
    partition.is_none() || published.partition == partition
}

/// The name of an output in the input directory: stage, task and file; all in one directory, in the order of tasks.
fn local_name(stage: &str, index: u32, name: &str) -> String {
    format!("{stage}.{index:07}.{}", flat(name))
}

fn link(source: &SharedSource, index: u32, partition: Option<u32>, input: &Path) -> Result<(), Why> {
    let directory = Path::new(&source.directory).join(index.to_string());
    let gone = |what: &str, error: String| Why::Gone(format!("{}: {what}: {error}", directory.display()));
    let manifest =
        fs::read(directory.join(MANIFEST)).map_err(|error| gone("the list of outputs", error.to_string()))?;
    for published in manifest_of(&manifest).map_err(|error| gone("the list of outputs", error))? {
        if !wanted(&published, partition) {
            continue;
        }
        let file = directory.join(&published.name);
        let found = fs::metadata(&file).map_err(|error| gone(&published.name, error.to_string()))?;
        if found.len() != published.length {
            let lengths = format!("it has {} bytes, and had {} when published", found.len(), published.length);
            return Err(gone(&published.name, lengths));
        }
        let local = input.join(local_name(&source.stage, index, &published.name));
        std::os::unix::fs::symlink(&file, local).map_err(Why::Here)?;
    }
    Ok(())
}

async fn from_sandbox(source: &SandboxSource, partition: Option<u32>, input: &Path) -> Result<(), Why> {
    let gone = |what: &str, error: String| {
        Why::Gone(format!("task {} of stage '{}' on {}: {what}: {error}", source.index, source.stage, source.agent))
    };
    let directory = format!("{}/{OUTPUT}", source.path);
    let mut client = match source.agent.parse() {
        Ok(address) => Client::at(address).with_timeout(PATIENCE).with_limit(OUTPUT_MAX),
        Err(error) => return Err(gone("its address", format!("{error}"))),
    };
    let manifest = download(&mut client, &format!("{directory}/{MANIFEST}")).await;
    let manifest = manifest.map_err(|error| gone("the list of outputs", error))?;
    for published in manifest_of(&manifest).map_err(|error| gone("the list of outputs", error))? {
        if !wanted(&published, partition) {
            continue;
        }
        let data = download(&mut client, &format!("{directory}/{}", published.name)).await;
        let data = data.map_err(|error| gone(&published.name, error))?;
        if data.len() as u64 != published.length || crc32c::crc32c(&data) != published.checksum {
            return Err(gone(&published.name, "its checksum is not that of what was published".to_owned()));
        }
        let local = input.join(local_name(&source.stage, source.index, &published.name));
        fs::write(local, data).map_err(Why::Here)?;
    }
    Ok(())
}

fn manifest_of(bytes: &[u8]) -> Result<Vec<Published>, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// A whole file from an agent. One that gives no answer is asked again; what it does not have is not there.
async fn download(client: &mut Client, path: &str) -> Result<Vec<u8>, String> {
    let path = format!("/files/download?path={}", utf8_percent_encode(path, NON_ALPHANUMERIC));
    let mut last = String::new();
    for _ in 0..TRIES {
        match client.get(&path).await {
            Ok(reply) if reply.status == StatusCode::OK => return Ok(reply.body.to_vec()),
            Ok(reply) => return Err(format!("the agent answers {}", reply.status)),
            Err(error) => last = base::error_chain(&error),
        }
    }
    Err(last)
}
