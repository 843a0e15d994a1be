//! An HTTP request in the form that handlers receive. It does not know endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Query;
use super::origin::{self, ForeignOrigin};
use crate::libprocess::ConnectionId;

/// Returns the last value of a header: Mesos does not join the values of a header that occurs twice.
///
/// A value that is not UTF-8 reads as the replacement character, so that it is present but equal to nothing.
pub fn last_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get_all(name).iter().next_back()?;
    Some(std::str::from_utf8(value.as_bytes()).unwrap_or("\u{fffd}"))
}

/// An HTTP request with a complete head and a valid query.
#[derive(Debug)]
pub struct Request {
    /// Method of the request.
    pub method: Method,
    /// Path as it was sent: percent-encoded, starting with `/`, without query.
    pub path: String,
    /// Query as it was sent, without `?`.
    pub raw_query: Option<String>,
    /// Decoded query.
    pub query: Query,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Body of the request, whole unless the handler requested a stream.
    pub body: Body,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Connection over which the request arrived.
    pub connection: ConnectionId,
    /// Authenticated principal, if [`Handler::admit`](super::Handler::admit) has set one.
    pub principal: Option<Arc<str>>,
}

impl Request {
    /// Returns the last value of a header. The case of the name does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// Returns whether the method is GET or HEAD. Most endpoints that only read answer any method, as Mesos's do
    /// (docs/mesos/clients.md); a few do not.
    pub fn is_get_or_head(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// Checks that no page of another origin has sent a request that may change something. For
    /// [`Handler::admit`](super::Handler::admit).
    ///
    /// # Errors
    /// `Origin` names neither `Host` nor `X-Forwarded-Host`, or is missing and `Sec-Fetch-Site` names another site.
    pub fn check_origin(&self) -> Result<(), ForeignOrigin> {
        origin::check(&self.method, &self.headers)
    }

    /// Returns the path and the query as they were sent, for a redirect.
    pub fn path_and_query(&self) -> String {
        match &self.raw_query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The body of a request.
#[derive(Debug)]
pub enum Body {
    /// The whole body, decompressed.
    Full(Bytes),
    /// The parts of the body as they arrive, for a handler that requested that.
    Stream(BodyStream),
}

impl Body {
    /// Returns the whole body; empty if it is a stream.
    pub fn full(&self) -> &[u8] {
        match self {
            Body::Full(bytes) => bytes,
            Body::Stream(_) => &[],
        }
    }
}

/// Reason why the rest of a body cannot be read.
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

    /// Returns the next part, or `None` at the end.
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
