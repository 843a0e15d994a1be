//! The generators' model of the `.proto` files: messages, fields and enums, with their Rust names and v1 twins.
//!
//! It reads descriptors and checks that they contain only what the generators can express; it writes no code.

use std::collections::BTreeMap;

use prost_types::field_descriptor_proto::{Label as ProtoLabel, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use crate::names;

/// The dialects: v0, v1, and v0 objects with v1 names. The numbers are those of `json::Dialect`.
pub(crate) const DIALECTS: [u8; 3] = [0, 1, 2];

/// Label of a field: how often it occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Label {
    Required,
    Optional,
    /// A proto3 field without presence: zero means unset.
    Implicit,
    Repeated,
    /// A map from strings.
    Map,
}

/// Type of a field's value; of a map, that of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bool,
    Bytes,
    Double,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Text,
    /// An index into [`Model::enums`].
    Enum(usize),
    /// An index into [`Model::messages`].
    Message(usize),
}

pub(crate) struct Oneof {
    /// Name of the struct's field.
    pub(crate) rust: String,
    /// Path of the Rust enum.
    pub(crate) path: String,
    /// Index of the oneof in the message.
    pub(crate) index: usize,
}

pub(crate) struct Field {
    pub(crate) name: String,
    /// Name of the struct's field; in a oneof, of the variant.
    pub(crate) rust: String,
    pub(crate) number: u32,
    pub(crate) label: Label,
    pub(crate) kind: Kind,
    pub(crate) default: Option<String>,
    pub(crate) deprecated: bool,
    pub(crate) oneof: Option<Oneof>,
}

pub(crate) struct Message {
    /// Full name, such as `mesos.TaskInfo`.
    pub(crate) name: String,
    /// Rust path, such as `crate::mesos::TaskInfo`.
    pub(crate) rust: String,
    /// Fields in declaration order.
    pub(crate) fields: Vec<Field>,
    /// Index of the v1 message of a v0 message.
    pub(crate) twin: Option<usize>,
    /// Whether the message's JSON differs between the dialects, in itself or in messages below.
    pub(crate) sensitive: bool,
}

pub(crate) struct Enum {
    /// Names and numbers of the values, in declaration order.
    pub(crate) values: Vec<(String, i32)>,
    pub(crate) twin: Option<usize>,
    pub(crate) sensitive: bool,
}

pub(crate) struct Model {
    pub(crate) messages: Vec<Message>,
    pub(crate) enums: Vec<Enum>,
}

/// A field in a dialect.
#[derive(PartialEq, Eq)]
pub(crate) struct Shown<'m> {
    pub(crate) name: String,
    /// Default that is written when the field is unset.
    pub(crate) default: Option<&'m str>,
    /// Whether v1 writes a duration of v0 in seconds and nanoseconds.
    pub(crate) duration: bool,
}

type Failure = Box<dyn std::error::Error>;

impl Model {
    pub(crate) fn new(set: &FileDescriptorSet) -> Result<Self, Failure> {
        let mut found = Found::default();
        for file in &set.file {
            let module = names::module(file.package());
            for message in &file.message_type {
                found.message(message, file.package(), &module, file.syntax() == "proto3");
            }
            for item in &file.enum_type {
                found.item(item, file.package());
            }
        }
        let mut messages = Vec::new();
        for raw in &found.messages {
            messages.push(found.resolve(raw)?);
        }
        let enums = found.enums.iter().map(|(name, item)| found.resolve_enum(name, item)).collect();
        let mut model = Self { messages, enums };
        model.mark_sensitive();
        Ok(model)
    }

