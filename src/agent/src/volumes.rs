//! Where persistent volumes lie, and how tasks see them.

use protos::mesos as pb;
use resources::{Resource, SourceKind, resource_from_proto};

/// The folder of a persistent volume; none for what is no volume of the agent's own disks.
pub(crate) fn volume_path(work_dir: &str, volume: &Resource) -> Option<String> {
    let disk = volume.disk()?;
    let id = disk.persistence_id().filter(|_| volume.provider().is_none())?;
    // Ids become a path: what would lead elsewhere is no volume.
    base::TaskId::new(id).ok()?;
    let role = volume.reservation_role()?.as_str().replace('/', " ");
    match (disk.source(), disk.root()) {
        (None, _) => Some(format!("{work_dir}/volumes/roles/{role}/{id}")),
        (Some(SourceKind::Path), Some(root)) if root.starts_with('/') => {
            Some(format!("{root}/volumes/roles/{role}/{id}"))
        }
        (Some(SourceKind::Path), Some(root)) => Some(format!("{work_dir}/{root}/volumes/roles/{role}/{id}")),
        (Some(SourceKind::Mount), Some(root)) => Some(root.to_owned()),
        _ => None,
    }
}

/// The volumes among some resources: the path in the sandbox, and the folder that it leads to.
pub(crate) fn volume_links<'a>(
    work_dir: &str,
    resources: impl Iterator<Item = &'a pb::Resource>,
) -> Vec<(String, String)> {
    let volumes = resources.filter(|resource| resource.disk.as_ref().is_some_and(|disk| disk.persistence.is_some()));
    let mut links: Vec<(String, String)> = volumes
        .filter_map(|message| {
            let volume = resource_from_proto(message).ok()?;
            let path = volume.disk()?.volume()?.container_path.clone();
            Some((path, volume_path(work_dir, &volume)?))
        })
        .collect();
    links.sort();
    links.dedup();
    links
}
