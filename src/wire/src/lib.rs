//! HTTP and libprocess on one port: serving, calling, content negotiation, streams.
//!
//! - [`http`]: a server for handlers, requests and responses with Mesos's exact texts, RecordIO streams.
//! - [`libprocess`]: messages between processes, received on the HTTP port and sent over connections of our own.
//! - [`negotiate`]: which content type a call is in and which one its answer may have, in Mesos's order of checks.
//! - [`route`]: which process and endpoint a path names.
//! - [`auth`]: HTTP Basic, as pure functions.
//! - [`client`]: calls to such servers, streams included.
//! - [`Connections`]: how many connections a process may have open, and which one is closed to admit another.
//!
//! This crate knows nothing of master or agent, of what a message means, or of JSON and protobuf.
#![forbid(unsafe_code)]

pub mod auth;
pub mod client;
mod connections;
pub mod http;
pub mod libprocess;
mod limits;
pub mod negotiate;
pub mod route;
mod sync;

pub use connections::{ConnectionCounts, Connections};
pub use limits::{Limits, open_files_limit, raise_open_files_limit};
