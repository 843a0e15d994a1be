//! Content negotiation of the v1 APIs (docs/mesos/transport.md): the encodings of a call and of its response.
//!
//! The checks are in Mesos's order and answer with Mesos's words. The caller passes the decoder: this module knows
//! neither JSON nor protobuf nor any call.

mod accept;
mod agent;
mod call;

pub use accept::{accepts, allows_gzip};
pub use agent::{AGENT_TEXTS, MediaTypes};
pub use call::{CALL_TEXTS, CallTexts, DecodeFailure, accepted_encoding, decode_call};

use crate::http::{JSON, PROTOBUF};

/// Encoding of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON in Mesos's dialect.
    Json,
    /// Binary protobuf.
    Protobuf,
}

impl Encoding {
    /// Returns the media type of the encoding.
    pub fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => JSON,
            Encoding::Protobuf => PROTOBUF,
        }
    }

    /// Returns the encoding of a `Content-Type`, which is compared byte for byte, parameters included.
    pub fn of_content_type(text: &str) -> Option<Encoding> {
        match text {
            JSON => Some(Encoding::Json),
            PROTOBUF => Some(Encoding::Protobuf),
            _ => None,
        }
    }

    /// Returns the encoding of a response. JSON is tried first: preferences by `q` are not compared.
    pub fn of_accept(accept: Option<&str>) -> Option<Encoding> {
        [Encoding::Json, Encoding::Protobuf].into_iter().find(|encoding| accepts(accept, encoding.media_type()))
    }
}
