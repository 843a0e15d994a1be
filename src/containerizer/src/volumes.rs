//! Persistent volumes on the disk: directories that are created, deleted, and linked into sandboxes.
//!
//! The agent's core decides which ones, and when.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use agent::{Prepare, RemovedVolume, VolumeLink};
use anyhow::Context;
use containers::User;
use store::Access;

use crate::delete;

/// Name of the directory with destroyed volumes whose data was not deleted yet: beside `roles`, or inside a mount.
const DESTROYED: &str = ".destroyed";
/// Directory that mkfs(8) creates, and that fsck(8) needs.
const LOST_AND_FOUND: &str = "lost+found";

/// Counter that makes the names of destroyed volumes unique within this process.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Removes and creates volumes. Data is only moved aside here, so quickly that the reactor may wait for it. Returns the
/// directories that are still to be deleted.
///
/// # Errors
/// The first volume that cannot be removed or created.
pub fn change(gone: &[RemovedVolume], new: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut aside = Vec::new();
    for volume in gone {
        let path = Path::new(&volume.path);
        let moved = if volume.is_mount { empty_mount(path) } else { move_aside(path) };
        aside.extend(moved.with_context(|| format!("the volume '{}' cannot be destroyed", volume.path))?);
    }
    for path in new {
        store::create_directories(Path::new(path), Access::All)
            .with_context(|| format!("the volume '{path}' cannot be created"))?;
    }
    Ok(aside)
}

fn unique(directory: &Path) -> PathBuf {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    directory.join(format!("{}-{number}", std::process::id()))
}

/// Renames `<root>/volumes/roles/<role>/<id>` to `<root>/volumes/.destroyed/<some name>`.
fn move_aside(path: &Path) -> anyhow::Result<Option<PathBuf>> {
    let volumes = path.ancestors().nth(3).context("its path is too short")?;
    let directory = volumes.join(DESTROYED);
    store::create_directories(&directory, Access::Owner)?;
    let target = unique(&directory);
    match std::fs::rename(path, &target) {
        Ok(()) => Ok(Some(target)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Moves the content of a mount point aside. The mount point itself is kept.
fn empty_mount(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let target = unique(&root.join(DESTROYED));
    store::create_directories(&target, Access::Owner)?;
    for entry in std::fs::read_dir(root)? {
        let name = entry?.file_name();
        if name != DESTROYED && name != LOST_AND_FOUND {
            std::fs::rename(root.join(&name), target.join(&name))?;
        }
    }
    Ok(Some(root.join(DESTROYED)))
}

/// Returns the directories in which the previous agent process may have left destroyed volumes: in the work directory,
/// and on the disks of these resources.
pub fn leftovers(work_dir: &Path, resources: &resources::Resources) -> Vec<PathBuf> {
    let roots = resources.iter().filter_map(|resource| {
        let disk = resource.disk()?;
        let root = work_dir.join(disk.root()?);
        let is_path = disk.source() == Some(resources::SourceKind::Path);
        Some(if is_path { root.join("volumes") } else { root })
    });
    roots
        .chain([work_dir.join("volumes")])
        .map(|directory| directory.join(DESTROYED))
        .filter(|directory| directory.exists())
        .collect()
}

/// Deletes directories in the background.
pub fn delete_later(directories: Vec<PathBuf>) {
    if !directories.is_empty() {
        tokio::task::spawn_blocking(move || directories.iter().for_each(|directory| delete(directory)));
    }
}

/// Links directories into a sandbox.
///
/// # Errors
/// The first directory that cannot be linked.
pub fn link_all(sandbox: &Path, volumes: &[VolumeLink], user: Option<&User>) -> anyhow::Result<()> {
    for link in volumes {
        prepare_directory(link, user)?;
        containers::link_inside(sandbox, Path::new(&link.container_path), Path::new(&link.directory))?;
    }
    Ok(())
}

/// Prepares a directory for a container.
///
/// # Errors
/// The directory is missing, cannot be created, or cannot be given to its user.
pub(crate) fn prepare_directory(link: &VolumeLink, user: Option<&User>) -> anyhow::Result<()> {
    let directory = Path::new(&link.directory);
    match (&link.prepare, user) {
        (Prepare::ChangeOwner, Some(user)) => containers::chown_directory(directory, user)?,
        (Prepare::ChangeOwner | Prepare::KeepOwner, _) => {
            anyhow::ensure!(directory.is_dir(), "The volume's directory '{}' is missing", link.directory);
        }
        (Prepare::Create { sandbox }, _) => {
            let sandbox = Path::new(sandbox);
            let inside = directory.strip_prefix(sandbox).context("A directory of another sandbox is outside of it")?;
            containers::make_inside(sandbox, inside)?;
        }
    }
    Ok(())
}

/// Removes the links to directories from a sandbox; a missing link is not an error.
///
/// # Errors
/// The first link that cannot be removed.
pub fn unlink_all(sandbox: &Path, volumes: &[VolumeLink]) -> anyhow::Result<()> {
    for link in volumes {
        containers::unlink_inside(sandbox, Path::new(&link.container_path), Path::new(&link.directory))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tepui-volumes-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn destroyed_volumes_are_gone_at_once_and_deleted_later() {
        let root = directory("aside");
        let volume = root.join("volumes/roles/dev test/v1");
        let text = volume.to_string_lossy().into_owned();
        let gone = [RemovedVolume { path: text.clone(), is_mount: false }];
        assert_eq!(change(&[], std::slice::from_ref(&text)).unwrap(), [] as [PathBuf; 0]);
        std::fs::write(volume.join("file"), "x").unwrap();
        let aside = change(&gone, std::slice::from_ref(&text)).unwrap();
        assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0);
        assert!(aside[0].join("file").exists());
        assert_eq!(leftovers(&root, &resources::Resources::default()), [root.join("volumes/.destroyed")]);
        // The change is repeated, as after a crash: there is nothing left to remove.
        std::fs::remove_dir(&volume).unwrap();
        assert_eq!(change(&gone, &[]).unwrap(), [] as [PathBuf; 0]);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_mount_is_emptied_and_stays() {
        let root = directory("mount");
        std::fs::create_dir_all(root.join("lost+found")).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        let gone = RemovedVolume { path: root.to_string_lossy().into_owned(), is_mount: true };
        for directory in change(std::slice::from_ref(&gone), &[]).unwrap() {
            delete(&directory);
        }
        let left: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lost+found"]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
