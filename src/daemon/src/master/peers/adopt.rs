//! The registry of a master without a group, which comes into the group that this master forms.
//!
//! The group takes it with its first state. The file is renamed once that is durable here.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use protos::mesos::internal::Registry;
use store::{FileRegistry, RegistryStore};

use super::super::registry_file;

/// The entries of the registry in a work directory; none if there is no registry.
///
/// # Errors
/// It cannot be read.
pub(super) fn read(work_dir: &Path, accepted: Option<u64>) -> anyhow::Result<Option<BTreeMap<String, Vec<u8>>>> {
    let path = registry_file::path(work_dir);
    if !FileRegistry::is_at(&path) {
        return Ok(None);
    }
    let mut left = registry_file::open(&path, accepted)?.load().context("the registry's file")?;
    left.master = None;
    tracing::info!("the group begins with the registry of {}", path.display());
    let entries = store::changes(&Registry::default(), &left);
    Ok(Some(entries.iter().filter_map(|update| Some((update.key().to_owned(), update.value()?.to_vec()))).collect()))
}

/// Renames the file of a registry that a group has taken over, so that it is not taken for the registry later.
pub(super) fn put_away(path: &Path) {
    if !FileRegistry::is_at(path) {
        return;
    }
    let kept = path.with_extension("moved");
    match FileRegistry::rename(path, &kept) {
        Ok(()) => {
            tracing::info!("{} is in the group of masters from now on, and kept in {}", path.display(), kept.display())
        }
        Err(error) => tracing::warn!("{:#}", anyhow::Error::from(error)),
    }
}
