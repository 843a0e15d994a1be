//! Writes the large v1 answers (GET_STATE and its parts) directly from entities, in either encoding, without building a
//! response message first.
//!
//! In JSON, lists are written even when they are empty, and names are v0's with `agent` for `slave`
//! (docs/mesos/json.md). It does not depend on what is listed.

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use protos::json::{Dialect, ToJson, Writer};
use wire::negotiate::Encoding;

/// A message that is written field by field. `name` is a field's name in JSON, `tag` its number in protobuf.
pub enum Builder<'a, 'o> {
    /// An open JSON object.
    Json(&'a mut Writer<'o>),
    /// The bytes of a protobuf message so far.
    Protobuf(&'a mut Vec<u8>),
}

/// Encodes a message whose fields the function `fields` writes.
pub fn message(encoding: Encoding, fields: impl FnOnce(&mut Builder<'_, '_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 << 10);
    match encoding {
        Encoding::Json => {
            Writer::new(&mut out).object(|w| fields(&mut Builder::Json(w)));
        }
        Encoding::Protobuf => fields(&mut Builder::Protobuf(&mut out)),
    }
    out
}

impl Builder<'_, '_> {
    /// Writes an enum field: its name in JSON, its number in protobuf.
    pub fn choice(&mut self, tag: u32, name: &str, text: &str, number: i32) {
        match self {
            Builder::Json(w) => {
                w.key(name).string(text);
            }
            Builder::Protobuf(out) => prost::encoding::int32::encode(tag, &number, out),
        }
    }

    /// Writes a double field.
    pub fn double(&mut self, tag: u32, name: &str, value: f64) {
        match self {
            Builder::Json(w) => {
                w.key(name).double(value);
            }
            Builder::Protobuf(out) => prost::encoding::double::encode(tag, &value, out),
        }
    }

    /// Writes a field that is a message, whose fields the function `fields` writes.
    pub fn nested(&mut self, tag: u32, name: &str, fields: impl FnOnce(&mut Builder<'_, '_>)) {
        match self {
            Builder::Json(w) => {
                w.key(name).object(|w| fields(&mut Builder::Json(w)));
            }
            Builder::Protobuf(out) => {
                let mut inner = Vec::new();
                fields(&mut Builder::Protobuf(&mut inner));
                encode_key(tag, WireType::LengthDelimited, out);
                encode_varint(inner.len() as u64, out);
                out.extend_from_slice(&inner);
            }
        }
    }

    /// Writes a field that is a list of messages.
    pub fn list<M: Message + ToJson>(&mut self, tag: u32, name: &str, items: impl Iterator<Item = impl AsRef<M>>) {
        match self {
            Builder::Json(w) => {
                w.key(name).array(|w| {
                    for item in items {
                        w.message(item.as_ref(), Dialect::Evolved);
                    }
                });
            }
            Builder::Protobuf(out) => {
                for item in items {
                    prost::encoding::message::encode(tag, item.as_ref(), *out);
                }
            }
        }
    }
}

/// An item that a list borrows or owns.
pub enum Item<'a, M> {
    /// A message of an entity.
    Borrowed(&'a M),
    /// A message that was created for the list.
    Owned(Box<M>),
}

impl<M> AsRef<M> for Item<'_, M> {
    fn as_ref(&self) -> &M {
        match self {
            Item::Borrowed(message) => message,
            Item::Owned(message) => message,
        }
    }
}

#[cfg(test)]
mod tests {
    use protos::mesos;

    use super::*;

    #[test]
    fn both_encodings_say_the_same() {
        let id = |n: u32| mesos::FrameworkId { value: n.to_string().into() };
        let write = |encoding| {
            message(encoding, |b| {
                b.choice(1, "type", "GET_ROLES", 13);
                b.nested(14, "get_roles", |b| {
                    b.list(1, "roles", [1, 2].iter().map(|n| Item::Owned(Box::new(role(id(*n))))))
                });
            })
        };
        fn role(id: mesos::FrameworkId) -> mesos::Role {
            mesos::Role { name: "a".into(), weight: 1.0, frameworks: vec![id], resources: vec![] }
        }
        let binary = mesos::master::Response::decode(&*write(Encoding::Protobuf)).unwrap();
        assert_eq!(binary.get_roles.unwrap().roles.len(), 2);
        let text = String::from_utf8(write(Encoding::Json)).unwrap();
        let one = r#"{"name":"a","weight":1.0,"frameworks":[{"value":"1"}]}"#;
        let two = r#"{"name":"a","weight":1.0,"frameworks":[{"value":"2"}]}"#;
        assert_eq!(text, format!(r#"{{"type":"GET_ROLES","get_roles":{{"roles":[{one},{two}]}}}}"#));
    }
}
