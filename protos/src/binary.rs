//! Decodes messages from protobuf's binary form as strictly, and as leniently, as a C++ reader does.
//!
//! prost alone does not detect a missing required field and keeps enum numbers without a name; this module does the
//! rest.

use crate::json::generated::{ENUMS, MESSAGES};
use crate::normalise;
use crate::schema::{Described, FieldInfo, Kind, Label, MessageInfo};

/// Maximum nesting depth of messages, as in protobuf's own readers.
pub(crate) const MAX_DEPTH: usize = 100;

/// An error of decoding a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Required fields are missing; the paths, separated by comma and space, in the order of protobuf's own list.
    #[error("Missing required fields: {0}")]
    Missing(String),
    /// The bytes are not protobuf: cut off, nested too deep, or with an impossible tag or length.
    #[error("not a {0}: malformed protobuf")]
    Malformed(&'static str),
    /// The message would take far more memory than its bytes.
    #[error("{0}: its lists need too much memory")]
    TooLarge(&'static str),
}

/// Decodes one message. Required fields must be present. An enum number without a name counts as unset, and a field of
/// an unexpected wire type as unknown. In text that is not UTF-8, invalid bytes are replaced by U+FFFD.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode<M: Described>(bytes: &[u8]) -> Result<M, DecodeError> {
    let info = &MESSAGES[usize::from(M::INDEX)];
    let mut scan = Scan { budget: bytes.len().saturating_mul(64).max(16 << 20) };
    match scan.message(info, bytes, 0) {
        Found::Good => {
            if let Ok(message) = M::decode(bytes) {
                return Ok(message);
            }
        }
        Found::TooLarge => return Err(DecodeError::TooLarge(info.name)),
        Found::Odd => {}
    }
    slowly(info, bytes)
}

/// Returns the paths of the required fields that are missing in `bytes` as an `M`: `name, task_id.value,
/// resources[0].type`. It is empty if nothing is missing, and if the bytes are not a message at all.
#[must_use]
pub fn missing_fields<M: Described>(bytes: &[u8]) -> Vec<String> {
    match normalise::message(&MESSAGES[usize::from(M::INDEX)], bytes) {
        Some(normal) => normal.missing,
        None => Vec::new(),
    }
}

/// Rewrites the bytes in the plain form that prost reads as C++ would, and decodes that. The error has the missing
/// fields.
#[cold]
fn slowly<M: Described>(info: &'static MessageInfo, bytes: &[u8]) -> Result<M, DecodeError> {
    let normal = normalise::message(info, bytes).ok_or(DecodeError::Malformed(info.name))?;
    if !normal.missing.is_empty() {
        return Err(DecodeError::Missing(normal.missing.join(", ")));
    }
    M::decode(normal.bytes.as_slice()).map_err(|_| DecodeError::Malformed(info.name))
}

/// Result of the check of a message's bytes.
#[derive(PartialEq, Eq)]
enum Found {
    /// prost decodes the message as C++ would, except for text that is not UTF-8.
    Good,
    /// The message is invalid or unusual: the slow path decides.
    Odd,
    TooLarge,
}

struct Scan {
    /// Bytes of memory that elements of lists may still take.
    budget: usize,
}

impl Scan {
    fn message(&mut self, info: &'static MessageInfo, bytes: &[u8], depth: usize) -> Found {
        if depth >= MAX_DEPTH {
            return Found::Odd;
        }
        let mut rest = bytes;
        let mut seen = 0u64;
        while !rest.is_empty() {
            let Some((number, wire)) = key(&mut rest) else { return Found::Odd };
            let Some(field) = info.field(number) else {
                match value(number, wire, &mut rest) {
                    Some(_) => continue,
                    None => return Found::Odd,
                }
            };
            let bit = 1u64 << (field.order & 63);
            let again = seen & bit != 0;
            seen |= bit;
            // Dispatches on the kind and not on the value: only one wire type is valid, and most fields need no further
            // check.
            let found = match (field.kind, wire) {
                (Kind::Message, 2) => delimited(&mut rest).map(|inner| self.inner(field, inner, again, depth)),
                (Kind::Enum, 0) => varint(&mut rest).filter(|n| known(field, *n)).map(|_| Found::Good),
                (Kind::Varint, 0) => varint(&mut rest).map(|_| plain(field)),
                (Kind::Fixed64, 1) => take(&mut rest, 8).map(|_| plain(field)),
                (Kind::Text | Kind::Bytes, 2) => delimited(&mut rest).map(|_| plain(field)),
                _ => None,
            };
            match found {
                Some(Found::Good) => {}
                Some(found) => return found,
                None => return Found::Odd,
            }
        }
        if seen & info.required == info.required { Found::Good } else { Found::Odd }
    }

