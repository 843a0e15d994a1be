//! The common part of `tepui job` and `tepui dag`: lists of jobs, and reasons in the text of one job. It does not
//! depend on a framework.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::read::{print, watch};
use crate::service::{Kind, ServiceArgs};

/// Flags of a list of jobs of the framework `K`.
#[derive(Debug, clap::Args)]
pub struct ListArgs<K: Kind> {
    #[command(flatten)]
    service: ServiceArgs<K>,
    /// List only jobs that have not ended
    #[arg(long)]
    active: bool,
    /// List again every two seconds, until interrupted; without a terminal, after each change
    #[arg(long, short)]
    watch: bool,
}

impl<K: Kind> ListArgs<K> {
    /// Prints the list, with `--watch` repeatedly. `submit` is the command that submits a job; `table` formats the
    /// jobs.
    ///
    /// # Errors
    /// The framework is not found, or its answer cannot be read.
    pub(crate) async fn list<J: DeserializeOwned>(&self, submit: &str, table: fn(&[J]) -> String) -> Result<ExitCode> {
        // The framework is looked up each time, because its address may have changed.
        let listed = async || -> Result<String> {
            let mut document = self.service.find().await?.get("/v1/jobs").await?;
            let mut jobs: Vec<Value> =
                serde_json::from_value(document["jobs"].take()).context("the framework's answer")?;
            jobs.retain(|job| !self.active || job["ended"].is_null());
            if self.service.json {
                return Ok(serde_json::to_string_pretty(&jobs)?);
            }
            if jobs.is_empty() {
                return Ok(format!("no jobs; submit one with `{submit} FILE`"));
            }
            let jobs: Vec<J> = serde_json::from_value(jobs.into()).context("the framework's answer")?;
            Ok(table(&jobs))
        };
        match self.watch {
            false => print(&listed().await?),
            true => watch(listed).await,
        }
    }
}

/// Formats the reasons that a framework gives for the state of a job: a heading and a line for each; empty if there are
/// none.
pub(crate) fn reasons(list: &[String]) -> String {
    let lines: String = list.iter().map(|reason| format!("  {reason}\n")).collect();
    if lines.is_empty() { lines } else { format!("reasons:\n{lines}") }
}
