//! Compiles `proto/` into Rust types and their JSON dialect: no `protoc` is needed on the machine.
//!
//! prost makes the types; `codegen/` makes, from the same descriptors, the JSON readers and writers, the tables
//! that strict decoding walks, and the pairs of v0 and v1 types. It decides nothing about what a message means.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

use std::path::{Path, PathBuf};

use prost::Message as _;

#[path = "codegen/model.rs"]
mod model;
#[path = "codegen/names.rs"]
mod names;
#[path = "codegen/read.rs"]
mod read;
#[path = "codegen/tables.rs"]
mod tables;
#[path = "codegen/write.rs"]
mod write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from("proto");
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=codegen");
    let mut set = protox::compile(&files, [&root])?;
    let model = model::Model::new(&set)?;
    let mut text = tables::generate(&model);
    text.push_str(&write::generate(&model));
    text.push_str(&read::generate(&model));
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("dialect.rs"), text)?;
    // For the tests: the descriptors themselves, and the list of all messages.
    std::fs::write(out.join("wire.bin"), set.encode_to_vec())?;
    std::fs::write(out.join("every.rs"), tables::list(&model))?;
    for file in &mut set.file {
        file.message_type.iter_mut().for_each(silence);
        file.enum_type.iter_mut().for_each(silence_enum);
    }
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    config.compile_well_known_types();
    config.enable_type_names();
    config.prost_path("crate::wireform");
    config.include_file("wire.rs");
    for field in BOXED {
        config.boxed(field);
    }
    config.compile_fds(set)?;
    for (package, messages) in TEXTS {
        let path = out.join(format!("{package}.rs"));
        let mut text = std::fs::read_to_string(&path)?;
        for (message, field) in *messages {
            text = with_text(&text, message, field).ok_or(format!("{package}: no text {message}.{field}"))?;
        }
        std::fs::write(path, text)?;
    }
    for (package, message, field) in SHARED {
        let path = out.join(format!("{package}.rs"));
        let text = std::fs::read_to_string(&path)?;
        let text = with_shared(&text, message, field).ok_or(format!("{package}: no message {message}.{field}"))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Short texts that pass by the million, by package: message and field. They are `Text`s, which cost nothing to copy; as strings they
/// were most of the memory that a busy master asked for.
const TEXTS: &[(&str, &[(&str, &str)])] = &[("mesos", V0_TEXTS), ("mesos.v1", V1_TEXTS)];

const V0_TEXTS: &[(&str, &str)] = &[
    ("FrameworkId", "value"),
    ("OfferId", "value"),
    ("SlaveId", "value"),
    ("TaskId", "value"),
    ("ExecutorId", "value"),
    ("Resource", "name"),
    ("Resource", "role"),
    ("AllocationInfo", "role"),
];

const V1_TEXTS: &[(&str, &str)] = &[
    ("FrameworkId", "value"),
    ("OfferId", "value"),
    ("AgentId", "value"),
    ("TaskId", "value"),
    ("ExecutorId", "value"),
    ("Resource", "name"),
    ("Resource", "role"),
    ("AllocationInfo", "role"),
];

/// Required parts that many messages have in common, by package, message and field: they are `Shared`, and are not copied.
const SHARED: &[(&str, &str, &str)] = &[
    ("mesos.internal", "RunTaskMessage", "framework"),
    ("mesos.internal", "RunTaskGroupMessage", "framework"),
    ("mesos.executor", "Subscribed", "executor_info"),
    ("mesos.executor", "Subscribed", "framework_info"),
    ("mesos.executor", "Subscribed", "slave_info"),
];

/// The generated code with that field of a message as a `Shared`.
fn with_shared(text: &str, message: &str, field: &str) -> Option<String> {
    let name = format!("pub {field}: ");
    let begin = text.find(&format!("pub struct {message} {{"))?;
    let kind = begin + text[begin..].find(&name)? + name.len();
    let end = kind + text[kind..].find(",\n")?;
    Some([&text[..kind], "crate::Shared<", &text[kind..end], ">", &text[end..]].concat())
}

/// The generated code with that field of a message as a `Text`.
fn with_text(text: &str, message: &str, field: &str) -> Option<String> {
    const STRING: &str = "crate::wireform::alloc::string::String";
    let begin = text.find(&format!("pub struct {message} {{"))?;
    let (declared, rest) = text[begin..].split_at(text[begin..].find('}')?);
    let place = declared.find(&format!("pub {field}: "))?;
    let end = place + declared[place..].find('\n')?;
    let attribute = declared[..place].rfind("#[prost(string")?;
    // To the derive required ones are bytes: it would begin required strings as `String`s. See `src/wireform.rs`.
    let kind = declared[attribute..place].replace("string, required", "bytes = \"vec\", required");
    let kept = declared[place..end].replace(STRING, "crate::Text");
    // prost's own form for debugging would name the types of optional texts.
    let debug = if kind.contains("optional") { "#[derive(Debug)]\n#[prost(skip_debug)]\n" } else { "" };
    Some([&text[..begin], debug, &declared[..attribute], &kind, &kept, &declared[end..], rest].concat())
}

/// Large and rare parts of what passes by the million: behind a pointer they cost eight bytes where they are not. Without this a
/// plain resource is 1,160 bytes, a task 2,656, and most of the time of a busy master is spent on moving nothing about.
const BOXED: &[&str] = &[
    ".mesos.Resource.disk",
    ".mesos.v1.Resource.disk",
    ".mesos.Resource.reservation",
    ".mesos.v1.Resource.reservation",
    ".mesos.TaskInfo.executor",
    ".mesos.v1.TaskInfo.executor",
    ".mesos.TaskInfo.container",
    ".mesos.v1.TaskInfo.container",
    ".mesos.TaskInfo.health_check",
    ".mesos.v1.TaskInfo.health_check",
    ".mesos.TaskInfo.check",
    ".mesos.v1.TaskInfo.check",
    ".mesos.Task.container",
    ".mesos.v1.Task.container",
    ".mesos.Task.health_check",
    ".mesos.v1.Task.health_check",
    ".mesos.Offer.Operation.launch_group",
    ".mesos.v1.Offer.Operation.launch_group",
    ".mesos.TaskInfo.discovery",
    ".mesos.v1.TaskInfo.discovery",
    ".mesos.Task.discovery",
    ".mesos.v1.Task.discovery",
    ".mesos.Offer.Operation.grow_volume",
    ".mesos.v1.Offer.Operation.grow_volume",
    ".mesos.Offer.Operation.shrink_volume",
    ".mesos.v1.Offer.Operation.shrink_volume",
    ".mesos.Offer.Operation.create_disk",
    ".mesos.v1.Offer.Operation.create_disk",
    ".mesos.Offer.Operation.destroy_disk",
    ".mesos.v1.Offer.Operation.destroy_disk",
    ".mesos.scheduler.Event.update_operation_status",
    ".mesos.v1.scheduler.Event.update_operation_status",
    ".mesos.scheduler.Call.acknowledge_operation_status",
    ".mesos.v1.scheduler.Call.acknowledge_operation_status",
    ".mesos.scheduler.Event.subscribed",
    ".mesos.v1.scheduler.Event.subscribed",
    ".mesos.scheduler.Call.subscribe",
    ".mesos.v1.scheduler.Call.subscribe",
    ".mesos.scheduler.Call.update_framework",
    ".mesos.v1.scheduler.Call.update_framework",
    ".mesos.scheduler.Event.message",
    ".mesos.v1.scheduler.Event.message",
    ".mesos.scheduler.Event.failure",
    ".mesos.v1.scheduler.Event.failure",
    ".mesos.scheduler.Call.kill",
    ".mesos.v1.scheduler.Call.kill",
    ".mesos.scheduler.Call.shutdown",
    ".mesos.v1.scheduler.Call.shutdown",
    ".mesos.scheduler.Call.message",
    ".mesos.v1.scheduler.Call.message",
    ".mesos.scheduler.Call.accept_inverse_offers",
    ".mesos.v1.scheduler.Call.accept_inverse_offers",
    ".mesos.scheduler.Call.decline_inverse_offers",
    ".mesos.v1.scheduler.Call.decline_inverse_offers",
    ".mesos.executor.Event.launch",
];

/// Takes `deprecated` off fields and enum values: Mesos still reads and writes them, so Rust code must too, without a warning.
fn silence(message: &mut prost_types::DescriptorProto) {
    for field in &mut message.field {
        if let Some(options) = &mut field.options {
            options.deprecated = None;
        }
    }
    message.enum_type.iter_mut().for_each(silence_enum);
    message.nested_type.iter_mut().for_each(silence);
}

fn silence_enum(item: &mut prost_types::EnumDescriptorProto) {
    for value in &mut item.value {
        if let Some(options) = &mut value.options {
            options.deprecated = None;
        }
    }
}

/// Adds every `.proto` file below `folder` to `files`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
