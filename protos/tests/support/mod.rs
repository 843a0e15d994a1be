//! Helpers of the tests over all messages: the descriptors, random messages, and a second JSON writer for comparison.
//!
//! The second writer uses the descriptors only and shares no code with the crate, so that an error in one of them is
//! detected.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part of this")]
#![allow(clippy::disallowed_types, reason = "prost-reflect gives its maps as hash maps; here they hold one entry")]

use std::collections::HashMap;
use std::fmt::Write as _;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    Value,
};

/// Returns the compiled `.proto` files.
pub fn pool() -> DescriptorPool {
    DescriptorPool::decode(&include_bytes!(concat!(env!("OUT_DIR"), "/wire.bin"))[..]).unwrap()
}

/// A small generator of random numbers (xorshift): the same seed gives the same messages on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Completeness of a random message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// All required fields are set.
    Whole,
    /// Any field may be missing.
    Holes,
}

/// Returns a random message. The deeper it is, the fewer optional fields it has.
pub fn message(dice: &mut Dice, descriptor: &MessageDescriptor, shape: Shape, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for field in descriptor.fields() {
        let set = match field.cardinality() {
            Cardinality::Required => shape == Shape::Whole || !dice.one_in(4),
            _ if depth > 12 => false,
            _ => dice.one_in(2 + depth),
        };
        // Of a oneof only one member may be set.
        let taken = field.containing_oneof().is_some_and(|oneof| oneof.fields().any(|f| message.has_field(&f)));
        if set && !taken {
            let value = field_value(dice, &field, shape, depth);
            message.set_field(&field, value);
        }
    }
    message
}

fn field_value(dice: &mut Dice, field: &FieldDescriptor, shape: Shape, depth: usize) -> Value {
    if field.is_map() {
        let Kind::Message(entry) = field.kind() else { unreachable!("a map's entries are messages") };
        let value = scalar(dice, &entry.map_entry_value_field(), shape, depth);
        return Value::Map(HashMap::from([(MapKey::String(text(dice)), value)]));
    }
    if field.is_list() {
        let n = 1 + dice.below(3);
        return Value::List((0..n).map(|_| scalar(dice, field, shape, depth)).collect());
    }
    scalar(dice, field, shape, depth)
}

fn scalar(dice: &mut Dice, field: &FieldDescriptor, shape: Shape, depth: usize) -> Value {
    let extreme = dice.one_in(4);
    let bits = dice.next();
    match field.kind() {
        Kind::Bool => Value::Bool(bits & 1 == 1),
        Kind::Int32 => Value::I32(if extreme { i32::MIN } else { bits as i32 }),
        Kind::Int64 => Value::I64(if extreme { i64::MIN } else { bits as i64 >> (bits % 60) }),
        Kind::Uint32 => Value::U32(if extreme { u32::MAX } else { bits as u32 }),
        // Numbers in JSON are exact up to those of an int64 only.
        Kind::Uint64 => Value::U64(if extreme { i64::MAX as u64 } else { bits >> (1 + bits % 60) }),
        Kind::Double => Value::F64([0.0, 1.0, 0.5, -3.25, 1234.125, 1e15, 0.0625][bits as usize % 7]),
        Kind::String => Value::String(text(dice)),
        Kind::Bytes => Value::Bytes((0..bits % 7).map(|i| (bits >> (8 * i)) as u8).collect::<Vec<u8>>().into()),
        Kind::Enum(item) => {
            let values: Vec<_> = item.values().collect();
            Value::EnumNumber(values[bits as usize % values.len()].number())
        }
        Kind::Message(inner) => Value::Message(message(dice, &inner, shape, depth + 1)),
        other => unreachable!("{other:?} does not occur"),
    }
}

fn text(dice: &mut Dice) -> String {
    let samples = [
        "",
        "a",
        "engineering/search",
        "say \"hi\"",
        "tab\there",
        "C:\\x",
        "\u{1}\u{1f}",
        "\u{e4}\u{20ac}\u{1f600}",
        "a longer text, of more than one block",
    ];
    let mut text = samples[dice.below(samples.len())].to_owned();
    if dice.one_in(2) {
        write!(text, "{}", dice.below(1000)).unwrap();
    }
    text
}

/// Names that the second writer uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    AsDeclared,
    /// Names with `agent` for `slave`.
    Evolved,
}

/// Returns the JSON of a message by the rules, from its descriptor.
pub fn json(message: &DynamicMessage, names: Names) -> String {
    let mut members = Vec::new();
    // `fields` goes by number; the declared order is that of the file's descriptor.
    for declared in &message.descriptor().descriptor_proto().field {
        let field = message.descriptor().get_field_by_name(declared.name()).unwrap();
        let options = declared.options.as_ref();
        let defaulted = declared.default_value.is_some() && !options.is_some_and(|o| o.deprecated());
        // A required field is part of the Rust struct, set or not.
        if message.has_field(&field) || (defaulted && !field.is_list()) {
            let value = message.get_field(&field);
            let key =
                if names == Names::Evolved { field.name().replace("slave", "agent") } else { field.name().into() };
            members.push(format!("{}:{}", quote(&key), value_json(&field.kind(), &value, names)));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn value_json(kind: &Kind, value: &Value, names: Names) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::I32(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::U32(n) => n.to_string(),
        Value::U64(n) => n.to_string(),
        Value::F64(n) => format!("{n:.4}").trim_end_matches('0').to_owned() + if n.fract() == 0.0 { "0" } else { "" },
        Value::String(s) => quote(s),
        Value::Bytes(b) => format!("\"{}\"", base64(b)),
        Value::EnumNumber(n) => {
            let Kind::Enum(item) = kind else { unreachable!() };
            let declared = &item.enum_descriptor_proto().value;
            let name = declared.iter().find(|v| v.number() == *n).unwrap().name();
            quote(&if names == Names::Evolved { name.replace("SLAVE", "AGENT") } else { name.to_owned() })
        }
        Value::Message(m) => json(m, names),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| value_json(kind, item, names)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Map(map) => {
            let Kind::Message(entry) = kind else { unreachable!() };
            let kind = entry.map_entry_value_field().kind();
            let one = |(key, value): (&MapKey, &Value)| {
                let MapKey::String(key) = key else { unreachable!() };
                format!("{}:{}", quote(key), value_json(&kind, value, names))
            };
            format!("{{{}}}", map.iter().map(one).collect::<Vec<_>>().join(","))
        }
        other => unreachable!("{other:?} does not occur"),
    }
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => write!(out, "\\u{:04X}", c as u32).unwrap(),
            c => out.push(c),
        }
    }
    out + "\""
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0u32, |bits, (i, b)| bits | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let shown = i <= chunk.len();
            out.push(if shown { ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char } else { '=' });
        }
    }
    out
}
