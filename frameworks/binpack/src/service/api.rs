//! The HTTP API: JSON, or TOML for job files. Every route is in [`JobsApi::answer`].
//!
//! It checks what needs no state and asks the scheduler for the rest.

use jobs::http;
use jobs::service::Handle as _;
use sdk::driver::api::{self, Api, Call, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{Error, Handle};
use crate::core::{Reply, Request, RequestError};
use crate::job;
use crate::marathon::Marathon;

/// Answers the calls of the HTTP API about jobs.
#[derive(Debug)]
pub(super) struct JobsApi {
    handle: Handle,
    marathon: Marathon,
}

/// Body of a scale request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    count: u32,
}

/// Body of a kill request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Kill {
    tasks: Vec<u32>,
    scale: bool,
}

impl Api for JobsApi {
    async fn answer(&self, call: Call) -> Response {
        if let Some(response) = self.marathon.answer(&call).await {
            return response;
        }
        let (method, path) = call.route();
        let name = |name: &str| name.to_owned();
        match (method, path.as_slice()) {
            ("GET", ["v1", "status"]) => self.ask(Request::Status).await,
            ("GET", ["v1", "jobs"]) => self.list().await,
            ("POST", ["v1", "jobs"]) => self.submit(&call).await,
            ("GET", ["v1", "jobs", job]) => self.ask(Request::Show { name: name(job) }).await,
            ("DELETE", ["v1", "jobs", job]) if call.query.get("forget") == Some("true") => {
                self.ask(Request::Forget { name: name(job) }).await
            }
            ("DELETE", ["v1", "jobs", job]) => self.ask(Request::Stop { name: name(job) }).await,
            ("POST", ["v1", "jobs", job, "restart"]) => self.ask(Request::Restart { name: name(job) }).await,
            ("POST", ["v1", "jobs", job, "scale"]) => match call.json::<Scale>() {
                Ok(Scale { count }) => self.ask(Request::Scale { name: name(job), count }).await,
                Err(response) => *response,
            },
            ("POST", ["v1", "jobs", job, "kill"]) => match call.json::<Kill>() {
                Ok(Kill { tasks, scale }) => self.ask(Request::Kill { name: name(job), numbers: tasks, scale }).await,
                Err(response) => *response,
            },
            ("GET", ["v1", "events"]) => http::events(self.handle.follow()),
            ("GET", ["metrics"]) => Response::ok_body("text/plain; version=0.0.4", self.handle.metrics()),
            ("GET", []) => api::json(StatusCode::OK, &json!({ "framework": "tepui binpack", "routes": ROUTES })),
            (_, path) if is_route(path) => {
                api::error(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not for this path; see GET /"))
            }
            _ => api::error(StatusCode::NOT_FOUND, "there is no such path; see GET /"),
        }
    }
}

/// List of all routes, for `GET /`.
const ROUTES: &[&str] = &[
    "GET /v1/status",
    "GET /v1/jobs",
    "POST /v1/jobs (a job file in JSON, or in TOML as application/toml)",
    "GET /v1/jobs/{name}",
    "DELETE /v1/jobs/{name} (stops it; ?forget=true forgets one that has ended)",
    "POST /v1/jobs/{name}/scale {\"count\": 3}",
    "POST /v1/jobs/{name}/restart",
    "POST /v1/jobs/{name}/kill {\"tasks\": [0], \"scale\": false}",
    "GET /v1/events (server-sent events)",
    "GET /metrics",
    "/v2/... (Marathon's API for apps, where a service is an app)",
];

fn is_route(path: &[&str]) -> bool {
    matches!(
        path,
        [] | ["metrics"]
            | ["v1", "status" | "jobs" | "events"]
            | ["v1", "jobs", _]
            | ["v1", "jobs", _, "scale" | "restart" | "kill"]
    )
}

impl JobsApi {
    pub(super) fn new(handle: Handle) -> JobsApi {
        JobsApi { marathon: Marathon::new(handle.clone()), handle }
    }

    async fn ask(&self, request: Request) -> Response {
        match self.handle.ask(request).await {
            Ok(Reply::Done | Reply::Left | Reply::RequiredCapacity(_) | Reply::Measurable(_)) => {
                api::json(StatusCode::OK, &json!({ "done": true }))
            }
            Ok(Reply::Submitted(submitted)) => api::json(StatusCode::OK, &json!({ "submitted": submitted })),
            Ok(Reply::Status(status)) => api::json(StatusCode::OK, &status),
            Ok(Reply::Job(view)) => api::json(StatusCode::OK, &view),
            Err(error) => error_response(&error),
        }
    }

    async fn list(&self) -> Response {
        match self.handle.status().await {
            Ok(status) => api::json(StatusCode::OK, &json!({ "jobs": status.jobs })),
            Err(error) => error_response(&error),
        }
    }

    async fn submit(&self, call: &Call) -> Response {
        match http::posted(call, job::read) {
            Ok(jobs) => self.ask(Request::Submit(jobs)).await,
            Err(response) => *response,
        }
    }
}

/// Returns the response to a request that was not fulfilled.
fn error_response(error: &Error) -> Response {
    match error {
        Error::Refused(refused) => {
            let status = match refused {
                RequestError::NoSuchJob(_) | RequestError::NoSuchTask(..) => StatusCode::NOT_FOUND,
                RequestError::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
                RequestError::TooMany | RequestError::Full | RequestError::Twice(_) => StatusCode::UNPROCESSABLE_ENTITY,
                _ => StatusCode::CONFLICT,
            };
            api::error(status, refused.to_string())
        }
        Error::Ask(ask) => api::error(StatusCode::SERVICE_UNAVAILABLE, ask.to_string()),
        other => api::error(StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
    }
}
