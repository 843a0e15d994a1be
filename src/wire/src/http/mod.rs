//! The HTTP server: requests and responses, on the same port as libprocess messages.
//!
//! hyper implements HTTP; this module adds what Mesos's clients rely on beyond it (docs/mesos/transport.md): the texts
//! of errors, gzip both ways, streams whose reader's end is noticed at once, silence on malformed requests.
//!
//! It differs from Mesos 1.11 in six points. Idle connections are closed at a limit of their number and after timeouts.
//! A request past a limit is answered with 413, 431 or 503 (Mesos has no limit). HEAD is answered without a body, as
//! HTTP requires. An HTTP/1.0 request gets an HTTP/1.0 status line, and its stream ends with the connection instead of
//! chunks. A request that is pipelined behind a stream waits for the stream's end (Mesos carries it out, and never
//! answers). Chunk sizes are in upper-case hexadecimal.

mod backlog;
mod collect;
mod connection;
mod file;
mod gzip;
mod io;
mod origin;
mod query;
mod refusal;
mod request;
mod response;
mod server;
mod service;
pub mod stream;
mod transport;

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use backlog::Backlog;
pub use origin::ForeignOrigin;
pub use query::{Query, QueryError, percent_decode};
pub use request::{Body, BodyError, BodyStream, Request, last_value};
pub use response::{JSON, PROTOBUF, RECORDIO, Response, TEXT};
pub use server::{BodyRule, Handler, Running, Server};
