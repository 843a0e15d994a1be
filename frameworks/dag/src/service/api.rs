//! The HTTP API: JSON, or TOML for job files. Every route is in [`LateApi::answer`].
//!
//! It checks what needs no state and asks the scheduler for the rest.

use std::sync::OnceLock;

use jobs::http;
use jobs::service::Handle as _;
use sdk::driver::api::{self, Api, Call, Response, StatusCode};
use serde_json::json;

use super::{Error, Handle};
use crate::core::{Reply, Request, RequestError};
use crate::job;
use crate::task::Report;

/// The API, which can answer once there is a scheduler.
#[derive(Debug, Default)]
pub(super) struct LateApi(OnceLock<Handle>);

impl LateApi {
    pub(super) fn set_handle(&self, handle: Handle) {
        // It is set only once.
        let _ = self.0.set(handle);
    }
}

impl Api for LateApi {
    async fn answer(&self, call: Call) -> Response {
        match self.0.get() {
            Some(handle) => answer(handle, call).await,
            None => api::error(StatusCode::SERVICE_UNAVAILABLE, "the scheduler is starting"),
        }
    }
}

async fn answer(handle: &Handle, call: Call) -> Response {
    let (method, path) = call.route();
    let name = |name: &str| name.to_owned();
    match (method, path.as_slice()) {
        ("GET", ["v1", "status"]) => ask(handle, Request::Status).await,
        ("GET", ["v1", "jobs"]) => list(handle).await,
        ("POST", ["v1", "jobs"]) => submit(handle, &call).await,
        ("GET", ["v1", "jobs", job]) => ask(handle, Request::Show { name: name(job) }).await,
        ("DELETE", ["v1", "jobs", job]) if call.query.get("forget") == Some("true") => {
            ask(handle, Request::Forget { name: name(job) }).await
        }
        ("DELETE", ["v1", "jobs", job]) => ask(handle, Request::Cancel { name: name(job) }).await,
        ("GET", ["v1", "jobs", job, "stages", stage, "tasks"]) => match call.query.get("from").unwrap_or("0").parse() {
            Ok(from) => ask(handle, Request::Tasks { name: name(job), stage: name(stage), from }).await,
            Err(_) => api::error(StatusCode::BAD_REQUEST, "'from' must be the number of a task"),
        },
        ("GET", ["v1", "tasks", task, "sources"]) => ask(handle, Request::Sources { task: name(task) }).await,
        ("POST", ["v1", "tasks", task, "report"]) => match call.json::<Report>() {
            Ok(report) => ask(handle, Request::Report { task: name(task), report }).await,
            Err(response) => *response,
        },
        ("GET", ["v1", "events"]) => http::events(handle.follow()),
        ("GET", ["metrics"]) => Response::ok_body("text/plain; version=0.0.4", handle.metrics()),
        ("GET", []) => api::json(StatusCode::OK, &json!({ "framework": "tepui dag", "routes": ROUTES })),
        (_, path) if is_route(path) => {
            api::error(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not for this path; see GET /"))
        }
        _ => api::error(StatusCode::NOT_FOUND, "there is no such path; see GET /"),
    }
}

/// All routes, for `GET /`.
const ROUTES: &[&str] = &[
    "GET /v1/status",
    "GET /v1/jobs",
    "POST /v1/jobs (a job file in JSON, or in TOML as application/toml)",
    "GET /v1/jobs/{name}",
    "DELETE /v1/jobs/{name} (cancels it; ?forget=true forgets one that has ended)",
    "GET /v1/jobs/{name}/stages/{stage}/tasks?from=0 (1,000 at once)",
    "GET /v1/tasks/{id}/sources (for runners)",
    "POST /v1/tasks/{id}/report (for runners)",
    "GET /v1/events (server-sent events)",
    "GET /metrics",
];

fn is_route(path: &[&str]) -> bool {
    matches!(
        path,
        [] | ["metrics"]
            | ["v1", "status" | "jobs" | "events"]
            | ["v1", "jobs", _]
            | ["v1", "jobs", _, "stages", _, "tasks"]
            | ["v1", "tasks", _, "sources" | "report"]
    )
}

async fn ask(handle: &Handle, request: Request) -> Response {
    match handle.ask(request).await {
        Ok(Reply::Done | Reply::Left) => api::json(StatusCode::OK, &json!({ "done": true })),
        Ok(Reply::Submitted(submitted)) => api::json(StatusCode::OK, &json!({ "submitted": submitted })),
        Ok(Reply::Sources(sources)) => api::json(StatusCode::OK, &sources),
        Ok(Reply::Status(status)) => api::json(StatusCode::OK, &status),
        Ok(Reply::Job(view)) => api::json(StatusCode::OK, &view),
        Ok(Reply::Tasks(page)) => api::json(StatusCode::OK, &page),
        Err(error) => error_response(&error),
    }
}

async fn list(handle: &Handle) -> Response {
    match handle.status().await {
        Ok(status) => api::json(StatusCode::OK, &json!({ "jobs": status.jobs })),
        Err(error) => error_response(&error),
    }
}

async fn submit(handle: &Handle, call: &Call) -> Response {
    match http::posted(call, job::read) {
        Ok(jobs) => match handle.submit(jobs).await {
            Ok(submitted) => api::json(StatusCode::OK, &json!({ "submitted": submitted })),
            Err(error) => error_response(&error),
        },
        Err(response) => *response,
    }
}

/// Returns the response to a request that was refused or failed.
fn error_response(error: &Error) -> Response {
    match error {
        Error::Refused(refused) => {
            let status = match refused {
                RequestError::NoSuchJob(_) | RequestError::NoSuchStage(..) | RequestError::NoSuchTask(_) => {
                    StatusCode::NOT_FOUND
                }
                RequestError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
                RequestError::Full | RequestError::Twice(_) => StatusCode::UNPROCESSABLE_ENTITY,
                _ => StatusCode::CONFLICT,
            };
            api::error(status, refused.to_string())
        }
        Error::Input { .. } => api::error(StatusCode::UNPROCESSABLE_ENTITY, base::error_chain(error)),
        Error::Ask(ask) => api::error(StatusCode::SERVICE_UNAVAILABLE, ask.to_string()),
        other => api::error(StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
    }
}
