//! The HTTP response to a request that a core rejects.

use cores::{CallError, ErrorKind};
use wire::http::{Response, StatusCode};

use crate::audit;

/// Returns the response for `error`. An error without a text gets the text of its status.
pub(crate) fn rejection(error: CallError) -> Response {
    let status = match error.kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    let text = error.to_string();
    if let Some(rule) = error.rule {
        audit::note_rule(|| rule);
    }
    match text.is_empty() {
        true => Response::error(status),
        false => Response::text(status, text),
    }
}
