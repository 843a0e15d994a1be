//! Converts between v0 and v1 of the same message.
//!
//! Nearly all bytes are the same in both, so nothing is converted: a v0 type reads and writes v1's bytes. The
//! exceptions are here: [`scheduler_call`] and [`master_call`] and their opposites; and [`evolve`] and [`devolve`], for
//! callers that need the other Rust type. For JSON see [`crate::json::Dialect`].

use std::borrow::Cow;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::binary::{DecodeError, Item, decode, next};
use crate::google::protobuf::Duration;
use crate::mesos::DurationInfo;
use crate::schema::Described;

/// A v0 message that has a v1 message of the same shape.
pub trait Evolve: Described {
    /// Type of the v1 message.
    type V1: Described;
}

const NANOS: i64 = 1_000_000_000;

/// Converts a v0 duration to v1.
#[must_use]
pub fn to_duration(info: &DurationInfo) -> Duration {
    let nanos = i32::try_from(info.nanoseconds % NANOS).unwrap_or_default();
    Duration { seconds: info.nanoseconds / NANOS, nanos }
}

/// Converts a v1 duration to v0; saturates at about 292 years.
#[must_use]
pub fn to_duration_info(duration: &Duration) -> DurationInfo {
    let nanoseconds = duration.seconds.saturating_mul(NANOS).saturating_add(i64::from(duration.nanos));
    DurationInfo { nanoseconds }
}

/// Decodes a v1 `scheduler.Call` from its bytes.
///
/// # Errors
/// See [`decode`].
pub fn scheduler_call(v1: &[u8]) -> Result<crate::mesos::scheduler::Call, DecodeError> {
    decode(&swap(v1, Direction::Devolve, SUBSCRIBE))
}

/// Appends the v1 bytes of a `scheduler.Call`. `Subscribe.force` is omitted: v1 has no such field.
pub fn encode_scheduler_call(call: &crate::mesos::scheduler::Call, out: &mut Vec<u8>) {
    out.extend_from_slice(&swap(&call.encode_to_vec(), Direction::Evolve, SUBSCRIBE));
}

/// Decodes a v1 `master.Call` from its bytes.
///
/// # Errors
/// See [`decode`].
pub fn master_call(v1: &[u8]) -> Result<crate::mesos::master::Call, DecodeError> {
    decode(&swap(v1, Direction::Devolve, DRAIN))
}

/// Appends the v1 bytes of a `master.Call`.
pub fn encode_master_call(call: &crate::mesos::master::Call, out: &mut Vec<u8>) {
    out.extend_from_slice(&swap(&call.encode_to_vec(), Direction::Evolve, DRAIN));
}

/// Converts a v0 message to v1. It is expensive: it encodes and decodes the message.
#[must_use]
pub fn evolve<T: Evolve>(v0: &T) -> T::V1 {
    let bytes = v0.encode_to_vec();
    // Decoding cannot fail: numbers and types are the same after the exceptions were rewritten.
    T::V1::decode(&*converted(&T::full_name(), &bytes, Direction::Evolve)).unwrap_or_default()
}

/// Converts a v1 message to v0. An agent's `checkpoint`, which v1 does not have, is set, as Mesos sets it.
#[must_use]
pub fn devolve<T: Evolve>(v1: &T::V1) -> T {
    let bytes = v1.encode_to_vec();
    T::decode(&*converted(&T::full_name(), &bytes, Direction::Devolve)).unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Evolve,
    Devolve,
}

/// A message that is not the same in v0 and v1, with its field in the call.
#[derive(Clone, Copy)]
struct Exception {
    /// Number of the call's field.
    number: u32,
    /// Function that rewrites the bytes of the inner message.
    rewrite: fn(&[u8], Direction) -> Option<Vec<u8>>,
}

const SUBSCRIBE: Exception = Exception { number: 3, rewrite: subscribe };
const DRAIN: Exception = Exception { number: 21, rewrite: drain };

fn converted<'b>(name: &str, bytes: &'b [u8], direction: Direction) -> Cow<'b, [u8]> {
    let inner = match name {
        "mesos.scheduler.Call" => return swap(bytes, direction, SUBSCRIBE),
        "mesos.master.Call" => return swap(bytes, direction, DRAIN),
        "mesos.scheduler.Call.Subscribe" => subscribe(bytes, direction),
        "mesos.master.Call.DrainAgent" => drain(bytes, direction),
        "mesos.SlaveInfo" if direction == Direction::Devolve => Some([bytes, &CHECKPOINT].concat()),
        _ => None,
    };
    inner.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Encoding of `SlaveInfo.checkpoint` (field 7), set to true.
const CHECKPOINT: [u8; 2] = [7 << 3, 1];

/// Rewrites the field that is an exception; all other bytes are copied. Malformed bytes are copied too, for the decoder
/// to reject.
fn swap(bytes: &[u8], direction: Direction, exception: Exception) -> Cow<'_, [u8]> {
    rewritten(bytes, direction, exception).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

fn rewritten(bytes: &[u8], direction: Direction, exception: Exception) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut rest = bytes;
    while !rest.is_empty() {
        let before = rest;
        let start = bytes.len() - rest.len();
        match next(&mut rest)? {
            (number, Item::Bytes(inner)) if number == exception.number => {
                let out = out.get_or_insert_with(|| bytes[..start].to_vec());
                append(out, number, &(exception.rewrite)(inner, direction)?);
            }
            _ => {
                if let Some(out) = &mut out {
                    out.extend_from_slice(&before[..before.len() - rest.len()]);
                }
            }
        }
    }
    out
}

fn append(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Rewrites `Subscribe`: v0 has `force` as field 2, so its later fields are one number higher than v1's.
fn subscribe(mut bytes: &[u8], direction: Direction) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    while !bytes.is_empty() {
        let (number, item) = next(&mut bytes)?;
        let number = match (direction, number) {
            (_, 1) => 1,
            (Direction::Devolve, 2 | 3) => number + 1,
            (Direction::Evolve, 3 | 4) => number - 1,
            _ => continue,
        };
        if let Item::Bytes(inner) = item {
            append(&mut out, number, inner);
        }
    }
    Some(out)
}

/// Rewrites `DrainAgent`: field 2 is nanoseconds in v0; seconds and nanoseconds in v1.
fn drain(bytes: &[u8], direction: Direction) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    let mut rest = bytes;
    let mut grace: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let before = rest;
        match next(&mut rest)? {
            // A field that occurs twice is one message in two parts.
            (2, Item::Bytes(inner)) => grace.get_or_insert_default().extend_from_slice(inner),
            _ => out.extend_from_slice(&before[..before.len() - rest.len()]),
        }
    }
    if let Some(grace) = grace {
        let inner = match direction {
            Direction::Evolve => to_duration(&DurationInfo::decode(&*grace).ok()?).encode_to_vec(),
            Direction::Devolve => to_duration_info(&Duration::decode(&*grace).ok()?).encode_to_vec(),
        };
        append(&mut out, 2, &inner);
    }
    Some(out)
}
