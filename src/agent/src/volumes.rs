//! Paths of persistent volumes (RES-42, RES-47).
//!
//! It names directories; the shell creates, deletes and links them.

use protos::mesos as pb;
use resources::{Resource, Resources, SourceKind, resource_from_proto};

use crate::output::RemovedVolume;
use crate::state::{Executor, Prepare, Queued, VolumeLink};

/// Returns the directory of a persistent volume; `None` for a volume on another disk than the agent's.
pub(crate) fn volume_path(work_dir: &str, volume: &Resource) -> Option<String> {
    let disk = volume.disk()?;
    let id = disk.persistence_id().filter(|_| volume.provider().is_none())?;
    // The id becomes part of a path: one that would leave the directory is invalid.
    base::TaskId::new(id).ok()?;
    let role = volume.reservation_role()?.as_str().replace('/', " ");
    match (disk.source(), disk.root()) {
        (None, _) => Some(format!("{work_dir}/volumes/roles/{role}/{id}")),
        (Some(SourceKind::Path), Some(root)) => {
            Some(format!("{}/volumes/roles/{role}/{id}", disk_root(work_dir, root)))
        }
        (Some(SourceKind::Mount), Some(root)) => Some(disk_root(work_dir, root)),
        _ => None,
    }
}

/// Returns the absolute root of a disk; a relative one is below the work directory.
fn disk_root(work_dir: &str, root: &str) -> String {
    let root = root.trim_end_matches('/');
    if root.starts_with('/') { root.to_owned() } else { format!("{work_dir}/{root}") }
}

/// Returns a directory that more than one volume would have; the master should prevent that.
pub(crate) fn shared_volume_directory(work_dir: &str, resources: &Resources) -> Option<String> {
    let volumes = resources.iter().filter(|resource| resource.is_persistent_volume());
    let mut directories: Vec<String> = volumes.filter_map(|volume| volume_path(work_dir, volume)).collect();
    directories.sort();
    directories.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// Returns the volumes to delete, and the directories of volumes to create, when resources change.
pub(crate) fn volume_changes(work_dir: &str, old: &Resources, new: &Resources) -> (Vec<RemovedVolume>, Vec<String>) {
    let directories = |resources: &Resources| -> Vec<RemovedVolume> {
        let volumes = resources.iter().filter(|resource| resource.is_persistent_volume());
        let directory = |volume: &Resource| {
            let is_mount = volume.disk().and_then(|disk| disk.source()) == Some(SourceKind::Mount);
            Some(RemovedVolume { path: volume_path(work_dir, volume)?, is_mount })
        };
        volumes.filter_map(directory).collect()
    };
    let (old, new) = (directories(old), directories(new));
    let gone = old.iter().filter(|volume| !new.contains(volume)).cloned().collect();
    let new = new.iter().filter(|volume| !old.contains(volume)).map(|volume| volume.path.clone()).collect();
    (gone, new)
}

fn is_volume(resource: &pb::Resource) -> bool {
    resource.disk.as_ref().is_some_and(|disk| disk.persistence.is_some())
}

/// Returns the volumes among some resources, each with whether it is shared.
pub(crate) fn volumes<'a>(
    work_dir: &str,
    resources: impl Iterator<Item = &'a pb::Resource>,
) -> Vec<(VolumeLink, bool)> {
    let link = |message: &pb::Resource| {
        let volume = resource_from_proto(message).ok()?;
        let container_path = volume.disk()?.volume()?.container_path.clone();
        let link =
            VolumeLink { container_path, directory: volume_path(work_dir, &volume)?, prepare: Prepare::ChangeOwner };
        Some((link, message.shared.is_some()))
    };
    let mut links: Vec<_> = resources.filter(|resource| is_volume(resource)).filter_map(link).collect();
    links.sort();
    links.dedup();
    links
}

impl Executor {
    /// Returns whether the executor or one of its tasks holds a persistent volume.
    pub(crate) fn uses_volumes(&self) -> bool {
        let queued = self.queued.iter().flat_map(Queued::tasks).flat_map(|task| &task.resources);
        let launched = self.launched.values().flat_map(|task| &task.resources);
        self.info.resources.iter().chain(queued).chain(launched).any(is_volume)
    }
}
