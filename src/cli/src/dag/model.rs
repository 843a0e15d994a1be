//! The fields of the framework's API that the commands show.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::job::model::{Counts, Need, Place};
use crate::service::{self, Service, encode};

/// The summary of a job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) priority: String,
    pub(crate) stages: usize,
    pub(crate) stages_done: usize,
    pub(crate) tasks: Counts,
    pub(crate) age: f64,
    pub(crate) ended: Option<f64>,
    pub(crate) why: String,
}

/// The details of a job, from `/v1/jobs/{name}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    pub(crate) summary: Summary,
    pub(crate) stages: Vec<Stage>,
    pub(crate) why: Vec<String>,
    /// Values that were found for drops and sprints, in words.
    pub(crate) tuned: Vec<String>,
}

/// A stage of a job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) after: Vec<String>,
    pub(crate) tasks: Counts,
    pub(crate) need: Need,
    pub(crate) total: Option<u32>,
    pub(crate) mean: Option<f64>,
    pub(crate) longest: f64,
    pub(crate) directory: Option<String>,
    pub(crate) removed: bool,
    pub(crate) sizing: Option<Sizing>,
    pub(crate) estimate: Option<Estimate>,
}

/// The search for the size of tasks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sizing {
    pub(crate) unit: String,
    pub(crate) size: u64,
    pub(crate) left: u64,
    pub(crate) why: String,
    pub(crate) waves: Vec<Wave>,
}

/// A wave of tasks with one size.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wave {
    pub(crate) number: u32,
    pub(crate) size: u64,
    pub(crate) rate: f64,
    pub(crate) tasks: u32,
}

/// An estimate of a statistic from the tasks that ran.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Estimate {
    pub(crate) statistic: String,
    pub(crate) value: f64,
    pub(crate) bound: Option<f64>,
    pub(crate) confidence: f64,
    pub(crate) tasks: u32,
    pub(crate) of: u32,
}

/// A page of a list of tasks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaskPage {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next: Option<u32>,
}

/// A task of a stage.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) state: String,
    pub(crate) place: Option<Place>,
    pub(crate) attempts: u32,
    pub(crate) took: Option<f64>,
    pub(crate) running: Option<f64>,
    pub(crate) units: u64,
    pub(crate) message: String,
}

/// Requests the details of a job.
pub(super) async fn view(service: &Service, job: &str) -> Result<View> {
    let document = service.get(&service::path(job, "")).await?;
    serde_json::from_value(document).context("the framework's answer")
}

/// Requests the tasks of a stage, at most `most`.
pub(super) async fn tasks(service: &Service, job: &str, stage: &str, most: usize) -> Result<Vec<Task>> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let path = service::path(job, &format!("/stages/{}/tasks?from={from}", encode(stage)));
        let page: TaskPage = serde_json::from_value(service.get(&path).await?).context("the framework's answer")?;
        all.extend(page.tasks);
        match page.next {
            Some(next) if all.len() < most => from = next,
            _ => break,
        }
    }
    all.truncate(most);
    Ok(all)
}
