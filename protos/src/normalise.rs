//! The slow path for a binary message that is invalid or unusual.
//!
//! It converts the message to the plain form in which prost and C++ agree: split submessages merged, unknown enum
//! numbers and fields of a wrong wire type dropped, text made UTF-8. On the way it collects the paths of missing
//! required fields. Speed does not matter here.

use std::collections::BTreeMap;

use prost::encoding::{WireType, encode_key, encode_varint};

use crate::binary::{Item, MAX_DEPTH, known, next, varint};
use crate::json::generated::MESSAGES;
use crate::schema::{FieldInfo, Kind, Label, MessageInfo};

/// A message in plain form, with the required fields that it lacks.
#[derive(Default)]
pub(crate) struct Normal {
    pub(crate) bytes: Vec<u8>,
    /// Paths of the missing required fields.
    pub(crate) missing: Vec<String>,
}

/// Converts `bytes` to plain form; `None` if they are not protobuf.
pub(crate) fn message(info: &'static MessageInfo, bytes: &[u8]) -> Option<Normal> {
    let mut normal = Normal::default();
    walk(info, bytes, "", 0, &mut normal)?;
    Some(normal)
}

/// The values of one field, in order.
#[derive(Default)]
struct Values {
    numbers: Vec<u64>,
    fixed: Vec<[u8; 8]>,
    texts: Vec<Vec<u8>>,
}

impl Values {
    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.fixed.is_empty() && self.texts.is_empty()
    }
}

fn walk(info: &'static MessageInfo, bytes: &[u8], prefix: &str, depth: usize, normal: &mut Normal) -> Option<()> {
    if depth >= MAX_DEPTH {
        return None;
    }
    let fields = collect(info, bytes)?;
    let mut required: Vec<&FieldInfo> = info.fields.iter().filter(|f| f.label == Label::Required).collect();
    required.sort_by_key(|f| f.order);
    for field in required {
        if fields.get(&field.number).is_none_or(Values::is_empty) {
            normal.missing.push(format!("{prefix}{}", info.field_name(field)));
        }
    }
    for field in info.fields {
        if let Some(values) = fields.get(&field.number) {
            write(info, field, values, prefix, depth, normal)?;
        }
    }
    Some(())
}

/// Sorts the fields of a message by number, and drops fields that are unknown or of the wrong type.
fn collect(info: &'static MessageInfo, bytes: &[u8]) -> Option<BTreeMap<u16, Values>> {
    let mut fields: BTreeMap<u16, Values> = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let before = rest;
        let (number, item) = next(&mut rest)?;
        let Some(field) = info.field(number) else { continue };
        let mut fresh = Values::default();
        let repeated = field.label == Label::Repeated;
        match (field.kind, item) {
            (_, Item::Bytes(inner)) if field.label == Label::Map => fresh.texts.push(inner.to_vec()),
            (Kind::Varint, Item::Varint(n)) => fresh.numbers.push(n),
            (Kind::Enum, Item::Varint(n)) if known(field, n) => fresh.numbers.push(n),
            (Kind::Fixed64, Item::Fixed64) => {
                fresh.fixed.push(before[..before.len() - rest.len()].last_chunk().copied()?)
            }
            (Kind::Text | Kind::Bytes | Kind::Message, Item::Bytes(inner)) => fresh.texts.push(inner.to_vec()),
            (Kind::Varint | Kind::Enum | Kind::Fixed64, Item::Bytes(inner)) if repeated => {
                packed(field, inner, &mut fresh)?
            }
            _ => continue,
        }
        if fresh.is_empty() && !repeated {
            continue;
        }
        // Setting a member of a oneof clears the others.
        for other in info.fields.iter().filter(|f| f.oneof != 0 && f.oneof == field.oneof && f.number != field.number) {
            fields.remove(&other.number);
        }
        let values = fields.entry(field.number).or_default();
        values.numbers.append(&mut fresh.numbers);
        values.fixed.append(&mut fresh.fixed);
        values.texts.append(&mut fresh.texts);
    }
    Some(fields)
}

/// Reads packed repeated numbers, which proto2's readers accept as well.
fn packed(field: &FieldInfo, mut bytes: &[u8], to: &mut Values) -> Option<()> {
    if field.kind == Kind::Fixed64 {
        let (blocks, rest) = bytes.as_chunks::<8>();
        to.fixed.extend_from_slice(blocks);
        return rest.is_empty().then_some(());
    }
    while !bytes.is_empty() {
        let number = varint(&mut bytes)?;
        if field.kind == Kind::Varint || known(field, number) {
            to.numbers.push(number);
        }
    }
    Some(())
}

fn write(
    info: &'static MessageInfo,
    field: &FieldInfo,
    values: &Values,
    prefix: &str,
    depth: usize,
    normal: &mut Normal,
) -> Option<()> {
    let number = u32::from(field.number);
    let name = info.field_name(field);
    for n in &values.numbers {
        encode_key(number, WireType::Varint, &mut normal.bytes);
        encode_varint(*n, &mut normal.bytes);
    }
    for fixed in &values.fixed {
        encode_key(number, WireType::SixtyFourBit, &mut normal.bytes);
        normal.bytes.extend_from_slice(fixed);
    }
    let joined;
    let texts = match (field.kind, field.label) {
        (Kind::Message, Label::Required | Label::Optional) => {
            joined = [values.texts.concat()];
            if values.texts.is_empty() { &[][..] } else { &joined[..] }
        }
        _ => &values.texts[..],
    };
    for (i, text) in texts.iter().enumerate() {
        let mut inner = Normal::default();
        match (field.kind, field.label) {
            (_, Label::Map) => entry(field, text, &format!("{prefix}{name}[{i}].value."), depth, &mut inner)?,
            (Kind::Message, Label::Repeated) => {
                walk(child(field), text, &format!("{prefix}{name}[{i}]."), depth + 1, &mut inner)?;
            }
            (Kind::Message, _) => walk(child(field), text, &format!("{prefix}{name}."), depth + 1, &mut inner)?,
            (Kind::Text, _) => inner.bytes = String::from_utf8_lossy(text).into_owned().into_bytes(),
            _ => inner.bytes.clone_from(text),
        }
        append(&mut normal.bytes, number, &inner.bytes);
        normal.missing.append(&mut inner.missing);
    }
    Some(())
}

/// Reads the entry of a map: a key and a value, either of which may be missing.
fn entry(field: &FieldInfo, mut bytes: &[u8], prefix: &str, depth: usize, normal: &mut Normal) -> Option<()> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        match next(&mut bytes)? {
            (1, Item::Bytes(inner)) => key = inner.to_vec(),
            (2, Item::Bytes(inner)) if field.kind == Kind::Message => value.extend_from_slice(inner),
            (2, Item::Bytes(inner)) => value = inner.to_vec(),
            _ => {}
        }
    }
    append(&mut normal.bytes, 1, String::from_utf8_lossy(&key).as_bytes());
    let mut inner = Normal::default();
    match field.kind {
        Kind::Message => walk(child(field), &value, prefix, depth + 1, &mut inner)?,
        Kind::Text => inner.bytes = String::from_utf8_lossy(&value).into_owned().into_bytes(),
        _ => inner.bytes = value,
    }
    append(&mut normal.bytes, 2, &inner.bytes);
    normal.missing.append(&mut inner.missing);
    Some(())
}

fn child(field: &FieldInfo) -> &'static MessageInfo {
    &MESSAGES[usize::from(field.child)]
}

fn append(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
