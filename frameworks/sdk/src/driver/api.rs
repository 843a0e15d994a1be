//! Serves a framework's own HTTP API: JSON requests and responses, and event streams.
//!
//! One function answers each [`Call`]. Errors are JSON, too: `{"error": "what, and the rule"}`. Calls that a browser
//! sends for a page of another origin are refused before that, with 403, unless their method is GET or HEAD.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::Limits;
use wire::http::stream::{self, StreamEnd, StreamHandle};
use wire::http::{BodyRule, Handler, Query, Request, Server, percent_decode};
use wire::libprocess::NoMessages;
use wire::tls::{Role, Settings, Tls, TlsError};

/// A response, made by [`json`], [`error`], [`events`], or directly, for other content types.
pub use wire::http::Response;
pub use wire::http::{HeaderName, Method, StatusCode};

/// Default limit of a request's body in bytes; [`serve_with`] takes another.
pub const BODY_MAX: usize = 8 << 20;
/// Maximum number of bytes of events that are queued for a reader before it is disconnected.
const EVENTS_MAX: usize = 8 << 20;
/// Size of the kernel's send buffer for a reader of [`serve_prompt`], in bytes; the kernel doubles it.
const PROMPT_BUFFER: u32 = 16 << 10;
/// Maximum number of bytes for a reader of [`serve_prompt`] that the kernel has not sent.
const PROMPT_UNSENT: u32 = 4 << 10;
/// Maximum number of clients that are connected at once; idle ones are disconnected to admit others.
const CONNECTIONS_MAX: usize = 4096;

/// A framework's HTTP API: the function that answers its calls.
pub trait Api: Send + Sync + 'static {
    /// Answers one call.
    fn answer(&self, call: Call) -> impl Future<Output = Response> + Send;
}

/// A request to the API.
#[derive(Debug)]
pub struct Call {
    /// HTTP method of the request.
    pub method: Method,
    /// Segments of the path between slashes, decoded; none of them is empty.
    pub path: Vec<String>,
    /// Decoded parameters of the query.
    pub query: Query,
    /// Complete body of the request.
    pub body: Bytes,
    /// The rest of the request, such as the headers. Its body is empty.
    pub request: Request,
}

impl Call {
    /// Returns method and path in a form for `match`: `("GET", ["jobs", name])`.
    pub fn route(&self) -> (&str, Vec<&str>) {
        (self.method.as_str(), self.path.iter().map(String::as_str).collect())
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// Returns the response to send: status 400, with what is invalid and where.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Box<Response>> {
        serde_json::from_slice(&self.body)
            .map_err(|why| Box::new(error(StatusCode::BAD_REQUEST, format!("the body: {why}"))))
    }
}

/// Returns a response in JSON.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => with_status(status, body),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {why}")),
    }
}

/// Returns an error response in JSON.
pub fn error(status: StatusCode, text: impl Into<String>) -> Response {
    let body = serde_json::json!({ "error": text.into() });
    with_status(status, body.to_string().into_bytes())
}

/// Returns a response with this status and a body that is JSON already.
fn with_status(status: StatusCode, body: Vec<u8>) -> Response {
    Response::ok_json(body).with_status(status)
}

/// Returns a streaming response and the handle through which its body is sent; dropping the handle ends it. The content
/// type of server-sent events is `text/event-stream`, that of JSON lines `application/x-ndjson`.
pub fn events(content_type: &'static str) -> (Events, Response) {
    let (handle, response) = stream::open(content_type, EVENTS_MAX);
    (Events(handle), response)
}

/// Handle through which the events of a response are sent. Dropping it ends the response.
#[derive(Debug)]
pub struct Events(StreamHandle);

impl Events {
    /// Sends bytes as they are, without waiting.
    ///
    /// # Errors
    /// The reader is gone, or is disconnected now because it does not read.
    pub fn send(&self, bytes: impl Into<Bytes>) -> Result<(), StreamEnd> {
        self.0.send_record(&stream::Record::unframed(bytes.into()))
    }

