//! Small value types that all crates share: ids, libprocess process ids, short texts, time and its text form, delays
//! between tries, random numbers, intervals of means, UUIDs, the response to a challenge, Prometheus's text format.
//!
//! This crate does not depend on protobuf, resources, or the system clock: a [`Time`] is always passed in.
#![forbid(unsafe_code)]

mod backoff;
mod byte_text;
mod cram_md5;
mod digits;
mod duration_text;
mod error_chain;
mod hex;
mod ids;
mod interval;
mod lock;
mod pid;
pub mod prometheus;
mod split_mix;
mod text;
mod time;
mod uuid;

pub use backoff::Backoff;
pub use byte_text::{format_bytes, parse_bytes};
pub use cram_md5::{cram_md5, same_text};
pub use digits::{ip_text, numbered};
pub use duration_text::{DurationTextError, format_duration, parse_duration, parse_span};
pub use error_chain::error_chain;
pub use hex::hex;
pub use ids::{AgentId, ContainerId, ExecutorId, FrameworkId, IdError, OfferId, OperationId, TaskId};
pub use interval::{mean_and_interval, student};
pub use lock::lock;
pub use pid::{Pid, PidError};
pub use split_mix::{GAMMA, fraction, scramble, split_mix};
pub use text::Text;
pub use time::Time;
pub use uuid::{InvalidUuid, uuid, uuid_from, uuid_text, valid_uuid};