    /// Returns a field in `dialect`, or `None` if the dialect does not have it.
    pub(crate) fn shown<'m>(&'m self, message: &'m Message, field: &'m Field, dialect: u8) -> Option<Shown<'m>> {
        let own = |name: String| Shown { name, default: written_default(field), duration: false };
        match (dialect, message.twin) {
            (0, _) | (1, None) => Some(own(field.name.clone())),
            (2, _) => Some(own(field.name.replace("slave", "agent"))),
            (_, Some(twin)) => {
                let name = field.name.replace("slave", "agent");
                let other = self.messages[twin].fields.iter().find(|f| f.name == name)?;
                Some(Shown { name, default: written_default(other), duration: self.is_duration(field, other) })
            }
            _ => None,
        }
    }

    /// Returns whether a field is `DurationInfo` in v0 and `google.protobuf.Duration` in v1. Any other difference of
    /// types is a bug.
    fn is_duration(&self, field: &Field, other: &Field) -> bool {
        match (field.kind, other.kind) {
            (Kind::Message(a), Kind::Message(b)) => {
                let same = self.messages[a].twin == Some(b);
                assert!(same || self.messages[b].name == "google.protobuf.Duration", "{}", field.name);
                !same
            }
            (Kind::Enum(a), Kind::Enum(b)) => {
                assert_eq!(self.enums[a].twin, Some(b), "{}", field.name);
                false
            }
            (a, b) => {
                assert_eq!(a, b, "{}", field.name);
                false
            }
        }
    }

    /// Returns the values of an enum with their names in `dialect`.
    pub(crate) fn shown_values(&self, item: &Enum, dialect: u8) -> Vec<(String, i32)> {
        match (dialect, item.twin) {
            (1, Some(twin)) => self.enums[twin].values.clone(),
            (2, _) => item.values.iter().map(|(name, n)| (name.replace("SLAVE", "AGENT"), *n)).collect(),
            _ => item.values.clone(),
        }
    }

    fn mark_sensitive(&mut self) {
        for i in 0..self.enums.len() {
            let item = &self.enums[i];
            let plain = self.shown_values(item, 0);
            let differs = self.shown_values(item, 1) != plain || self.shown_values(item, 2) != plain;
            self.enums[i].sensitive = differs;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..self.messages.len() {
                let message = &self.messages[i];
                if !message.sensitive && message.fields.iter().any(|f| self.field_is_sensitive(message, f)) {
                    self.messages[i].sensitive = true;
                    changed = true;
                }
            }
        }
    }

    fn field_is_sensitive(&self, message: &Message, field: &Field) -> bool {
        let plain = self.shown(message, field, 0);
        let below = match field.kind {
            Kind::Enum(e) => self.enums[e].sensitive,
            Kind::Message(m) => self.messages[m].sensitive,
            _ => false,
        };
        below || self.shown(message, field, 1) != plain || self.shown(message, field, 2) != plain
    }
}

/// Returns the default that is written for an unset field; `None` for a deprecated one.
fn written_default(field: &Field) -> Option<&str> {
    if field.deprecated { None } else { field.default.as_deref() }
}

struct RawMessage<'d> {
    name: String,
    rust: String,
    nested: String,
    proto3: bool,
    descriptor: &'d DescriptorProto,
}

/// All messages and enums by full name, before fields are resolved.
#[derive(Default)]
struct Found<'d> {
    messages: Vec<RawMessage<'d>>,
    by_name: BTreeMap<String, usize>,
    enums: Vec<(String, &'d EnumDescriptorProto)>,
    enum_by_name: BTreeMap<String, usize>,
    entries: BTreeMap<String, &'d DescriptorProto>,
}

impl<'d> Found<'d> {
    fn message(&mut self, descriptor: &'d DescriptorProto, parent: &str, module: &str, proto3: bool) {
        let name = format!("{parent}.{}", descriptor.name());
        if descriptor.options.as_ref().is_some_and(|o| o.map_entry()) {
            self.entries.insert(name, descriptor);
            return;
        }
        let rust = format!("{module}::{}", names::camel(descriptor.name()));
        let nested = format!("{module}::{}", names::snake(descriptor.name()));
        for inner in &descriptor.enum_type {
            self.item(inner, &name);
        }
        self.by_name.insert(name.clone(), self.messages.len());
        self.messages.push(RawMessage { name: name.clone(), rust, nested: nested.clone(), proto3, descriptor });
        for inner in &descriptor.nested_type {
            self.message(inner, &name, &nested, proto3);
        }
    }