    /// Sends one server-sent event.
    ///
    /// # Errors
    /// As [`send`](Events::send).
    pub fn send_event(&self, name: &str, data: &str) -> Result<(), StreamEnd> {
        let data = data.replace('\n', "\ndata: ");
        self.send(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// Returns the number of bytes that are queued for the reader.
    pub fn queued(&self) -> usize {
        self.0.queued()
    }

    /// Waits until the reader is gone.
    pub async fn closed(&self) -> StreamEnd {
        self.0.wait_end().await
    }
}

/// A running server of an API; dropping it stops it.
#[derive(Debug)]
pub struct Serving {
    running: wire::http::Running,
    /// Scheme of the API's URL: `https` if it takes TLS, otherwise `http`.
    scheme: &'static str,
}

impl Serving {
    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// Returns the URL of the API for a framework's `webui_url`. A bound address that stands for all addresses of this
    /// machine becomes its host name.
    pub fn url(&self) -> String {
        let address = self.address();
        if address.ip().is_unspecified()
            && let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname")
        {
            return format!("{}://{}:{}", self.scheme, name.trim(), address.port());
        }
        format!("{}://{address}", self.scheme)
    }

    /// Stops accepting connections, and waits until the responses in progress are sent.
    pub async fn stop(self) {
        self.running.stop().await;
    }
}

/// Serves an API at an address; port 0 selects a free one. Requires a tokio runtime.
///
/// It takes TLS where the environment turns TLS on (`LIBPROCESS_SSL_ENABLED`), as masters and agents do.
///
/// # Errors
/// The address is in use or is not one of this machine (the system's error), or the TLS settings are invalid.
pub fn serve<A: Api>(address: SocketAddr, api: Arc<A>) -> io::Result<Serving> {
    serve_with(address, api, BODY_MAX)
}

/// Serves an API like [`serve`], with another limit for the length of a request's body, in bytes.
///
/// # Errors
/// As [`serve`].
pub fn serve_with<A: Api>(address: SocketAddr, api: Arc<A>, body_max: usize) -> io::Result<Serving> {
    serve_within(address, api, Limits { body: body_max, ..Limits::default() })
}

/// Serves an API like [`serve`], for streams whose sender must detect soon that a reader does not keep up
/// ([`Events::queued`]): the kernel's send buffers are small.
///
/// # Errors
/// As [`serve`].
pub fn serve_prompt<A: Api>(address: SocketAddr, api: Arc<A>) -> io::Result<Serving> {
    serve_within(
        address,
        api,
        Limits { body: BODY_MAX, send_buffer: Some(PROMPT_BUFFER), unsent: Some(PROMPT_UNSENT), ..Limits::default() },
    )
}

fn serve_within<A: Api>(address: SocketAddr, api: Arc<A>, limits: Limits) -> io::Result<Serving> {
    // The framework needs file descriptors for more than its clients.
    let open_files = wire::open_files_limit().map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    let connections = CONNECTIONS_MAX.min(open_files / 2);
    let limits = Limits { stream: EVENTS_MAX, connections, ..limits };
    let tls = tls().map_err(io::Error::other)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = Server::bind(address, limits)?.with_tls(tls);
    Ok(Serving { running: server.serve(Arc::new(Answering(api)), Arc::new(NoMessages)), scheme })
}

/// Returns the server side TLS of this process, or `None` if its environment does not turn TLS on.
pub(super) fn tls() -> Result<Option<Tls>, TlsError> {
    let settings = Settings::from_environment()?;
    if settings.enabled { Tls::load(settings, Role::Server).map(Some) } else { Ok(None) }
}

struct Answering<A>(Arc<A>);

impl<A: Api> Handler for Answering<A> {
    async fn handle(&self, mut request: Request) -> Response {
        let body = match std::mem::replace(&mut request.body, wire::http::Body::Full(Bytes::new())) {
            wire::http::Body::Full(bytes) => bytes,
            wire::http::Body::Stream(_) => Bytes::new(),
        };
        let path: Result<Vec<String>, _> =
            request.path.split('/').filter(|part| !part.is_empty()).map(percent_decode).collect();
        let path = match path {
            Ok(path) => path,
            Err(why) => return error(StatusCode::BAD_REQUEST, base::error_chain(&why)),
        };
        let call = Call { method: request.method.clone(), path, query: request.query.clone(), body, request };
        self.0.answer(call).await
    }

    fn admit(&self, request: &mut Request) -> Result<BodyRule, Box<Response>> {
        // The API has no authentication: any page in a browser that reaches it could otherwise run commands.
        if !request.is_get_or_head() {
            request.check_origin().map_err(|foreign| Box::new(error(StatusCode::FORBIDDEN, foreign.to_string())))?;
        }
        Ok(BodyRule::Whole { limit: usize::MAX })
    }
}
