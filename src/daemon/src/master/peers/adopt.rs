//! The registry of a master without a group, which the group takes over that this master forms.
//!
//! The registry becomes a part of the group's first state. The file is renamed once that state is durable here.

use std::collections::BTreeMap;
use std::path::Path;

use store::FileRegistry;

use super::super::registry_file;
use super::registry::PLACE;

/// Returns the entries of the registry in a work directory; `None` if there is no registry.
///
/// # Errors
/// The registry cannot be read.
pub(super) fn read(work_dir: &Path, accepted: Option<u64>) -> anyhow::Result<Option<BTreeMap<String, Vec<u8>>>> {
    let path = registry_file::path(work_dir);
    if !FileRegistry::is_at(&path) {
        return Ok(None);
    }
    let left = registry_file::left(&path, accepted)?;
    tracing::info!("the group begins with the registry of {}", path.display());
    Ok(Some(left.iter().filter_map(|update| Some((update.key().to_owned(), update.value()?.to_vec()))).collect()))
}

/// Renames the file of a registry that the group has taken over.
pub(super) fn put_away(path: &Path) {
    if FileRegistry::is_at(path)
        && let Err(error) = registry_file::put_away(path, PLACE)
    {
        tracing::warn!("{error:#}");
    }
}
