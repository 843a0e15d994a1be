//! Decodes calls from their two encodings, with the errors of which content negotiation forms its responses.
//!
//! It validates nothing beyond the encoding.

use protos::json::{Dialect, FromJson, JsonError};
use protos::mesos::{agent, executor, master, scheduler};
use wire::negotiate::{DecodeFailure, Encoding};

fn json<M: FromJson>(body: &[u8]) -> Result<M, DecodeFailure> {
    M::from_json(body, Dialect::V1).map_err(|error: JsonError| {
        let text = error.to_string();
        if error.is_syntax() { DecodeFailure::JsonSyntax(text) } else { DecodeFailure::JsonConvert(text) }
    })
}

/// Decodes a v1 scheduler call.
pub fn scheduler_call(encoding: Encoding, body: &[u8]) -> Result<scheduler::Call, DecodeFailure> {
    match encoding {
        Encoding::Json => json(body),
        Encoding::Protobuf => protos::evolve::scheduler_call(body).map_err(|_| DecodeFailure::Protobuf),
    }
}

/// Decodes a v1 call of the master's operator API.
pub fn master_call(encoding: Encoding, body: &[u8]) -> Result<master::Call, DecodeFailure> {
    match encoding {
        Encoding::Json => json(body),
        Encoding::Protobuf => protos::evolve::master_call(body).map_err(|_| DecodeFailure::Protobuf),
    }
}

/// Decodes a v1 call of the agent's operator API.
pub fn agent_call(encoding: Encoding, body: &[u8]) -> Result<agent::Call, DecodeFailure> {
    match encoding {
        Encoding::Json => json(body),
        Encoding::Protobuf => protos::decode(body).map_err(|_| DecodeFailure::Protobuf),
    }
}

/// Decodes a v1 executor call.
pub fn executor_call(encoding: Encoding, body: &[u8]) -> Result<executor::Call, DecodeFailure> {
    match encoding {
        Encoding::Json => json(body),
        Encoding::Protobuf => protos::decode(body).map_err(|_| DecodeFailure::Protobuf),
    }
}
