//! `tepui dag submit`: submits jobs from files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use dag::job;

use super::ServiceArgs;
use super::model::view;
use crate::job::files::{read_all, submit};
use crate::read::print;
use crate::service::Service;

/// Interval of requests for the state of a job whose end the command waits for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Flags of `tepui dag submit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// Job files in TOML, or in JSON if their names end with .json; - is standard input, in TOML
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Wait until all of these jobs have ended; fail if one fails
    #[arg(long, short)]
    wait: bool,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let files = read_all(&args.files, |name, text, syntax| {
        Ok(job::read(name, text, syntax)?.into_iter().map(|job| job.name).collect())
    })?;
    let service = args.service.find().await?;
    let submitted = submit(&service, &files).await?;
    if args.service.json {
        print(&serde_json::to_string_pretty(&submitted)?)?;
    } else {
        for one in &submitted {
            print(&format!("{}: submitted", one["name"].as_str().unwrap_or_default()))?;
        }
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    wait(&service, files.iter().flat_map(|file| &file.jobs), args.service.json).await
}

/// Waits until all jobs have ended.
async fn wait(service: &Service, names: impl Iterator<Item = &String>, json: bool) -> Result<ExitCode> {
    let mut failed = false;
    for name in names {
        let summary = loop {
            let summary = view(service, name).await?.summary;
            if summary.ended.is_some() {
                break summary;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        failed |= summary.state != "finished";
        if !json {
            let why = if summary.why.is_empty() { String::new() } else { format!(": {}", summary.why) };
            print(&format!("{name}: {}{why}", summary.state))?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
