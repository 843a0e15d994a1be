//! HTTP and libprocess on one port: server, client, content negotiation, streams.
//!
//! - [`http`]: a server with handlers, requests and responses with Mesos's exact texts, and RecordIO streams.
//! - [`libprocess`]: messages between processes, received on the HTTP port and sent over connections of this process.
//! - [`negotiate`]: the content type of a call and of its response, in Mesos's order of checks.
//! - [`route`]: the process and the endpoint of a path.
//! - [`auth`]: HTTP Basic, as pure functions.
//! - [`client`]: calls to such servers, streams included.
//! - [`tls`]: TLS on the same port and to other servers, with the settings of libprocess.
//! - [`Connections`]: the limit of open connections, and the choice of the one that is closed to admit another.
//!
//! This crate does not depend on master or agent, the meaning of messages, JSON or protobuf.
#![forbid(unsafe_code)]

pub mod auth;
mod budget;
pub mod client;
mod connections;
pub mod http;
pub mod libprocess;
mod limits;
pub mod negotiate;
pub mod route;
mod socket;
mod sync;
pub mod tls;

pub use budget::source;
pub use connections::{ConnectionCounts, Connections};
pub use limits::{Limits, open_files_limit, raise_open_files_limit};
pub use socket::Socket;
