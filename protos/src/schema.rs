//! The structure of the tables that `codegen/tables.rs` fills: properties of messages that their Rust types do not
//! have.
//!
//! The tables serve strict decoding, enum names and the search for missing fields. Nothing here reads or writes.

/// A message that the tables describe, so that [`crate::decode`] can check it.
pub trait Described: prost::Message + prost::Name + Default {
    /// Index of the message in the tables, which are private to this crate.
    #[doc(hidden)]
    const INDEX: u16;
}

/// Kind of a field's value in binary form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Varint,
    Fixed64,
    Text,
    Bytes,
    Enum,
    Message,
}

/// Label of a field: how often it occurs. A proto3 field without presence counts as optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Label {
    Required,
    Optional,
    Repeated,
    Map,
}

#[derive(Debug)]
pub(crate) struct FieldInfo {
    pub(crate) number: u16,
    /// Index of the field's message or enum in the tables; of a map, that of its values.
    pub(crate) child: u16,
    /// Index of the field in declaration order.
    pub(crate) order: u8,
    /// Number of the field's oneof, the same for all of its members; 0 for no oneof.
    pub(crate) oneof: u8,
    pub(crate) kind: Kind,
    pub(crate) label: Label,
}

#[derive(Debug)]
pub(crate) struct MessageInfo {
    /// Full protobuf name of the message.
    pub(crate) name: &'static str,
    /// Field names in declaration order.
    pub(crate) names: &'static [&'static str],
    /// Fields in the order of their numbers.
    pub(crate) fields: &'static [FieldInfo],
    /// One bit for each required field, at its index in declaration order.
    pub(crate) required: u64,
    /// Index of the v1 message; of a message without one, its own.
    pub(crate) twin: u16,
    /// Whether the message or one below it has required fields or enums.
    pub(crate) strict: bool,
    /// Size of the Rust struct in bytes, without the memory that it points to.
    pub(crate) size: u32,
}

impl MessageInfo {
    pub(crate) fn field(&self, number: u32) -> Option<&'static FieldInfo> {
        // Numbers mostly start at 1 without gaps, so that index is tried first.
        let guess = self.fields.get((number as usize).wrapping_sub(1));
        match guess {
            Some(field) if u32::from(field.number) == number => Some(field),
            _ => {
                let place = self.fields.binary_search_by_key(&number, |f| u32::from(f.number)).ok()?;
                self.fields.get(place)
            }
        }
    }

    pub(crate) fn field_name(&self, field: &FieldInfo) -> &'static str {
        self.names[usize::from(field.order)]
    }
}

/// Names and numbers of an enum, in declaration order.
#[derive(Debug)]
pub(crate) struct EnumTable(pub(crate) &'static [(&'static str, i32)]);

impl EnumTable {
    /// Returns the first declared name of a number.
    pub(crate) fn name(&self, number: i32) -> Option<&'static str> {
        // Most enums count from 0 without gaps. An alias comes after the index of its number, so it is never found
        // first.
        let guess = usize::try_from(number).ok().and_then(|place| self.0.get(place));
        match guess {
            Some((name, n)) if *n == number => Some(name),
            _ => self.0.iter().find(|(_, n)| *n == number).map(|(name, _)| *name),
        }
    }

    /// Returns the number of a name, which must match exactly.
    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
    }
}
