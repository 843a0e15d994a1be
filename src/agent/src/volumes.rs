//! Where persistent volumes lie, and how containers see them (mesos-features.md RES-42, RES-47).
//!
//! It names folders; making, deleting and linking them is the shell's.

use protos::mesos as pb;
use resources::{Resource, Resources, SourceKind, resource_from_proto};

use crate::agent::Agent;
use crate::container::{ContainerName, Prepare, VolumeLink};
use crate::executor::Executor;
use crate::output::{GoneVolume, Outbox, Output};

/// The folder of a persistent volume; none for what is no volume of the agent's own disks.
pub(crate) fn volume_path(work_dir: &str, volume: &Resource) -> Option<String> {
    let disk = volume.disk()?;
    let id = disk.persistence_id().filter(|_| volume.provider().is_none())?;
    // Ids become a path: what would lead elsewhere is no volume.
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

/// A relative root is below the work folder.
fn disk_root(work_dir: &str, root: &str) -> String {
    let root = root.trim_end_matches('/');
    if root.starts_with('/') { root.to_owned() } else { format!("{work_dir}/{root}") }
}

/// A folder that more than one volume would lie in; the master should not let it come to that.
pub(crate) fn doubled_volume(work_dir: &str, resources: &Resources) -> Option<String> {
    let volumes = resources.iter().filter(|resource| resource.is_persistent_volume());
    let mut folders: Vec<String> = volumes.filter_map(|volume| volume_path(work_dir, volume)).collect();
    folders.sort();
    folders.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// The volumes' folders that go and those that come when resources change.
pub(crate) fn volume_changes(work_dir: &str, old: &Resources, new: &Resources) -> (Vec<GoneVolume>, Vec<String>) {
    let folders = |resources: &Resources| -> Vec<GoneVolume> {
        let volumes = resources.iter().filter(|resource| resource.is_persistent_volume());
        let folder = |volume: &Resource| {
            let is_mount = volume.disk().and_then(|disk| disk.source()) == Some(SourceKind::Mount);
            Some(GoneVolume { path: volume_path(work_dir, volume)?, is_mount })
        };
        volumes.filter_map(folder).collect()
    };
    let (old, new) = (folders(old), folders(new));
    let gone = old.iter().filter(|volume| !new.contains(volume)).cloned().collect();
    let new = new.iter().filter(|volume| !old.contains(volume)).map(|volume| volume.path.clone()).collect();
    (gone, new)
}

fn is_volume(resource: &pb::Resource) -> bool {
    resource.disk.as_ref().is_some_and(|disk| disk.persistence.is_some())
}

/// The volumes among some resources.
fn volumes<'a>(work_dir: &str, resources: impl Iterator<Item = &'a pb::Resource>) -> Vec<(VolumeLink, bool)> {
    let link = |message: &pb::Resource| {
        let volume = resource_from_proto(message).ok()?;
        let seen = volume.disk()?.volume()?.container_path.clone();
        let link = VolumeLink { seen, folder: volume_path(work_dir, &volume)?, prepare: Prepare::Give };
        Some((link, message.shared.is_some()))
    };
    let mut links: Vec<_> = resources.filter(|resource| is_volume(resource)).filter_map(link).collect();
    links.sort();
    links.dedup();
    links
}

impl Agent {
    /// The volumes that a container is to see, with what is done to them first: a volume belongs to the user who uses
    /// it, but one that others use too is left as it is.
    pub(crate) fn volume_links(&self, container: &ContainerName, resources: &[pb::Resource]) -> Vec<VolumeLink> {
        let of = |(mut link, shared): (VolumeLink, bool)| {
            if shared && self.is_used_elsewhere(&link.folder, container) {
                link.prepare = Prepare::Leave;
            }
            link
        };
        volumes(&self.config.work_dir, resources.iter()).into_iter().map(of).collect()
    }

    fn is_used_elsewhere(&self, folder: &str, container: &ContainerName) -> bool {
        let mut executors = self.frameworks.executors();
        executors.any(|other| other.container != *container && other.volumes.iter().any(|link| link.folder == folder))
    }

    /// Lets a running container see the volumes of the tasks that it has now, and no others.
    pub(crate) fn update_volumes(&mut self, framework: &str, executor: &str, out: &mut Outbox) {
        let Some(known) = self.executor(framework, executor) else { return };
        if known.volumes.is_empty() && !known.uses_volumes() {
            return;
        }
        let links = self.volume_links(&known.container, &known.resources());
        let same = |a: &VolumeLink, b: &VolumeLink| (&a.seen, &a.folder) == (&b.seen, &b.folder);
        let without = |links: &[VolumeLink], others: &[VolumeLink]| -> Vec<VolumeLink> {
            links.iter().filter(|link| !others.iter().any(|other| same(link, other))).cloned().collect()
        };
        let (appear, vanish) = (without(&links, &known.volumes), without(&known.volumes, &links));
        if appear.is_empty() && vanish.is_empty() {
            return;
        }
        out.outputs.push(Output::LinkVolumes {
            container: known.container.clone(),
            sandbox: known.directory.to_string(),
            user: known.user.clone(),
            appear,
            vanish,
        });
        if let Some(known) = self.executor_mut(framework, executor) {
            known.volumes = links;
        }
    }
}

impl Executor {
    /// Whether anything that it or its tasks hold is a persistent volume.
    pub(crate) fn uses_volumes(&self) -> bool {
        let queued = self.queued.iter().flat_map(crate::Queued::tasks).flat_map(|task| &task.resources);
        let launched = self.launched.values().flat_map(|task| &task.resources);
        self.info.resources.iter().chain(queued).chain(launched).any(is_volume)
    }
}