    fn inner(&mut self, field: &FieldInfo, bytes: &[u8], again: bool, depth: usize) -> Found {
        let info = &MESSAGES[usize::from(field.child)];
        match field.label {
            // A message in two parts must be merged: this is rare, so it is left to the slow path.
            Label::Required | Label::Optional if again => return Found::Odd,
            Label::Required | Label::Optional => {}
            Label::Repeated | Label::Map => match self.budget.checked_sub(info.size as usize) {
                Some(left) => self.budget = left,
                None => return Found::TooLarge,
            },
        }
        if field.label == Label::Map {
            return self.entry(info, bytes, depth);
        }
        // Without required fields and enums there is nothing to check that prost does not check, too.
        if info.strict { self.message(info, bytes, depth + 1) } else { Found::Good }
    }

    /// Checks the entry of a map: a string key and a message.
    fn entry(&mut self, info: &'static MessageInfo, mut bytes: &[u8], depth: usize) -> Found {
        let mut seen = [false; 2];
        while !bytes.is_empty() {
            match next(&mut bytes) {
                Some((1, Item::Bytes(_))) if !seen[0] => seen[0] = true,
                Some((2, Item::Bytes(inner))) if !seen[1] => {
                    seen[1] = true;
                    let found = self.message(info, inner, depth + 1);
                    if found != Found::Good {
                        return found;
                    }
                }
                _ => return Found::Odd,
            }
        }
        if seen[1] { Found::Good } else { Found::Odd }
    }
}

/// Checks a scalar: in a map it is invalid, since an entry is a message.
fn plain(field: &FieldInfo) -> Found {
    if field.label == Label::Map { Found::Odd } else { Found::Good }
}

/// Returns whether an enum field's number has a name. C++ keeps the low 32 bits.
pub(crate) fn known(field: &FieldInfo, number: u64) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "as C++ does")]
    let number = number as i32;
    ENUMS[usize::from(field.child)].name(number).is_some()
}

/// Value of one field in binary form. The content of groups is dropped, since no message has any.
pub(crate) enum Item<'b> {
    Varint(u64),
    Fixed64,
    Bytes(&'b [u8]),
    Other,
}

/// Removes the next field from `bytes`; `None` if they are not protobuf.
#[inline]
pub(crate) fn next<'b>(bytes: &mut &'b [u8]) -> Option<(u32, Item<'b>)> {
    let (number, wire) = key(bytes)?;
    Some((number, value(number, wire, bytes)?))
}

/// Removes a field's number and wire type from `bytes`.
#[inline]
fn key(bytes: &mut &[u8]) -> Option<(u32, u32)> {
    let key = u32::try_from(varint(bytes)?).ok()?;
    Some((key >> 3, key & 7)).filter(|(number, _)| *number != 0)
}

/// Removes the value of a field with this number and wire type from `bytes`.
fn value<'b>(number: u32, wire: u32, bytes: &mut &'b [u8]) -> Option<Item<'b>> {
    Some(match wire {
        0 => Item::Varint(varint(bytes)?),
        1 => {
            take(bytes, 8)?;
            Item::Fixed64
        }
        2 => Item::Bytes(delimited(bytes)?),
        3 => {
            group(bytes, number)?;
            Item::Other
        }
        5 => {
            take(bytes, 4)?;
            Item::Other
        }
        _ => return None,
    })
}

/// Removes a length and that many bytes from `bytes`.
#[inline]
fn delimited<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(varint(bytes)?).ok()?;
    take(bytes, length)
}

/// Skips a group and those in it, up to the end of group `number`.
fn group(bytes: &mut &[u8], number: u32) -> Option<()> {
    let mut open = vec![number];
    while let Some(innermost) = open.last() {
        let tag = u32::try_from(varint(bytes)?).ok()?;
        match tag & 7 {
            0 => drop(varint(bytes)?),
            1 => drop(take(bytes, 8)?),
            2 => drop(delimited(bytes)?),
            3 if open.len() < MAX_DEPTH => open.push(tag >> 3),
            4 if tag >> 3 == *innermost => drop(open.pop()),
            5 => drop(take(bytes, 4)?),
            _ => return None,
        }
    }
    Some(())
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Removes a variable-length number from `bytes`.
#[inline]
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most tags, lengths and numbers have one byte.
    if let [first @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    long_varint(bytes)
}

fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().enumerate().take(10) {
        value |= u64::from(b & 0x7f) << (7 * i);
        if *b < 0x80 {
            // The tenth byte has one bit only.
            if i == 9 && *b > 1 {
                return None;
            }
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}
