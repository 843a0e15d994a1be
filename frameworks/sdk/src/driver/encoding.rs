//! The two encodings of calls and events: JSON and protobuf.

use bytes::Bytes;
use prost::Message;
use protos::DecodeError;
use protos::json::{Dialect, FromJson, JsonError, ToJson};
use wire::http::{JSON, PROTOBUF};

use crate::v1::scheduler::{Call, Event};

/// An error of decoding an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    /// Invalid JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Invalid protobuf.
    #[error(transparent)]
    Protobuf(#[from] DecodeError),
}

/// Encoding of calls and events. Both encodings have the same content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Binary protobuf: smaller and faster.
    #[default]
    Protobuf,
    /// JSON: text that a person can read.
    Json,
}

impl Encoding {
    /// Returns the media type of the encoding.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Encoding::Protobuf => PROTOBUF,
            Encoding::Json => JSON,
        }
    }

    /// Encodes a call as the body of a request.
    pub(super) fn encode(self, call: &Call) -> Bytes {
        match self {
            Encoding::Protobuf => call.encode_to_vec().into(),
            Encoding::Json => call.json(Dialect::V1).into(),
        }
    }

    /// Decodes an event from a record.
    pub(super) fn decode(self, record: &Bytes) -> Result<Event, EventError> {
        match self {
            Encoding::Protobuf => Ok(protos::decode(record)?),
            Encoding::Json => Ok(Event::from_json(record, Dialect::V1)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::scheduler::event::{Offers, Type};

    #[test]
    fn both_ways() {
        let call = Call { framework_id: Some(crate::v1::FrameworkId { value: "F".into() }), ..Default::default() };
        assert_eq!(Encoding::Json.encode(&call), r#"{"framework_id":{"value":"F"}}"#);
        let event = Event { r#type: Some(Type::Offers as i32), offers: Some(Offers::default()), ..Default::default() };
        assert_eq!(Encoding::Json.decode(&Bytes::from(r#"{"type":"OFFERS","offers":{}}"#)).unwrap(), event);
        assert_eq!(Encoding::Protobuf.decode(&event.encode_to_vec().into()).unwrap(), event);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            assert!(encoding.decode(&Bytes::from_static(b"{\"type\":")).is_err(), "{encoding:?}");
        }
        // A RESCIND event without its offer: a required field is missing.
        assert!(Encoding::Protobuf.decode(&Bytes::from_static(&[0x22, 0x00])).is_err());
    }
}
