//! The shape of the tables that `codegen/tables.rs` fills: what a reader must know of a message besides its Rust type.
//!
//! The tables serve strict decoding, enum names and the search for missing fields. Nothing here reads or writes.

/// A message of the wire: it has a place in the tables, so that [`crate::decode`] can check it.
pub trait Described: prost::Message + prost::Name + Default {
    /// The message's place in the tables. Only this crate gives it a meaning.
    #[doc(hidden)]
    const INDEX: u16;
}

/// How a field's value travels in binary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Varint,
    Fixed64,
    Text,
    Bytes,
    Enum,
    Message,
}

/// How often a field occurs. A proto3 field without presence counts as optional.
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
    /// The place of its message or enum in the tables; of a map, that of its values.
    pub(crate) child: u16,
    /// Its place in declaration order.
    pub(crate) order: u8,
    /// 0 if in no oneof, else the same number for all members of one.
    pub(crate) oneof: u8,
    pub(crate) kind: Kind,
    pub(crate) label: Label,
}

#[derive(Debug)]
pub(crate) struct MessageInfo {
    /// The full protobuf name.
    pub(crate) name: &'static str,
    /// Field names in declaration order.
    pub(crate) names: &'static [&'static str],
    /// In number order.
    pub(crate) fields: &'static [FieldInfo],
    /// One bit for each required field, at its place in declaration order.
    pub(crate) required: u64,
    /// The place of its v1 message, or its own.
    pub(crate) twin: u16,
    /// Whether it or a message below has required fields or enums.
    pub(crate) strict: bool,
    /// Bytes of memory that one takes, without what it points to.
    pub(crate) size: u32,
}

impl MessageInfo {
    pub(crate) fn field(&self, number: u32) -> Option<&'static FieldInfo> {
        // Numbers mostly run from 1 without gaps: look there first.
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

/// The names and numbers of an enum, in declaration order.
#[derive(Debug)]
pub(crate) struct EnumTable(pub(crate) &'static [(&'static str, i32)]);

impl EnumTable {
    /// The first declared name of a number.
    pub(crate) fn name(&self, number: i32) -> Option<&'static str> {
        // Most enums count from 0 without gaps. An alias sits behind its number's place, so it is never met first.
        let guess = usize::try_from(number).ok().and_then(|place| self.0.get(place));
        match guess {
            Some((name, n)) if *n == number => Some(name),
            _ => self.0.iter().find(|(_, n)| *n == number).map(|(name, _)| *name),
        }
    }

    /// The number of a name, which must match to the letter.
    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
    }
}
