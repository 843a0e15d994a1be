//! Compiles `proto/` into Rust types and their JSON dialects. It does not need `protoc`.
//!
//! prost generates the types, and `codegen/fields.rs` changes the types of some fields. The rest of `codegen/`
//! generates, from the same descriptors, the JSON readers and writers, the tables for strict decoding, and the pairs of
//! v0 and v1 types. It does not define the meaning of messages.

#![allow(clippy::print_stdout, reason = "cargo reads what it prints")]

use std::path::{Path, PathBuf};

use prost::Message as _;

#[path = "codegen/fields.rs"]
mod fields;
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
    // For the tests: the descriptors, and the list of all messages.
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
    for (package, changes) in fields::CHANGES {
        let path = out.join(format!("{package}.rs"));
        let mut file = syn::parse_file(&std::fs::read_to_string(&path)?)?;
        for (message, field, kind) in *changes {
            fields::change(&mut file, message, field, *kind)
                .map_err(|e| format!("{package}: {message}.{field}: {e}"))?;
        }
        std::fs::write(path, prettyplease::unparse(&file))?;
    }
    Ok(())
}

/// Large and rare parts of frequent messages, which are boxed: an unset one then takes eight bytes. Without this a
/// plain resource has 1,160 bytes, a task 2,656, and a busy master spends most of its time on moving empty fields.
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

/// Removes `deprecated` from fields and enum values: Mesos still reads and writes them, so Rust code must too, without
/// a warning.
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

/// Adds every `.proto` file below `directory` to `files`.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
