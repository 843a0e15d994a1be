//! `tepui masters backup` and `tepui masters restore`: copies the registry of a cluster to and from a file, wherever it
//! is stored: on a master's disk, in a group of masters, in ZooKeeper or in etcd.
//!
//! A group or a master reads the file at its start.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use protos::json::{Dialect, FromJson};
use protos::mesos::internal::Registry;
use serde_json::Value;
use store::Access;

use super::import;
use super::summary::summary;
use crate::connect::MasterArgs;
use crate::read::print;

/// The document with the registry.
const ENDPOINT: &str = "/registrar(1)/registry";

/// Flags of `tepui masters backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The file to be written; it must not exist
    file: PathBuf,
    #[command(flatten)]
    master: MasterArgs,
}

/// Flags of `tepui masters restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A file of `tepui masters backup` or of `tepui registry export`
    file: PathBuf,
    /// Work directory of one master; without a registry and without a `peers` directory
    #[arg(long = "work_dir", visible_alias = "work-dir", value_name = "DIR")]
    work_dir: PathBuf,
}

/// Writes the registry of the leading master to a file.
///
/// # Errors
/// No master leads, or the file cannot be written.
pub(crate) fn backup(args: &BackupArgs) -> Result<ExitCode> {
    let document: Value = crate::block_on(args.master.read(ENDPOINT))?;
    let mut registry = parse(&document.to_string())?;
    // Each leader writes its own entry.
    registry.master = None;
    let text = protos::json::ToJson::json(&registry, Dialect::V0);
    write(&args.file, &text).with_context(|| format!("cannot write '{}'", args.file.display()))?;
    print(&format!("the registry is in '{}'\n\n{}", args.file.display(), summary(&registry)))
}

fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = store::create_new(path, Access::Owner)?;
    std::io::Write::write_all(&mut file, text)?;
    file.sync_all()
}

fn parse(text: &str) -> Result<Registry> {
    Registry::from_json(text.as_bytes(), Dialect::V0).context("not a registry in JSON")
}

/// Creates the registry of a master from a file.
///
/// # Errors
/// The file has no registry, or the work directory has one.
pub(crate) fn restore(args: &RestoreArgs) -> Result<ExitCode> {
    let text = std::fs::read_to_string(&args.file).with_context(|| format!("cannot read '{}'", args.file.display()))?;
    let mut registry = parse(&text).with_context(|| format!("'{}'", args.file.display()))?;
    registry.master = None;
    let member = args.work_dir.join(daemon::master::GROUP_DIRECTORY);
    ensure!(
        !member.exists(),
        "'{}' belongs to a member of a group of masters, which cannot restore a registry: name another --work_dir, or move it away",
        member.display()
    );
    let file = import::create(&args.work_dir, &registry)?;
    let next = format!(
        "next: start this master with --work_dir={}, alone, with --peers and masters with empty work directories, or first of \
         the masters of an unused path in ZooKeeper or an unused prefix in etcd",
        args.work_dir.display()
    );
    print(&format!("restored into '{}'\n\n{}\n\n{next}", file.display(), summary(&registry)))
}
