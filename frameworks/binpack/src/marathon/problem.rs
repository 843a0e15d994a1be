//! Responses to requests that fail, in Marathon's form: `{"message": ..., "details": [...]}`.

use sdk::driver::api::{self, Response, StatusCode};
use serde_json::json;

use crate::core::RequestError;
use crate::service::Error;

/// An error response of Marathon's API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// Paths of the invalid parts, and their errors.
    pub(super) details: Vec<(String, String)>,
    /// Ids of the deployments that prevent the change.
    pub(super) deployments: Vec<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), details: Vec::new(), deployments: Vec::new() }
    }

    pub(super) fn malformed(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, message)
    }

    /// Converts an error of `serde` about a definition. An unknown field is named, as unsupported ones are.
    pub(super) fn unreadable(error: &serde_json::Error) -> Problem {
        let text = error.to_string();
        let unknown = text.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        match unknown {
            Some((field, _)) => {
                Problem::invalid(vec![(format!("/{field}"), "this field is not supported here".to_owned())])
            }
            None => Problem::malformed(text),
        }
    }

    pub(super) fn invalid(details: Vec<(String, String)>) -> Problem {
        Problem { details, ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Object is not valid") }
    }

    pub(super) fn no_app(id: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("App '/{}' does not exist", id.trim_start_matches('/')))
    }

    pub(super) fn locked(deployments: Vec<String>) -> Problem {
        let first = deployments.first().map_or("", String::as_str);
        let message = format!(
            "App is locked by one or more deployments. Override with the option '?force=true'. View details at \
             '/v2/deployments/{first}'."
        );
        Problem { deployments, ..Problem::new(StatusCode::CONFLICT, message) }
    }

    pub(super) fn response(&self) -> Response {
        let mut body = json!({ "message": self.message });
        if !self.details.is_empty() {
            let detail = |(path, rule): &(String, String)| json!({ "path": path, "errors": [rule] });
            body["details"] = self.details.iter().map(detail).collect();
        }
        if !self.deployments.is_empty() {
            body["deployments"] = self.deployments.iter().map(|id| json!({ "id": id })).collect();
        }
        api::json(self.status, &body)
    }
}

/// Converts an error of the scheduler.
impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let status = match &error {
            Error::Refused(RequestError::NoSuchJob(_) | RequestError::NoSuchTask(..)) => StatusCode::NOT_FOUND,
            Error::Refused(RequestError::TooMany | RequestError::Full | RequestError::Twice(_)) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Error::Refused(RequestError::Damaged(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::Refused(_) => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Problem::new(status, cause.unwrap_or_else(|| error.to_string()))
    }
}
