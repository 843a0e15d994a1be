//! `POST /api/v1/executor`: the checks of docs/mesos/executors.md that need no state, in Mesos's order; then the core
//! handles the call.
//!
//! It has no state of executors.

use agent::{Done, Input, Proof, RequestId, StreamId};
use protos::mesos::executor::{Call, call::Type};
use wire::http::{Request, Response, StatusCode};
use wire::negotiate::{Encoding, accepted_encoding, decode_call};

use super::handler::Handler;
use super::operator_api::respond;
use crate::codec;
use crate::common::check_off_reactor;

pub(super) async fn answer(handler: &Handler, request: &Request) -> Response {
    let proof = match handler.shell.tokens.proof(request.header("authorization")) {
        Ok(proof) => proof,
        Err(refusal) => return *refusal,
    };
    match check_off_reactor(request, check).await {
        Ok((call, Some(encoding))) => subscribe(handler, call, proof, encoding).await,
        Ok((call, None)) => other(handler, call, proof).await,
        Err(refusal) => *refusal,
    }
}

/// Decodes and checks a call. Returns it, and for a SUBSCRIBE the encoding of its stream.
fn check(request: &Request) -> Result<(Box<Call>, Option<Encoding>), Box<Response>> {
    let (call, _) = decode_call(request, codec::executor_call)?;
    if let Err(why) = super::validate::executor_call(&call) {
        return Err(Box::new(Response::bad_request(format!("Failed to validate Executor::Call: {why}"))));
    }
    let encoding = match call.r#type() {
        Type::Subscribe => Some(accepted_encoding(request)?),
        _ => None,
    };
    Ok((Box::new(call), encoding))
}

async fn subscribe(handler: &Handler, call: Box<Call>, proof: Proof, encoding: Encoding) -> Response {
    let (driver, shell) = (handler.driver.clone(), handler.shell.clone());
    let (stream, response) = handler.shell.streams.open(encoding, move |stream| {
        shell.streams.forget(stream);
        driver.submit(Input::ExecutorStreamClosed { stream: StreamId(stream) });
    });
    let (number, outcome) = handler.shell.pending_requests.ask();
    let request = RequestId(number);
    handler.driver.handle_now(Input::ExecutorSubscribe { stream: StreamId(stream), request, call, proof });
    match outcome.await {
        Ok(Ok(Done::Stream)) => response,
        Ok(refusal) => {
            handler.shell.streams.close(stream);
            respond(refusal, encoding)
        }
        Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn other(handler: &Handler, call: Box<Call>, proof: Proof) -> Response {
    let (number, outcome) = handler.shell.pending_requests.ask();
    handler.driver.handle_now(Input::ExecutorCall { request: RequestId(number), call, proof });
    match outcome.await {
        // Keep the connection of a subscribed executor: libraries take its end for the end of the subscription, and an
        // executor without checkpoints then ends.
        Ok(answer @ Ok(Done::Accepted)) => respond(answer, Encoding::Json).keep_connection(),
        Ok(answer) => respond(answer, Encoding::Json),
        Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
