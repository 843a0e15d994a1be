//! A request as a handler sees it. It does not know endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Query;
use crate::libprocess::ConnectionId;

/// The last value of a header: Mesos does not join the values of a header that occurs twice.
///
/// A value that is not UTF-8 reads as the replacement character, so that it is present but equal to nothing.
pub fn last_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get_all(name).iter().next_back()?;
    Some(std::str::from_utf8(value.as_bytes()).unwrap_or("\u{fffd}"))
}

/// A request whose head is complete and whose query is well-formed.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as it was sent: percent-encoded, starting with `/`, without query.
    pub path: String,
    /// The query as it was sent, without `?`.
    pub raw_query: Option<String>,
    /// The decoded query.
    pub query: Query,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, whole unless the handler asked for a stream.
    pub body: Body,
    /// The address that it came from.
    pub peer: SocketAddr,
    /// The connection that it came over.
    pub connection: ConnectionId,
    /// The authenticated principal, if [`Handler::admit`](super::Handler::admit) has found one.
    pub principal: Option<Arc<str>>,
}

impl Request {
    /// The last value of a header, whose name is given in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// The path and the query as they were sent, for a redirect.
    pub fn path_and_query(&self) -> String {
        match &self.raw_query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

/// A request's body.
#[derive(Debug)]
pub enum Body {
    /// All of it, decompressed.
    Full(Bytes),
    /// Its parts as they arrive, for a handler that asked for that.
    Stream(BodyStream),
}

impl Body {
    /// The whole body; empty if it is a stream.
    pub fn full(&self) -> &[u8] {
        match self {
            Body::Full(bytes) => bytes,
            Body::Stream(_) => &[],
        }
    }
}

/// Why the rest of a body will not come.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke, or the framing of the body is malformed.
    #[error("the request's body ended early")]
    Broken(#[source] hyper::Error),
    /// The body ended with trailers, which are an error in Mesos.
    #[error("the request's body has trailers")]
    Trailers,
}

/// A body that is read while it arrives.
#[derive(Debug)]
pub struct BodyStream(Incoming);

impl BodyStream {
    pub(super) fn new(incoming: Incoming) -> BodyStream {
        BodyStream(incoming)
    }

    /// The next part, or `None` at the end.
    ///
    /// # Errors
    /// When the connection breaks or the framing is malformed.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let frame = match self.0.frame().await? {
            Ok(frame) => frame,
            Err(error) => return Some(Err(BodyError::Broken(error))),
        };
        Some(frame.into_data().map_err(|_| BodyError::Trailers))
    }
}
