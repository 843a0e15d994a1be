//! The messages of Mesos 1.11 as Rust types, by protobuf package, with their binary and JSON forms.
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

/// Type of ids and other short texts in messages.
pub use base::Text;
pub use binary::{DecodeError, decode, missing_fields};
pub use generated::*;
pub use schema::Described;
pub use shared::Shared;
