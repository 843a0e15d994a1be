//! `POST /api/v1/scheduler`: the checks of docs/mesos/scheduler-api.md that need no state, in Mesos's order; then the
//! core handles the call.
//!
//! It has no state of frameworks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use master::{Answer, Counter, Done, Input, InvalidCall, RequestId, StreamId};
use protos::mesos::scheduler::{Call, call::Type};
use wire::http::{HeaderName, Request, Response, StatusCode};
use wire::negotiate::{accepted_encoding, decode_call};

use super::handler::Handler;
use super::outputs::Outcome;
use crate::audit;
use crate::codec;
use crate::common::check_off_reactor;
use crate::rejection::rejection;

/// Counts of invalid acknowledgements that are not passed to the core; the core counts further invalid ones.
#[derive(Debug, Default)]
pub(super) struct Refused {
    updates: AtomicU64,
    operations: AtomicU64,
}

impl Refused {
    fn count(&self, kind: Type) {
        match kind {
            Type::Acknowledge => self.updates.fetch_add(1, Ordering::Relaxed),
            Type::AcknowledgeOperationStatus => self.operations.fetch_add(1, Ordering::Relaxed),
            _ => return,
        };
    }

    /// Returns the counts, with the core's counters to which they are added.
    pub(super) fn counts(&self) -> [(Counter, u64); 2] {
        [
            (Counter::InvalidStatusUpdateAcknowledgements, self.updates.load(Ordering::Relaxed)),
            (Counter::InvalidOperationStatusUpdateAcknowledgements, self.operations.load(Ordering::Relaxed)),
        ]
    }
}

const STREAM_ID: &str = "mesos-stream-id";

pub(super) async fn answer(handler: &Handler, request: &Request, principal: Option<Arc<str>>) -> Response {
    let (refused, who) = (handler.refused.clone(), principal.clone());
    match check_off_reactor(request, move |request| check(&refused, request, who.as_deref())).await {
        Ok(call) if call.r#type() == Type::Subscribe => subscribe(handler, request, call, principal).await,
        Ok(call) => other(handler, request, call, principal).await,
        Err(refusal) => *refusal,
    }
}

fn check(refused: &Refused, request: &Request, principal: Option<&str>) -> Result<Box<Call>, Box<Response>> {
    let (call, _) = decode_call(request, codec::scheduler_call)?;
    audit::note_call(|| audit::scheduler_call(&call));
    if let Err(why) = master::validate_call(&call).and_then(|()| validate_principal(&call, principal)) {
        refused.count(call.r#type());
        return Err(Box::new(Response::bad_request(format!("Failed to validate scheduler::Call: {why}"))));
    }
    if matches!(call.r#type(), Type::Subscribe | Type::ReconcileOperations) {
        accepted_encoding(request)?;
    }
    if call.r#type() == Type::Subscribe && request.header(STREAM_ID).is_some() {
        let text = "Subscribe calls should not include the 'Mesos-Stream-Id' header";
        return Err(Box::new(Response::bad_request(text)));
    }
    Ok(Box::new(call))
}

/// Checks that the authenticated principal is that of the framework (docs/mesos/scheduler-api.md, row 11).
fn validate_principal(call: &Call, principal: Option<&str>) -> Result<(), InvalidCall> {
    match &call.subscribe {
        Some(subscribe) if call.r#type() == Type::Subscribe => {
            master::validate_principal(&subscribe.framework_info, principal)
        }
        _ => Ok(()),
    }
}

async fn subscribe(handler: &Handler, request: &Request, call: Box<Call>, principal: Option<Arc<str>>) -> Response {
    let encoding = match accepted_encoding(request) {
        Ok(encoding) => encoding,
        Err(refusal) => return *refusal,
    };
    let (driver, shell) = (handler.driver.clone(), handler.shell.clone());
    let (stream, response) = handler.shell.streams.open(encoding, move |stream| {
        shell.streams.forget(stream);
        driver.submit(Input::StreamClosed { stream: StreamId(stream) });
    });
    let text = crate::random::uuid_text();
    let (number, outcome) = handler.shell.pending_requests.ask();
    handler.driver.handle_now(Input::Subscribe {
        request: RequestId(number),
        stream: StreamId(stream),
        stream_text: text.as_str().into(),
        call,
        principal,
    });
    match outcome.await {
        Ok(Outcome::Open) => response.with_header(HeaderName::from_static(STREAM_ID), &text),
        Ok(Outcome::Answer(refusal)) => {
            handler.shell.streams.close(stream);
            respond(refusal)
        }
        Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn other(handler: &Handler, request: &Request, call: Box<Call>, principal: Option<Arc<str>>) -> Response {
    let stream_id = request.header(STREAM_ID).map(Arc::from);
    let input = |request| Input::SchedulerCall { request, stream_id, call, principal };
    let response = respond_or_fail(handler.decide(input).await);
    // Keep the connection of a subscribed framework: libraries take its end for the end of the subscription.
    if response.status().is_success() { response.keep_connection() } else { response }
}

/// Converts the core's answer to a response; 500 without an answer, because the core has ended.
pub(super) fn respond_or_fail(answer: Option<Answer>) -> Response {
    answer.map_or_else(|| Response::error(StatusCode::INTERNAL_SERVER_ERROR), respond)
}

/// Converts an answer of the core to a response.
pub(super) fn respond(answer: Answer) -> Response {
    match answer {
        Ok(Done::Complete) => Response::empty(StatusCode::OK),
        Ok(Done::Accepted) => Response::empty(StatusCode::ACCEPTED),
        Err(error) => rejection(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_counted_by_kind() {
        let refused = Refused::default();
        for kind in [Type::Acknowledge, Type::Kill, Type::AcknowledgeOperationStatus, Type::Acknowledge] {
            refused.count(kind);
        }
        assert_eq!(refused.counts().map(|(_, count)| count), [2, 1]);
        assert_eq!(
            refused.counts().map(|(counter, _)| counter.name()),
            ["invalid_status_update_acknowledgements", "invalid_operation_status_update_acknowledgements"]
        );
    }
}
