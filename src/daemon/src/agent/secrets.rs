//! Secrets that are given as values (mesos-features.md AGT-98); there is no store to ask for others.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agent::ContainerName;
use anyhow::Context;
use containers::User;
use protos::mesos;

/// Makes files' names differ within this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The bytes of a secret.
///
/// # Errors
/// If it is only a reference.
pub(super) fn value(secret: &mesos::Secret) -> anyhow::Result<Vec<u8>> {
    anyhow::ensure!(
        secret.r#type() == mesos::secret::Type::Value,
        "Secrets can only be given as values: there is no resolver for references"
    );
    Ok(secret.value.as_ref().context("The secret has no value")?.data.clone())
}

/// Writes a secret for a container to read, below `folder`, which is in memory.
///
/// # Errors
/// What the system refuses.
pub(super) fn write(
    folder: &Path,
    container: &ContainerName,
    user: Option<&User>,
    bytes: &[u8],
) -> anyhow::Result<PathBuf> {
    let own = folder.join(container.root().as_str());
    std::fs::create_dir_all(&own).with_context(|| format!("'{}'", own.display()))?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = own.join(format!("{}-{number}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?;
    file.write_all(bytes)?;
    if let Some(user) = user {
        chown(&path, Some(user.uid), Some(user.gid))?;
    }
    Ok(path)
}

/// Deletes the secrets of a container and of those inside it, once the outermost one has ended.
pub(super) fn remove(folder: &Path, container: &ContainerName) {
    let own = folder.join(container.as_str());
    if container.parent().is_none() && own.exists() {
        super::world::delete(&own);
    }
}
