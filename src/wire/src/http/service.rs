//! One request of a connection that hyper speaks: checks that hold for every endpoint, the body, then the handler.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_ENCODING, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::gzip::{GunzipError, gunzip, gzip};
use super::io::{Control, Phase};
use super::request::last_value;
use super::response::ResponseBody;
use super::server::{Handler, Shared};
use super::stream::StreamCut;
use super::{Body, BodyStream, Query, Request, Response};
use crate::libprocess::{Delivery, Message, MessageSink, Origin, Refusal, Session};

/// The connection closes without any answer, as Mesos does on a request that it cannot decode.
#[derive(Debug, thiserror::Error)]
#[error("the request cannot be decoded: {0}")]
pub(super) struct Undecodable(&'static str);

/// Answers a request, or closes the connection silently.
pub(super) async fn answer<H: Handler, S: MessageSink>(
    request: hyper::Request<Incoming>,
    origin: Origin,
    shared: &Arc<Shared<H, S>>,
    control: &Arc<Control>,
) -> Result<hyper::Response<OutBody>, Undecodable> {
    control.enter(Phase::Handling);
    let (head, incoming) = request.into_parts();
    let accept_encoding = last_value(&head.headers, "accept-encoding").map(str::to_owned);
    let response = respond(head, incoming, origin, shared, control).await?;
    let response = gzip(response, accept_encoding.as_deref()).await;
    if response.close {
        control.linger.store(true, Ordering::Relaxed);
    }
    if response.keep {
        control.keep.store(true, Ordering::Relaxed);
    }
    Ok(into_hyper(response, control.clone()))
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
    let message = is_message(&head);
    if !message && shared.handler.streams_body(path, &head.headers) {
        let body = Body::Stream(BodyStream::new(incoming));
        return handle(head, query, body, origin.peer, shared).await;
    }
    let limit = shared.limits.body;
    control.needs_body.store(true, Ordering::Relaxed);
    let collected = collect(&head, incoming, limit).await;
    control.needs_body.store(false, Ordering::Relaxed);
    let body = match collected {
        Ok(body) => body,
        Err(CollectError::TooLong) => {
            let text = format!("The request's body is longer than {limit} bytes");
            return Ok(Response::text(StatusCode::PAYLOAD_TOO_LARGE, text).closing());
        }
        Err(CollectError::Undecodable(why)) => return Err(Undecodable(why)),
    };
    if message {
        poll_fn(|cx| shared.sink.poll_ready(cx)).await;
        return Ok(deliver(&head, body, origin, &*shared.sink));
    }
    handle(head, query, Body::Full(body), origin.peer, shared).await
}

async fn handle<H: Handler, S: MessageSink>(
    head: Parts,
    query: Query,
    body: Body,
    peer: SocketAddr,
    shared: &Arc<Shared<H, S>>,
) -> Result<Response, Undecodable> {
    let path = head.uri.path();
    if path.contains("/..") {
        return Ok(Response::not_found());
    }
    let request = Request {
        method: head.method,
        path: path.to_owned(),
        raw_query: head.uri.query().map(str::to_owned),
        query,
        headers: head.headers,
        body,
        peer,
    };
    Ok(shared.handler.handle(request).await)
}

fn is_message(head: &Parts) -> bool {
    head.method == Method::POST
        && (head.headers.contains_key("libprocess-from")
            || last_value(&head.headers, "user-agent").is_some_and(|agent| agent.starts_with("libprocess/")))
}

/// A libprocess message on a connection that began with ordinary requests.
fn deliver<S: MessageSink>(head: &Parts, body: Bytes, origin: Origin, sink: &S) -> Response {
    let from = last_value(&head.headers, "libprocess-from");
    let agent = last_value(&head.headers, "user-agent");
    let is_libprocess = agent.is_some_and(|agent| agent.starts_with("libprocess/"));
    let session = last_value(&head.headers, Session::HEADER).and_then(|text| text.parse().ok());
    let origin = Origin { is_libprocess, session, ..origin };
    let message = Message::from_request(head.uri.path(), from, agent, body, origin);
    match message.and_then(|message| crate::libprocess::deliver(message, sink)) {
        Ok(Delivery::Accepted) => Response::accepted().keep_connection(),
        Ok(_) => Response::accepted(),
        Err(Refusal::NoProcess) => Response::not_found(),
        Err(refusal @ (Refusal::AddressMismatch { .. } | Refusal::Forged { .. })) => {
            Response::bad_request(refusal.to_string())
        }
        Err(refusal) => Response::internal(refusal.to_string()),
    }
}

enum CollectError {
    TooLong,
    Undecodable(&'static str),
}

/// The whole body, decompressed.
async fn collect(head: &Parts, mut incoming: Incoming, limit: usize) -> Result<Bytes, CollectError> {
    let announced = incoming.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > limit) {
        return Err(CollectError::TooLong);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|_| CollectError::Undecodable("body"))?;
        let data = frame.into_data().map_err(|_| CollectError::Undecodable("trailers"))?;
        if first.len() + rest.len() + data.len() > limit {
            return Err(CollectError::TooLong);
        }
        // Most bodies come in one part, which is then not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve(usize::try_from(announced).unwrap_or(0).max(first.len() + data.len()));
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    let body = if rest.is_empty() { first } else { rest.freeze() };
    if last_value(&head.headers, CONTENT_ENCODING.as_str()) != Some("gzip") {
        return Ok(body);
    }
    gunzip(body, limit).await.map_err(|error| match error {
        GunzipError::TooLong(_) => CollectError::TooLong,
        GunzipError::Malformed(_) => CollectError::Undecodable("gzip"),
    })
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

/// A response's body on its way out; its end is noted, so that what follows unasked is recognised.
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
            ResponseBody::Stream(source) => source.poll_record(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            ResponseBody::Full(bytes) => bytes.is_empty(),
            ResponseBody::Parts(parts) => parts.is_empty(),
            ResponseBody::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ResponseBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Parts(parts) => SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum()),
            ResponseBody::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for OutBody {
    fn drop(&mut self) {
        self.control.body_done.store(true, Ordering::Relaxed);
    }
}
