//! Serves one request of an HTTP connection: checks that apply to every endpoint, the body, then the handler.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use super::collect::{CollectError, Collected, discard};
use super::gzip::gzip;
use super::io::{Control, Phase};
use super::refusal::Refusal;
use super::request::last_value;
use super::response::ResponseBody;
use super::server::{Handler, Shared};
use super::stream::StreamCut;
use super::{Body, BodyRule, BodyStream, Query, Request, Response};
use crate::libprocess::{self, Delivery, Message, MessageSink, Origin, SenderToken};

/// A request that cannot be decoded. The connection closes without any response, as in Mesos.
#[derive(Debug, thiserror::Error)]
#[error("the request cannot be decoded: {0}")]
pub(super) struct Undecodable(&'static str);

/// Reason why hyper sends no response: what follows is in [`Control::take_refusal`].
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    #[error("the request is refused with {0}, and the answer waits")]
    Refused(StatusCode),
}

/// Answers a request, or closes the connection silently.
pub(super) async fn answer<H: Handler, S: MessageSink>(
    request: hyper::Request<Incoming>,
    origin: Origin,
    shared: &Arc<Shared<H, S>>,
    control: &Arc<Control>,
) -> Result<hyper::Response<OutBody>, Unanswered> {
    control.enter(Phase::Handling);
    let (head, incoming) = request.into_parts();
    let accept_encoding = last_value(&head.headers, "accept-encoding").map(str::to_owned);
    let response = respond(head, incoming, origin, shared, control).await;
    let response = if response.as_ref().map_or(true, is_refusal) {
        refuse(response, origin, shared, control).await?
    } else {
        response?
    };
    let response = gzip(response, accept_encoding.as_deref()).await;
    if response.close {
        control.linger.store(true, Ordering::Relaxed);
    }
    if response.keep {
        control.never_close_idle.store(true, Ordering::Relaxed);
    }
    Ok(into_hyper(response, control.clone()))
}

/// Returns whether a response refuses a request because of the client's identity or rights, or of what the client has
/// sent. A 503 does so if it closes the connection: the bodies in progress are too large together.
fn is_refusal(response: &Response) -> bool {
    match response.status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => response.close,
        _ => false,
    }
}

/// Waits until the client may receive the response: the more requests of its address are refused, the longer. If the
/// connection closes then, it waits without the buffers of hyper.
async fn refuse<H, S>(
    response: Result<Response, Undecodable>,
    origin: Origin,
    shared: &Shared<H, S>,
    control: &Control,
) -> Result<Response, Unanswered> {
    let delay = shared.connections.refuse_request(origin.peer.ip());
    match response {
        Ok(response) if delay.is_zero() => Ok(response),
        Ok(response) if !response.close => {
            control.enter(Phase::Refusing);
            let mut stopping = shared.stopping.clone();
            let _ = tokio::time::timeout(delay, stopping.changed()).await;
            Ok(response)
        }
        Ok(response) => {
            let status = response.status;
            control.put_refusal(Refusal { delay, answer: Some(response) });
            Err(Unanswered::Refused(status))
        }
        Err(error) => {
            control.put_refusal(Refusal { delay, answer: None });
            Err(error.into())
        }
    }
}

async fn respond<H: Handler, S: MessageSink>(
    head: Parts,
    incoming: Incoming,
    origin: Origin,
    shared: &Arc<Shared<H, S>>,
    control: &Control,
) -> Result<Response, Undecodable> {
    let path = head.uri.path();
    if !path.starts_with('/') {
        return Ok(Response::error(StatusCode::BAD_REQUEST));
    }
    let query = Query::parse(head.uri.query().unwrap_or_default()).map_err(|_| Undecodable("query"))?;
    if is_message(&head) {
        return respond_to_message(head, incoming, origin, shared, control).await;
    }
    let mut request = Request {
        path: path.to_owned(),
        raw_query: head.uri.query().map(str::to_owned),
        method: head.method,
        query,
        headers: head.headers,
        body: Body::Full(Bytes::new()),
        peer: origin.peer,
        connection: origin.connection,
        principal: None,
    };
    let rule = match request.path.contains("/..") {
        true => Err(Box::new(Response::not_found())),
        false => shared.handler.admit(&mut request),
    };
    // The bytes of the body count until the request is answered.
    let _share = match rule {
        Err(refusal) => return Ok(refuse_body(incoming, *refusal, control).await),
        Ok(BodyRule::Stream) => {
            request.body = Body::Stream(BodyStream::new(incoming));
            None
        }
        Ok(BodyRule::Whole { limit }) => {
            let limit = limit.min(shared.limits.body);
            match read(&request.headers, incoming, limit, origin, shared, control).await? {
                Ok(Collected { body, share }) => {
                    request.body = Body::Full(body);
                    Some(share)
                }
                Err(refusal) => return Ok(*refusal),
            }
        }
    };
    Ok(shared.handler.handle(request).await)
}

