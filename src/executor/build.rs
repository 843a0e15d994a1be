//! Generates the parts of Mesos's messages that an executor reads or writes, from the descriptors of `protos/proto`.
//!
//! An executor runs beside every task, so it must be small: the full types of crate `protos` would add the code and
//! memory of every field of every message. `codegen/parts.rs` lists the parts. A name that the descriptors do not have,
//! or have with another type, is a build error.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use heck::ToUpperCamelCase as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};

#[path = "codegen/parts.rs"]
mod parts;

use parts::Part;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ROOT: &str = "../../protos/proto";

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed={ROOT}/mesos/v1");
    println!("cargo:rerun-if-changed=codegen");
    let set = protox::compile(["mesos/v1/executor/executor.proto", "mesos/v1/agent/agent.proto"], [ROOT])?;
    let mut all = Descriptors::default();
    for file in &set.file {
        file.message_type.iter().for_each(|message| all.add(file.package(), message));
        file.enum_type.iter().for_each(|one| all.add_enum(file.package(), one));
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("messages.rs"), all.generate(parts::EXECUTOR)?)?;
    std::fs::write(out.join("docker_messages.rs"), all.generate(parts::DOCKER)?)?;
    Ok(())
}

/// Messages and enums by their full names.
#[derive(Default)]
struct Descriptors {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
}

/// A field of a generated struct.
struct Field {
    number: i32,
    name: String,
    /// Arguments of `#[prost]` without the number.
    kind: String,
    /// Rust type of the field.
    rust: String,
}

