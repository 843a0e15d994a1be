//! The wire's types: every message of Mesos 1.11 as a Rust type, by protobuf package.
//!
//! `protos::mesos` is v0 (`slave_id`), `protos::mesos::v1` is v1 (`agent_id`).
//! This crate knows nothing of sockets, of time, or of what a message means.
#![forbid(unsafe_code)]

#[allow(missing_docs, clippy::all, rustdoc::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/wire.rs"));
}

pub use generated::*;
