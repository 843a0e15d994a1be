//! The wire's types: every message of Mesos 1.11 as a Rust type, by protobuf package, and the ways to write and read
//! them.
//!
//! `protos::mesos` is v0 (`slave_id`), `protos::mesos::v1` is v1 (`agent_id`). [`decode`] reads the binary form and
//! rejects what a C++ reader rejects; [`json`] is Mesos's own JSON; [`recordio`] frames streams; [`evolve`] converts v0
//! to v1. This crate does not depend on sockets, time, or the meaning of messages.
#![forbid(unsafe_code)]

#[allow(missing_docs, clippy::all, rustdoc::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/wire.rs"));
}

pub mod evolve;
pub mod json;
pub mod recordio;

mod binary;
mod normalise;
mod schema;
mod shared;
mod staged;
mod wireform;

/// What ids and other short texts in the messages are.
pub use base::Text;
pub use binary::{DecodeError, decode, missing_fields};
pub use generated::*;
pub use schema::Described;
pub use shared::Shared;
