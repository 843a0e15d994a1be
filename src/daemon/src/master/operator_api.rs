//! `POST /api/v1`: the operator API of the master (docs/mesos/operator-api.md).
//!
//! A snapshot answers calls that read, on another thread than the reactor's; the core answers calls that change the
//! cluster.

use std::sync::Arc;

use authorizer::Action;
use master::{Input, RequestId, StreamId};
use protos::mesos::master::call::Type;
use protos::mesos::master::{Call, Response as Answer};
use wire::http::{Query, Request, Response, StatusCode};
use wire::negotiate::{Encoding, accepted_encoding, decode_call};

use super::handler::Handler;
use super::outputs::Outcome;
use super::scheduler_api::{respond, respond_or_fail};
use super::{metrics, tepui_calls, validate, views};
use crate::acls::Caller;
use crate::audit;
use crate::codec;
use crate::common::{calls, check_off_reactor, unknown_call};
use crate::streams::encode_v1;

pub(super) async fn answer(handler: &Handler, request: &Request, caller: Caller) -> Response {
    if let Some((own, call)) = tepui_calls::find(request) {
        return tepui_calls::answer(handler, request, own, call, caller).await;
    }
    match check_off_reactor(request, check).await {
        Ok((call, encoding)) => act(handler, call, encoding, caller).await,
        Err(refusal) => *refusal,
    }
}

fn check(request: &Request) -> Result<(Call, Encoding), Box<Response>> {
    let (call, _) = decode_call(request, codec::master_call)?;
    audit::note_call(|| audit::master_call(&call));
    if let Err(why) = validate::operator_call(&call) {
        unknown_call::log(request, |number| Some(Type::try_from(number).ok()?.as_str_name()));
        return Err(Box::new(Response::bad_request(format!("Failed to validate master::Call: {why}"))));
    }
    let encoding = accepted_encoding(request)?;
    Ok((call, encoding))
}

async fn act(handler: &Handler, call: Call, encoding: Encoding, caller: Caller) -> Response {
    match call.r#type() {
        Type::Unknown => Response::error(StatusCode::NOT_IMPLEMENTED),
        Type::Subscribe => subscribe(handler, encoding, caller.principal).await,
        Type::GetState
        | Type::GetAgents
        | Type::GetFrameworks
        | Type::GetExecutors
        | Type::GetTasks
        | Type::GetRoles
        | Type::GetWeights
        | Type::GetOperations
        | Type::GetMaster
        | Type::GetQuota
        | Type::GetMaintenanceStatus
        | Type::GetMaintenanceSchedule => read(handler, call.r#type(), encoding, caller).await,
        Type::GetHealth
        | Type::GetFlags
        | Type::GetVersion
        | Type::GetMetrics
        | Type::GetLoggingLevel
        | Type::SetLoggingLevel
        | Type::ListFiles
        | Type::ReadFile => match of_the_daemon(handler, call, &caller).await {
            Ok(Some(answer)) => Response::ok_body(encoding.media_type(), encode_v1(encoding, &answer)),
            Ok(None) => Response::empty(StatusCode::OK),
            Err(refusal) => *refusal,
        },
        _ => change(handler, call, caller.principal).await,
    }
}

/// Answers a call from a snapshot.
async fn read(handler: &Handler, kind: Type, encoding: Encoding, caller: Caller) -> Response {
    let name = format!("{} {encoding:?}", kind.as_str_name());
    let write = move |context: views::Context| vec![views::calls::answer(&context, kind, encoding).into()];
    let written = handler.document(name, Query::default(), caller, write);
    match written.await {
        Ok(parts) => Response::ok_body(encoding.media_type(), parts.first().cloned().unwrap_or_default()),
        Err(why) => Response::internal(why),
    }
}

/// Answers a call about the process rather than the cluster. Returns `None` if the response has no content.
async fn of_the_daemon(handler: &Handler, call: Call, caller: &Caller) -> Result<Option<Answer>, Box<Response>> {
    match call.r#type() {
        Type::GetFlags => caller.authorize(Action::ViewFlags, None)?,
        Type::SetLoggingLevel => caller.authorize(Action::SetLogLevel, None)?,
        Type::ListFiles => handler.authorize_file(call.list_files.as_ref().map_or("", |list| &list.path), caller)?,
        Type::ReadFile => handler.authorize_file(call.read_file.as_ref().map_or("", |read| &read.path), caller)?,
        _ => {}
    }
    calls::of_the_daemon!(master, &handler.common, call, metrics::collect(handler))
}

/// Passes a call that changes the cluster to the core, and answers with its result.
pub(super) async fn change(handler: &Handler, call: Call, principal: Option<Arc<str>>) -> Response {
    respond_or_fail(decide(handler, call, principal).await)
}

/// Returns the core's answer; `None` if the core ends before.
pub(super) async fn decide(handler: &Handler, call: Call, principal: Option<Arc<str>>) -> Option<master::Answer> {
    let call = Box::new(call);
    handler.decide(|request| Input::OperatorCall { request, call, principal }).await
}

async fn subscribe(handler: &Handler, encoding: Encoding, principal: Option<Arc<str>>) -> Response {
    // The first event of the stream is the state of the whole cluster.
    if let Err(refusal) = handler.shell.streams.check_room() {
        return *refusal;
    }
    let (driver, shell) = (handler.driver.clone(), handler.shell.clone());
    let (stream, response) = handler.shell.streams.open(encoding, move |stream| {
        shell.streams.forget(stream);
        driver.submit(Input::StreamClosed { stream: StreamId(stream) });
    });
    let (number, outcome) = handler.shell.pending_requests.ask();
    handler.driver.handle_now(Input::OperatorSubscribe {
        request: RequestId(number),
        stream: StreamId(stream),
        principal,
    });
    match outcome.await {
        Ok(Outcome::Open) => response,
        Ok(Outcome::Answer(refusal)) => {
            handler.shell.streams.close(stream);
            respond(refusal)
        }
        Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
