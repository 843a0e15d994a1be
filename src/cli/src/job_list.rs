//! Lists of jobs: the common part of `tepui job list` and `tepui dag list`. It knows no framework.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::read::{print, watch};
use crate::service::Service;

/// Flags of a list of jobs; `S` are those by which the framework is found.
#[derive(Debug, clap::Args)]
pub struct ListArgs<S: clap::Args> {
    #[command(flatten)]
    pub(crate) service: S,
    /// Only those that have not ended
    #[arg(long)]
    active: bool,
    /// List again every two seconds, until interrupted; without a terminal, after each change
    #[arg(long, short)]
    watch: bool,
}

/// What a list needs of the framework whose jobs it shows; `J` is what it shows of a job.
pub(crate) struct Source<F, J> {
    /// Finds the framework's API.
    pub(crate) find: F,
    /// Whether JSON is printed.
    pub(crate) is_json: bool,
    /// The command that submits a job.
    pub(crate) submit: &'static str,
    /// Jobs as a table.
    pub(crate) table: fn(&[J]) -> String,
}

/// Prints a list, again and again if that is wanted.
///
/// # Errors
/// The framework is not found, or its answer cannot be read.
pub(crate) async fn list<S, F, J>(args: &ListArgs<S>, source: Source<F, J>) -> Result<ExitCode>
where
    S: clap::Args,
    F: AsyncFn() -> Result<Service>,
    J: DeserializeOwned,
{
    // The framework is looked up each time: it may have moved.
    let listed = async || -> Result<String> {
        let mut document = (source.find)().await?.get("/v1/jobs").await?;
        let mut jobs: Vec<Value> = serde_json::from_value(document["jobs"].take()).context("the framework's answer")?;
        jobs.retain(|job| !args.active || job["ended"].is_null());
        if source.is_json {
            return Ok(serde_json::to_string_pretty(&jobs)?);
        }
        if jobs.is_empty() {
            return Ok(format!("no jobs; submit one with `{} FILE`", source.submit));
        }
        let jobs: Vec<J> = serde_json::from_value(jobs.into()).context("the framework's answer")?;
        Ok((source.table)(&jobs))
    };
    match args.watch {
        false => print(&listed().await?),
        true => watch(listed).await,
    }
}