/// Reads a body; or returns the response to a request whose body exceeds a limit.
async fn read<H: Handler, S: MessageSink>(
    headers: &HeaderMap,
    incoming: Incoming,
    limit: usize,
    origin: Origin,
    shared: &Arc<Shared<H, S>>,
    control: &Control,
) -> Result<Result<Collected, Box<Response>>, Undecodable> {
    control.needs_body.store(true, Ordering::Relaxed);
    let share = shared.bodies.budget.share(origin.peer.ip());
    let collected = shared.bodies.collect(headers, incoming, limit, share).await;
    control.needs_body.store(false, Ordering::Relaxed);
    let (status, text) = match collected {
        Ok(collected) => return Ok(Ok(collected)),
        Err(CollectError::TooLong) => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("The request's body is longer than {limit} bytes"))
        }
        Err(CollectError::TooDense) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "The request's body is compressed too many times".to_owned())
        }
        Err(CollectError::TooMany) => {
            let text = "The bodies of the requests in progress are too large together; try again later";
            (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
        }
        Err(CollectError::Undecodable(why)) => return Err(Undecodable(why)),
    };
    Ok(Err(Box::new(Response::text(status, text).closing())))
}

/// Returns the response to a request that is refused before its body is read. A short body is read to its end, so that
/// the connection can be used further.
async fn refuse_body(incoming: Incoming, refusal: Response, control: &Control) -> Response {
    control.needs_body.store(true, Ordering::Relaxed);
    let is_read = discard(incoming).await;
    control.needs_body.store(false, Ordering::Relaxed);
    if is_read { refusal } else { refusal.closing() }
}

async fn respond_to_message<H: Handler, S: MessageSink>(
    head: Parts,
    incoming: Incoming,
    origin: Origin,
    shared: &Arc<Shared<H, S>>,
    control: &Control,
) -> Result<Response, Undecodable> {
    match read(&head.headers, incoming, shared.limits.body, origin, shared, control).await? {
        Ok(Collected { body, share: _share }) => {
            poll_fn(|cx| shared.sink.poll_ready(cx)).await;
            Ok(deliver(&head, body, origin, &*shared.sink))
        }
        Err(refusal) => Ok(*refusal),
    }
}

fn is_message(head: &Parts) -> bool {
    head.method == Method::POST
        && (head.headers.contains_key("libprocess-from")
            || last_value(&head.headers, "user-agent").is_some_and(|agent| agent.starts_with("libprocess/")))
}

/// Delivers a libprocess message on a connection that began with ordinary requests.
fn deliver<S: MessageSink>(head: &Parts, body: Bytes, origin: Origin, sink: &S) -> Response {
    let from = last_value(&head.headers, "libprocess-from");
    let agent = last_value(&head.headers, "user-agent");
    let is_libprocess = agent.is_some_and(|agent| agent.starts_with("libprocess/"));
    let sender_token = last_value(&head.headers, SenderToken::HEADER).and_then(|text| text.parse().ok());
    let origin = Origin { is_libprocess, sender_token, ..origin };
    let message = Message::from_request(head.uri.path(), from, agent, body, origin);
    match message.and_then(|message| libprocess::deliver(message, sink)) {
        Ok(Delivery::Accepted) => Response::accepted().keep_connection(),
        Ok(_) => Response::accepted(),
        Err(libprocess::Refusal::NoProcess) => Response::not_found(),
        Err(refusal @ (libprocess::Refusal::AddressMismatch { .. } | libprocess::Refusal::Forged { .. })) => {
            Response::bad_request(refusal.to_string())
        }
        Err(refusal) => Response::internal(refusal.to_string()),
    }
}

fn into_hyper(response: Response, control: Arc<Control>) -> hyper::Response<OutBody> {
    control.body_done.store(false, Ordering::Relaxed);
    if let ResponseBody::Stream(source) = &response.body {
        source.attach(control.cut.clone());
        control.enter(Phase::Streaming);
    } else {
        control.enter(Phase::Answering);
    }
    let mut out = hyper::Response::new(OutBody { body: response.body, control });
    *out.status_mut() = response.status;
    *out.headers_mut() = response.headers;
    if response.close {
        out.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    out
}

/// A response's body that is being sent. Its end is recorded, so that bytes that hyper writes after it are recognized.
pub(super) struct OutBody {
    body: ResponseBody,
    control: Arc<Control>,
}

impl http_body::Body for OutBody {
    type Data = Bytes;
    type Error = StreamCut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamCut>>> {
        match &mut self.body {
            ResponseBody::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            ResponseBody::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            ResponseBody::Parts(parts) => Poll::Ready(parts.pop_front().map(|part| Ok(Frame::data(part)))),
            ResponseBody::File(file) => file.poll_piece(cx).map_err(|_| StreamCut),
            ResponseBody::Stream(source) => source.poll_record(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            ResponseBody::Full(bytes) => bytes.is_empty(),
            ResponseBody::Parts(parts) => parts.is_empty(),
            ResponseBody::File(file) => file.left() == 0,
            ResponseBody::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ResponseBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Parts(parts) => SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum()),
            ResponseBody::File(file) => SizeHint::with_exact(file.left()),
            ResponseBody::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for OutBody {
    fn drop(&mut self) {
        self.control.body_done.store(true, Ordering::Relaxed);
    }
}
