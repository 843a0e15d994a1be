//! The common parts of the frameworks' HTTP APIs: job files that are posted, and the stream of events.

use sdk::driver::api::{self, Call, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::file::{Faults, Syntax};
use crate::follow::Follower;

/// Name in faults of a job file that was sent without a name.
const UNNAMED: &str = "job";

/// Parses the job file in the body of a request.
///
/// # Errors
/// Returns the response to a request with another content type or with faults. The file is rejected as a whole, with
/// the line and rule of every fault.
pub fn posted<J>(
    call: &Call,
    read: impl FnOnce(&str, &str, Syntax) -> Result<Vec<J>, Faults>,
) -> Result<Vec<J>, Box<Response>> {
    let content_type = call.request.header("content-type").unwrap_or_default();
    let syntax = match content_type.split(';').next().unwrap_or_default().trim() {
        "application/toml" | "text/toml" => Syntax::Toml,
        "" | "application/json" => Syntax::Json,
        other => {
            let text = format!("a job file is application/json or application/toml, and this is {other}");
            return Err(Box::new(api::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)));
        }
    };
    let Ok(text) = std::str::from_utf8(&call.body) else {
        return Err(Box::new(api::error(StatusCode::BAD_REQUEST, "a job file is UTF-8, and this is not")));
    };
    read(call.query.get("file").unwrap_or(UNNAMED), text, syntax).map_err(|faults| {
        let body = json!({ "error": faults.to_string(), "faults": faults });
        Box::new(api::json(StatusCode::BAD_REQUEST, &body))
    })
}

/// Returns a stream of server-sent events with the events of a follower, each named by its field `event`.
pub fn events<E: Clone + Serialize + Send + Sync + 'static>(mut follower: Follower<E>) -> Response {
    let (events, response) = api::events("text/event-stream");
    tokio::spawn(async move {
        loop {
            let sent = tokio::select! {
                _ = events.closed() => break,
                next = follower.next() => match next {
                    Ok(Some(event)) => {
                        let data = serde_json::to_value(&*event).unwrap_or_default();
                        let name = data["event"].as_str().unwrap_or_default().to_owned();
                        events.send_event(&name, &data.to_string())
                    }
                    Ok(None) => break,
                    Err(lagged) => events.send_event("lagged", &json!({ "missed": lagged.0 }).to_string()),
                },
            };
            if sent.is_err() {
                break;
            }
        }
    });
    response
}
