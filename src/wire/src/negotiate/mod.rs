//! Content negotiation of the v1 APIs (docs/mesos/transport.md): which encoding a call is in, which one its answer has.
//!
//! The checks stand in Mesos's order and answer with Mesos's words. Decoding itself is handed in: this module knows
//! neither JSON nor protobuf nor any call.

mod accept;
mod agent;
mod call;

pub use accept::{accepts, allows_gzip};
pub use agent::{AGENT_TEXTS, Media};
pub use call::{CALL_TEXTS, CallTexts, DecodeFailure, accepted_encoding, decode_call};

use crate::http::{JSON, PROTOBUF};

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Mesos's JSON dialect.
    Json,
    /// Protobuf binary.
    Protobuf,
}

impl Encoding {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => JSON,
            Encoding::Protobuf => PROTOBUF,
        }
    }

    /// The encoding that a `Content-Type` names: compared byte for byte, parameters included.
    pub fn of_content_type(text: &str) -> Option<Encoding> {
        match text {
            JSON => Some(Encoding::Json),
            PROTOBUF => Some(Encoding::Protobuf),
            _ => None,
        }
    }

    /// The encoding of an answer. JSON is tried first: preferences by `q` are not compared.
    pub fn of_accept(accept: Option<&str>) -> Option<Encoding> {
        [Encoding::Json, Encoding::Protobuf].into_iter().find(|encoding| accepts(accept, encoding.media_type()))
    }
}