impl Descriptors {
    fn add(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.add(&name, nested));
        message.enum_type.iter().for_each(|one| self.add_enum(&name, one));
        self.messages.insert(name, message.clone());
    }

    fn add_enum(&mut self, scope: &str, one: &EnumDescriptorProto) {
        self.enums.insert(format!("{scope}.{}", one.name()), one.clone());
    }

    fn generate(&self, parts: &[Part]) -> Result<String> {
        let mut text = String::new();
        for part @ (rust, of, _) in parts {
            let of: Vec<String> = of.split(' ').map(|name| format!("mesos.v1.{name}")).collect();
            writeln!(text, "/// Part of `{}`.", of.join("`, `"))?;
            if of.iter().all(|name| self.enums.contains_key(name)) {
                self.generate_enum(part, &of, &mut text).map_err(|error| format!("{rust}: {error}"))?;
            } else {
                self.generate_struct(parts, part, &of, &mut text).map_err(|error| format!("{rust}: {error}"))?;
            }
        }
        Ok(text)
    }

    fn generate_enum(&self, (rust, _, values): &Part, of: &[String], text: &mut String) -> Result<()> {
        writeln!(text, "#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]\n#[repr(i32)]")?;
        writeln!(text, "#[allow(clippy::enum_variant_names, reason = \"the names are Mesos's\")]")?;
        writeln!(text, "pub(crate) enum {rust} {{")?;
        for value in values.split(' ') {
            let mut numbers = of.iter().map(|name| {
                self.enums[name].value.iter().find(|found| found.name() == value).map(|found| found.number())
            });
            let number = numbers.next().flatten().ok_or_else(|| format!("no value {value}"))?;
            if numbers.any(|other| other != Some(number)) {
                return Err(format!("{value} has two numbers").into());
            }
            // The name as in prost: without the name of the enum in front.
            let variant = value.to_upper_camel_case();
            let short = variant.strip_prefix(rust).filter(|short| !short.is_empty()).unwrap_or(&variant);
            writeln!(text, "    {short} = {number},")?;
        }
        Ok(writeln!(text, "}}\n")?)
    }

    fn generate_struct(&self, parts: &[Part], part: &Part, of: &[String], text: &mut String) -> Result<()> {
        let (rust, _, fields) = part;
        let fields =
            fields.split(' ').map(|field| self.field(parts, part, of, field).map_err(|e| format!("{field}: {e}")));
        let fields = fields.collect::<std::result::Result<Vec<Field>, String>>()?;
        let copy = if fields.iter().all(|field| COPIED.contains(&field.rust.as_str())) { "Copy, " } else { "" };
        writeln!(text, "#[derive(Clone, {copy}PartialEq, prost::Message)]\npub(crate) struct {rust} {{")?;
        for Field { number, name, kind, rust } in fields {
            writeln!(text, "    #[prost({kind}, tag = \"{number}\")]\n    pub(crate) {name}: {rust},")?;
        }
        Ok(writeln!(text, "}}\n")?)
    }

    /// Returns the field `name`, or `name:part`, of the messages `of`. Where more than one of them has the field, its
    /// type must be the same.
    fn field(&self, parts: &[Part], owner: &Part, of: &[String], field: &str) -> Result<Field> {
        let (name, part) = field.split_once(':').map_or((field, None), |(name, part)| (name, Some(part)));
        let mut found = Vec::new();
        for message in of {
            let message = self.messages.get(message).ok_or_else(|| format!("no message {message}"))?;
            found.extend(message.field.iter().filter(|field| field.name() == name));
        }
        let field = *found.first().ok_or("no such field")?;
        let same = |other: &&FieldDescriptorProto| {
            (other.number, other.label, other.r#type, &other.default_value)
                == (field.number, field.label, field.r#type, &field.default_value)
        };
        if !found.iter().all(same) {
            return Err("two different fields".into());
        }
        let (mut kind, mut rust) = match (field.r#type(), part) {
            (Type::Message, Some("bytes")) => ("bytes = \"vec\"".to_owned(), "Vec<u8>".to_owned()),
            (Type::Message | Type::Enum, Some(part)) => return self.of_part(parts, owner, &found, part),
            (kind, None) => {
                let (kind, rust) = scalar(kind)?;
                (kind.to_owned(), rust.to_owned())
            }
            (_, Some(_)) => return Err("has no part".into()),
        };
        complete(field, &mut kind, &mut rust);
        if let Some(default) = self.default_of(field) {
            write!(kind, ", default = \"{default}\"")?;
        }
        Ok(Field { number: field.number(), name: identifier(name), kind, rust })
    }

    /// Returns a field whose type is another part, or a map whose values are.
    fn of_part(&self, parts: &[Part], owner: &Part, found: &[&FieldDescriptorProto], part: &str) -> Result<Field> {
        let field = found[0];
        let entry = self.messages.get(field.type_name().trim_start_matches('.'));
        let map = entry.filter(|entry| entry.options.as_ref().is_some_and(|options| options.map_entry()));
        let (_, of, _) = parts.iter().find(|(rust, _, _)| *rust == part).ok_or_else(|| format!("no part {part}"))?;
        let is_part = |field: &FieldDescriptorProto| {
            of.split(' ').any(|name| field.type_name().strip_prefix(".mesos.v1.") == Some(name))
        };
        let is_part = match map {
            Some(map) => map.field.iter().any(|field| field.name() == "value" && is_part(field)),
            None => found.iter().all(|field| is_part(field)),
        };
        if !is_part {
            return Err(format!("{part} is not part of {}", field.type_name()).into());
        }
        let (kind, rust) = match (map, field.r#type()) {
            (Some(_), _) => {
                let rust = format!("std::collections::BTreeMap<String, {part}>");
                ("btree_map = \"string, message\"".to_owned(), rust)
            }
            (None, Type::Enum) => {
                let (mut kind, mut rust) = (format!("enumeration = \"{part}\""), "i32".to_owned());
                complete(field, &mut kind, &mut rust);
                (kind, rust)
            }
            (None, _) => {
                let boxed = part == owner.0;
                let mut kind = if boxed { "message, boxed" } else { "message" }.to_owned();
                let mut rust = if boxed { format!("Box<{part}>") } else { part.to_owned() };
                complete(field, &mut kind, &mut rust);
                (kind, rust)
            }
        };
        Ok(Field { number: field.number(), name: identifier(field.name()), kind, rust })
    }

    fn default_of(&self, field: &FieldDescriptorProto) -> Option<String> {
        let default = field.default_value.as_deref()?;
        let values = self.enums.get(field.type_name().trim_start_matches('.')).map(|one| &one.value);
        let value = values.and_then(|all| all.iter().find(|value| value.name() == default));
        Some(value.map_or_else(|| default.to_owned(), |value| value.number().to_string()))
    }
}

/// Types of fields that leave a struct `Copy`, including the parts that are read by value.
const COPIED: &[&str] = &["Option<i32>", "Option<u32>", "Option<bool>", "Option<Nanoseconds>", "i64", "u64", "f64"];

/// Returns the names of a type without parts in `#[prost]` and in Rust. An enum is its number: unknown values are kept.
fn scalar(kind: Type) -> Result<(&'static str, &'static str)> {
    Ok(match kind {
        Type::String => ("string", "String"),
        Type::Bytes => ("bytes = \"vec\"", "Vec<u8>"),
        Type::Bool => ("bool", "bool"),
        Type::Double => ("double", "f64"),
        Type::Int32 | Type::Enum => ("int32", "i32"),
        Type::Int64 => ("int64", "i64"),
        Type::Uint32 => ("uint32", "u32"),
        Type::Uint64 => ("uint64", "u64"),
        other => return Err(format!("{other:?} needs a part or is not supported").into()),
    })
}

/// Adds the label of a field (optional or repeated) to its type.
fn complete(field: &FieldDescriptorProto, kind: &mut String, rust: &mut String) {
    match field.label() {
        Label::Required => kind.push_str(", required"),
        Label::Optional => {
            kind.push_str(", optional");
            *rust = format!("Option<{rust}>");
        }
        Label::Repeated => {
            kind.push_str(", repeated");
            *rust = format!("Vec<{rust}>");
        }
    }
}

fn identifier(name: &str) -> String {
    if name == "type" { "r#type".to_owned() } else { name.to_owned() }
}
