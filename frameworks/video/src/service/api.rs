//! The framework's HTTP API: submits queries, and serves status and results.

use std::path::Path;
use std::sync::Arc;

use sdk::driver::api::{Api, Call, Response, StatusCode, error, json};
use serde::Deserialize;

use super::{Error, Inner};
use crate::abr::live::{POLICY_NAMES, Viewer, policy, policy_named};
use crate::spec::{QuerySpec, parse};

/// Answers calls:
///
/// | call | answer |
/// |---|---|
/// | `GET /status` | status of the framework and all queries |
/// | `GET /queries/NAME` | status of one query |
/// | `GET /queries/NAME/results` | its last findings |
/// | `GET /queries/NAME/frame` | its present picture as PNG, with boxes, lines and region |
/// | `GET /queries/NAME/live` | its pictures as a stream of JPEG, adapted to the connection |
/// | `GET /` | a page with the queries, and the live view of `?query=NAME` |
/// | `POST /queries` | submits queries: the TOML of a query file, or `{"queries": [...]}` |
/// | `DELETE /queries/NAME` | ends a query and forgets it |
#[derive(Debug)]
pub(super) struct VideoApi(pub(super) Arc<Inner>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    queries: Vec<QuerySpec>,
}

impl Api for VideoApi {
    async fn answer(&self, call: Call) -> Response {
        let inner = &self.0;
        match call.route() {
            ("GET", path) if path == ["status"] || path == ["queries"] => match inner.status().await {
                Ok(status) => json(StatusCode::OK, &status),
                Err(why) => refusal(&why),
            },
            ("GET", path) if path.len() == 2 && path[0] == "queries" => match inner.status().await {
                Ok(status) => match status.queries.iter().find(|q| q.name == path[1]) {
                    Some(query) => json(StatusCode::OK, query),
                    None => error(StatusCode::NOT_FOUND, format!("there is no query {:?}", path[1])),
                },
                Err(why) => refusal(&why),
            },
            ("GET", path) if path.len() == 3 && path[0] == "queries" && path[2] == "results" => {
                json(StatusCode::OK, &inner.findings(path[1]))
            }
            ("GET", path) if path.len() == 3 && path[0] == "queries" && path[2] == "frame" => {
                match inner.picture(path[1]).await {
                    Ok(Some(picture)) => Response::ok_body("image/png", picture),
                    Ok(None) => {
                        let what = format!(
                            "query {:?} has no picture now: its worker does not run, or has sent none",
                            path[1]
                        );
                        error(StatusCode::SERVICE_UNAVAILABLE, what)
                    }
                    Err(why) => refusal(&why),
                }
            }
            ("GET", path) if path.len() == 3 && path[0] == "queries" && path[2] == "live" => {
                self.live(path[1], &call).await
            }
            ("GET", path) if path.is_empty() => match inner.status().await {
                Ok(status) => {
                    let page = super::page::page(&status.queries, call.query.get("query"));
                    Response::ok_body("text/html; charset=utf-8", page.into_bytes())
                }
                Err(why) => refusal(&why),
            },
            ("POST", path) if path == ["queries"] => self.submit(&call).await,
            ("DELETE", path) if path.len() == 2 && path[0] == "queries" => match inner.remove(path[1]).await {
                Ok(()) => json(StatusCode::OK, &serde_json::json!({})),
                Err(why) => refusal(&why),
            },
            (method, path) => {
                error(StatusCode::NOT_FOUND, format!("there is no {method} /{}: see the README", path.join("/")))
            }
        }
    }
}

impl VideoApi {
    /// Serves a live view. The parameter `policy` chooses another policy, for comparisons.
    async fn live(&self, query: &str, call: &Call) -> Response {
        let policy = match call.query.get("policy").map(policy_named) {
            None => policy(),
            Some(Some(policy)) => policy,
            Some(None) => return error(StatusCode::BAD_REQUEST, format!("policy must be {POLICY_NAMES}")),
        };
        match self.0.status().await {
            Ok(status) if !status.queries.iter().any(|one| one.name == query) => {
                error(StatusCode::NOT_FOUND, format!("there is no query {query:?}"))
            }
            Ok(_) => self.0.views.open(query, Viewer::new(policy)).unwrap_or_else(|_| {
                error(StatusCode::SERVICE_UNAVAILABLE, "the maximum number of viewers is connected")
            }),
            Err(why) => refusal(&why),
        }
    }

    async fn submit(&self, call: &Call) -> Response {
        let text = String::from_utf8_lossy(&call.body);
        let queries = if text.trim_start().starts_with('{') {
            match call.json::<Queries>() {
                Ok(parsed) => parsed.queries,
                Err(response) => return *response,
            }
        } else {
            match parse(&text, "body", Path::new("/")) {
                Ok(queries) => queries,
                Err(why) => return error(StatusCode::BAD_REQUEST, why.to_string()),
            }
        };
        let names: Vec<String> = queries.iter().map(|q| q.name.clone()).collect();
        match self.0.submit(queries).await {
            Ok(()) => json(StatusCode::CREATED, &serde_json::json!({ "queries": names })),
            Err(why) => refusal(&why),
        }
    }
}

/// Returns the response for an error, with its whole chain of causes.
fn refusal(why: &Error) -> Response {
    let status = match why {
        Error::Ask(_) | Error::Ended(_) | Error::Io { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::NoQuery(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    error(status, base::error_chain(why))
}
