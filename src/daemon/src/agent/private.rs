//! Creates the directories that only the agent's user can read: checkpoints and records contain secrets of tasks.
//!
//! Sandboxes and volumes are not among them: they belong to the tasks' users.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use store::{Access, create_directories, create_private, make_private};

/// Names of the private directories in `--runtime_dir`.
const PARTS: [&str; 3] = ["containers", "isolators", "secrets"];

/// Creates the directories. Those that an older version left readable get the mode 0700, and the modes of their files
/// are changed in the background: nothing below a directory with mode 0700 can be reached meanwhile.
///
/// # Errors
/// An error of the disk.
pub(super) fn prepare(meta: &Path, runtime_dir: &Path) -> anyhow::Result<()> {
    // An existing directory may be shared, as /var/run/mesos is; only the agent's directories in it are private.
    if !runtime_dir.exists() {
        create_directories(runtime_dir.parent().unwrap_or(runtime_dir), Access::All)
            .and_then(|()| create_private(runtime_dir))
            .with_context(|| format!("cannot create the directory '{}'", runtime_dir.display()))?;
    }
    // `isolators` has files that tasks see through mounts; those keep their modes.
    for (path, with_all) in PARTS.iter().map(|part| (runtime_dir.join(part), *part == "containers")) {
        close(&path, with_all)?;
    }
    close(meta, true)
}

/// Makes a directory private, and `with_all` also its content, if it was not private before.
fn close(path: &Path, with_all: bool) -> anyhow::Result<()> {
    let was_open = std::fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0);
    create_private(path)
        .with_context(|| format!("cannot restrict the access to the directory '{}'", path.display()))?;
    if !was_open || !with_all {
        return Ok(());
    }
    let narrow = {
        let path = path.to_owned();
        move || {
            if let Err(error) = make_private(&path) {
                tracing::warn!("some files are still readable by other users: {error}");
            }
        }
    };
    tracing::info!("'{}' was open to other users; its files get the modes 0600 and 0700", path.display());
    let thread = std::thread::Builder::new().name("modes".into()).spawn(narrow);
    thread.map(drop).context("no thread can be started")
}