    fn item(&mut self, item: &'d EnumDescriptorProto, parent: &str) {
        let name = format!("{parent}.{}", item.name());
        self.enum_by_name.insert(name.clone(), self.enums.len());
        self.enums.push((name, item));
    }

    fn resolve(&self, raw: &RawMessage<'d>) -> Result<Message, Failure> {
        let mut fields = Vec::new();
        for field in &raw.descriptor.field {
            fields.push(self.field(raw, field)?);
        }
        let twin = v1_name(&raw.name).and_then(|name| self.by_name.get(&name).copied());
        Ok(Message { name: raw.name.clone(), rust: raw.rust.clone(), fields, twin, sensitive: false })
    }

    fn resolve_enum(&self, name: &str, item: &EnumDescriptorProto) -> Enum {
        let values = item.value.iter().map(|v| (v.name().to_owned(), v.number())).collect();
        let twin = v1_name(name).and_then(|name| self.enum_by_name.get(&name).copied());
        Enum { values, twin, sensitive: false }
    }

    fn field(&self, raw: &RawMessage<'d>, field: &FieldDescriptorProto) -> Result<Field, Failure> {
        let mut label = match field.label() {
            ProtoLabel::Required => Label::Required,
            ProtoLabel::Repeated => Label::Repeated,
            ProtoLabel::Optional if raw.proto3 && field.r#type() != Type::Message => Label::Implicit,
            ProtoLabel::Optional => Label::Optional,
        };
        let mut valued = field;
        if let Some(entry) = self.entries.get(field.type_name().trim_start_matches('.')) {
            let (key, value) = (&entry.field[0], &entry.field[1]);
            if key.r#type() != Type::String {
                return Err(format!("{}.{}: only maps from strings are supported", raw.name, field.name()).into());
            }
            label = Label::Map;
            valued = value;
        }
        let kind = self.kind(valued).map_err(|e| format!("{}.{}: {e}", raw.name, field.name()))?;
        let oneof = field.oneof_index.map(|index| {
            let name = raw.descriptor.oneof_decl[index as usize].name();
            let path = format!("{}::{}", raw.nested, names::camel(name));
            Oneof { rust: names::snake(name), path, index: index as usize }
        });
        let rust = if oneof.is_some() { names::camel(field.name()) } else { names::snake(field.name()) };
        Ok(Field {
            name: field.name().to_owned(),
            rust,
            number: u32::try_from(field.number())?,
            label,
            kind,
            default: field.default_value.clone(),
            deprecated: field.options.as_ref().is_some_and(|o| o.deprecated()),
            oneof,
        })
    }

    fn kind(&self, field: &FieldDescriptorProto) -> Result<Kind, String> {
        let name = field.type_name().trim_start_matches('.');
        Ok(match field.r#type() {
            Type::Bool => Kind::Bool,
            Type::Bytes => Kind::Bytes,
            Type::Double => Kind::Double,
            Type::Int32 => Kind::Int32,
            Type::Int64 => Kind::Int64,
            Type::Uint32 => Kind::Uint32,
            Type::Uint64 => Kind::Uint64,
            Type::String => Kind::Text,
            Type::Enum => Kind::Enum(*self.enum_by_name.get(name).ok_or("unknown enum")?),
            Type::Message => Kind::Message(*self.by_name.get(name).ok_or("unknown message")?),
            other => return Err(format!("type {other:?} is not supported")),
        })
    }
}

/// Returns the name that v1 would give to a v0 message or enum.
fn v1_name(name: &str) -> Option<String> {
    let rest = name.strip_prefix("mesos.")?;
    if rest.starts_with("v1.") { None } else { Some(format!("mesos.v1.{}", rest.replace("Slave", "Agent"))) }
}
