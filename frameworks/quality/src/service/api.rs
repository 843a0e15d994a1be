//! The HTTP API: submits, lists, shows, stops and removes jobs; serves models and the plot.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sdk::driver::api::{Api, Call, Response, StatusCode, error, json};
use serde_json::json;

use super::plot;
use super::saved_model::SavedModel;
use super::{Error, Inner};
use crate::job::{Job, parse};
use crate::scheduler::Status;

/// The handler of API calls.
#[derive(Debug)]
pub(super) struct ApiHandler(pub(super) Arc<Inner>);

impl Api for ApiHandler {
    async fn answer(&self, call: Call) -> Response {
        match call.route() {
            ("GET", path) if path.is_empty() => json(StatusCode::OK, &overview()),
            ("GET", path) if path == ["status"] || path == ["jobs"] => match self.0.status().await {
                Ok(status) => json(StatusCode::OK, &status),
                Err(why) => unavailable(&why),
            },
            ("GET", path) if path == ["workers"] => match self.0.status().await {
                Ok(status) => json(StatusCode::OK, &workers(&status)),
                Err(why) => unavailable(&why),
            },
            ("POST", path) if path == ["jobs"] => self.submit(&call).await,
            ("GET", path) if path == ["plot.svg"] => match self.0.status().await {
                Ok(status) => Response::ok_body("image/svg+xml", plot::svg(&status)),
                Err(why) => unavailable(&why),
            },
            ("GET", path) if path == ["models"] => json(StatusCode::OK, &json!({ "models": self.models() })),
            (method, path) => match (method, path.as_slice()) {
                ("GET", ["jobs", name]) => self.show(name).await,
                ("POST", ["jobs", name, "stop"]) => outcome(self.0.stop_job(name).await),
                ("DELETE", ["jobs", name]) => outcome(self.0.forget(name).await),
                ("GET", ["models", name]) => self.model(name),
                _ => error(StatusCode::NOT_FOUND, "there is no such path; see GET /"),
            },
        }
    }
}

fn overview() -> serde_json::Value {
    json!({
        "GET /jobs": "all jobs, with their losses, cores and predictions",
        "POST /jobs": "submit a job as JSON, or a job file as TOML",
        "GET /jobs/NAME": "one job",
        "POST /jobs/NAME/stop": "end a job and keep its model",
        "DELETE /jobs/NAME": "remove a job that has ended",
        "GET /workers": "workers with their current jobs",
        "GET /models": "names of the saved models",
        "GET /models/NAME": "a model",
        "GET /plot.svg": "losses and cores over time",
    })
}

/// Returns the job of each task.
fn workers(status: &Status) -> BTreeMap<&str, &str> {
    status.jobs.iter().flat_map(|job| job.tasks.iter().map(|task| (task.as_str(), job.name.as_str()))).collect()
}

fn unavailable(why: &Error) -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
}

fn outcome(result: Result<(), Error>) -> Response {
    match result {
        Ok(()) => json(StatusCode::OK, &json!({})),
        Err(why @ (Error::NoJob(_) | Error::NotRunning(_))) => error(StatusCode::NOT_FOUND, why.to_string()),
        Err(Error::Refused(why)) => error(StatusCode::CONFLICT, why),
        Err(why) => unavailable(&why),
    }
}

impl ApiHandler {
    async fn submit(&self, call: &Call) -> Response {
        let jobs = if call.body.trim_ascii_start().starts_with(b"{") {
            match call.json::<Job>() {
                Ok(job) => vec![job],
                Err(refused) => return *refused,
            }
        } else {
            let parsed = std::str::from_utf8(&call.body).map_err(|_| "the body is not UTF-8".to_owned());
            match parsed.and_then(|text| parse("body", text).map_err(|error| error.to_string())) {
                Ok(jobs) => jobs,
                Err(why) => return error(StatusCode::BAD_REQUEST, why),
            }
        };
        let names: Vec<String> = jobs.iter().map(|j| j.name.clone()).collect();
        match self.0.clone().submit(jobs).await {
            Ok(()) => json(StatusCode::CREATED, &json!({ "submitted": names })),
            Err(Error::Scheduler(why)) => error(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
            Err(why) => error(StatusCode::BAD_REQUEST, base::error_chain(&why)),
        }
    }

    async fn show(&self, name: &str) -> Response {
        match self.0.status().await {
            Ok(status) => match status.jobs.iter().find(|j| j.name == name) {
                Some(job) => json(StatusCode::OK, job),
                None => error(StatusCode::NOT_FOUND, format!("there is no job '{name}'")),
            },
            Err(why) => unavailable(&why),
        }
    }

    /// Returns the names of all models.
    fn models(&self) -> Vec<String> {
        let Some(directory) = self.0.models() else { return Vec::new() };
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let models =
            entries.map(|e| PathBuf::from(e.file_name())).filter(|p| p.extension().is_some_and(|e| e == "json"));
        let mut names: Vec<String> = models.filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        names
    }

    fn model(&self, name: &str) -> Response {
        // Only names of the list are accepted, so none leads out of the directory.
        let known = self.models().into_iter().find(|n| n == name);
        let read =
            known.zip(self.0.models()).map(|(n, directory)| SavedModel::read(&directory.join(format!("{n}.json"))));
        match read {
            Some(Ok(model)) => json(StatusCode::OK, &model),
            Some(Err(why)) => error(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
            None => error(StatusCode::NOT_FOUND, format!("there is no model '{name}'")),
        }
    }
}
