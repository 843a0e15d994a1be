//! Opens the registry's file, and reports its condition to the operator.
//!
//! The crate `store` defines its content, and what counts as a loss.

use std::path::{Path, PathBuf};

use anyhow::Context;
use protos::mesos::internal::Registry;
use store::{FileRegistry, Loss, Opening, RegistryStore, StoreError, Update};

/// Name of the flag with the number of a loss that the operator accepts.
const ACCEPT: &str = "registry_accept_loss";

/// Returns the path of the registry's file in a work directory.
pub(super) fn path(work_dir: &Path) -> PathBuf {
    work_dir.join(FileRegistry::NAME)
}

/// Opens the registry, or creates a new one.
///
/// # Errors
/// The last commit is missing from the file, and `--registry_accept_loss` does not name that loss. An error of the
/// system.
pub(super) fn open(path: &Path, accepted: Option<u64>) -> anyhow::Result<FileRegistry> {
    let registry = match FileRegistry::open(path, accepted) {
        Err(StoreError::Lost(loss)) => {
            let advice = advice(&loss);
            let found = anyhow::Error::from(StoreError::Lost(loss));
            anyhow::bail!("the registry cannot be opened: {found:#}. {advice}");
        }
        opened => opened.context("the registry cannot be opened")?,
    };
    let shown = path.display();
    match registry.opening() {
        Opening::New => tracing::info!("Created a new registry: {shown}"),
        Opening::Confirmed => {}
        Opening::Unconfirmed { last } => tracing::info!(
            "The registry {shown} ends with commit {last}, which was not confirmed: the previous master ended before \
             the confirmation"
        ),
        Opening::Older => {
            tracing::info!("The registry {shown} is of an older version: from now on its commits are confirmed")
        }
        Opening::Accepted { loss, kept } => {
            let rest = match kept {
                Some(kept) => format!("the registry is empty now, and the old file is renamed to {}", kept.display()),
                None if loss.leaves_entries() => "the registry has the remaining entries".to_owned(),
                None => "the registry is empty now".to_owned(),
            };
            tracing::warn!("Accepted by --{ACCEPT}={}: {loss}; {rest}", loss.number());
        }
    }
    match (accepted, registry.opening()) {
        (None, _) | (Some(_), Opening::Accepted { .. }) => {}
        (Some(number), _) => tracing::info!("--{ACCEPT}={number} is not needed: nothing is lost"),
    }
    Ok(registry)
}

/// Returns the entries that a group takes over from the registry of a master without one: all but the entry of that
/// master, which each leader writes itself.
///
/// # Errors
/// As [`open`].
pub(super) fn left(path: &Path, accepted: Option<u64>) -> anyhow::Result<Vec<Update>> {
    let mut left = open(path, accepted)?.load().context("the registry's file")?;
    left.master = None;
    Ok(store::changes(&Registry::default(), &left))
}

/// Returns the name of a registry's file that a group has taken over.
pub(super) fn kept(path: &Path) -> PathBuf {
    path.with_extension("moved")
}

/// Renames the file of a registry that is in `place` from now on, so that it is not taken for the registry later.
///
/// # Errors
/// The file cannot be renamed.
pub(super) fn put_away(path: &Path, place: &str) -> anyhow::Result<()> {
    let kept = kept(path);
    FileRegistry::rename(path, &kept)?;
    let (path, kept) = (path.display(), kept.display());
    tracing::info!("the registry of {path} is in {place} from now on; the old file is renamed to {kept}");
    Ok(())
}

/// Returns the advice to the operator about a loss.
fn advice(loss: &Loss) -> String {
    let rest = match loss.leaves_entries() {
        true => "with the remaining entries",
        false => "with an empty registry",
    };
    format!(
        "Restore the file and its '.commits' from the same backup, or start once with --{ACCEPT}={} to continue \
         {rest}: agents, quota, \
         weights and maintenance are then as they were without the lost commits",
        loss.number()
    )
}
