//! Compares the `.proto` files with those of Mesos 1.11: every file, message, field and enum value.
//!
//! `fixtures/schema.txt` has the facts, one line each, in declaration order (which JSON depends on): fields as number,
//! label, type, name, default, oneof, flags. Invariant: the compiled files, written in the same form, give the same
//! text.

mod support;

use std::fmt::Write as _;

use prost_reflect::prost_types::FieldDescriptorProto;
use prost_reflect::{EnumDescriptor, FileDescriptor, Kind, MessageDescriptor};

#[test]
fn the_proto_files_are_those_of_mesos() {
    let pool = support::pool();
    let mut files: Vec<FileDescriptor> = pool.files().filter(|f| !f.name().starts_with("google/")).collect();
    files.sort_by(|a, b| a.name().cmp(b.name()));
    let mut text = String::new();
    for file in files {
        describe(&file, &mut text);
    }
    let want = include_str!("fixtures/schema.txt");
    for (i, (ours, theirs)) in text.lines().zip(want.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {} of fixtures/schema.txt", i + 1);
    }
    assert_eq!(text.lines().count(), want.lines().count());
}

fn describe(file: &FileDescriptor, text: &mut String) {
    let raw = file.file_descriptor_proto();
    let syntax = if raw.syntax().is_empty() { "proto2" } else { raw.syntax() };
    writeln!(text, "file {} {} {syntax}", file.name(), file.package_name()).unwrap();
    let mut imports: Vec<&String> = raw.dependency.iter().collect();
    imports.sort();
    for import in imports {
        writeln!(text, " import {import}").unwrap();
    }
    let mut enums = Vec::new();
    for item in file.enums() {
        enums.push(item);
    }
    for message in file.messages() {
        describe_message(&message, text, &mut enums);
    }
    for item in enums {
        let aliased = item.enum_descriptor_proto().options.as_ref().is_some_and(|o| o.allow_alias());
        writeln!(text, "enum {}{}", item.full_name(), if aliased { " alias" } else { "" }).unwrap();
        for value in &item.enum_descriptor_proto().value {
            let deprecated = value.options.as_ref().is_some_and(|o| o.deprecated());
            let flag = if deprecated { " deprecated" } else { "" };
            writeln!(text, " {} {}{flag}", value.number(), value.name()).unwrap();
        }
    }
}

fn describe_message(message: &MessageDescriptor, text: &mut String, enums: &mut Vec<EnumDescriptor>) {
    writeln!(text, "message {}", message.full_name()).unwrap();
    for raw in &message.descriptor_proto().field {
        describe_field(message, raw, text);
    }
    enums.extend(message.child_enums());
    for inner in message.child_messages().filter(|inner| !inner.is_map_entry()) {
        describe_message(&inner, text, enums);
    }
}

fn describe_field(message: &MessageDescriptor, raw: &FieldDescriptorProto, text: &mut String) {
    let field = message.get_field_by_name(raw.name()).unwrap();
    let (label, kind) = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let value = entry.map_entry_value_field().kind();
            ("map", format!("{}, {}", word(&entry.map_entry_key_field().kind()), word(&value)))
        }
        kind if field.is_list() => ("repeated", word(&kind)),
        kind if field.cardinality() == prost_reflect::Cardinality::Required => ("required", word(&kind)),
        kind => ("optional", word(&kind)),
    };
    write!(text, " {} {label} {kind} {}", raw.number(), raw.name()).unwrap();
    if let Some(default) = &raw.default_value {
        write!(text, " ={default}").unwrap();
    }
    if let Some(oneof) = field.containing_oneof() {
        write!(text, " oneof:{}", oneof.name()).unwrap();
    }
    let deprecated = raw.options.as_ref().is_some_and(|o| o.deprecated());
    text.push_str(if deprecated { " deprecated\n" } else { "\n" });
}

fn word(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(item) => item.full_name().to_owned(),
        Kind::Double => "double".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::Int32 => "int32".to_owned(),
        Kind::Int64 => "int64".to_owned(),
        Kind::Uint32 => "uint32".to_owned(),
        Kind::Uint64 => "uint64".to_owned(),
        other => format!("{other:?}"),
    }
}
