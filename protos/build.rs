//! Compiles `proto/` into Rust types with protox and prost: no `protoc` is needed on the machine.
//!
//! It does not generate the JSON dialect's rules; see `codegen/`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from("proto");
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    println!("cargo:rerun-if-changed=proto");
    let set = protox::compile(&files, [&root])?;
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    config.compile_well_known_types();
    config.enable_type_names();
    config.include_file("wire.rs");
    config.compile_fds(set)?;
    Ok(())
}

/// Adds every `.proto` file below `folder` to `files`.
fn collect(folder: &std::path::Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
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
