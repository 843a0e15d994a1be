//! What a container sees of the host's disks: volumes as mounts (mesos-features.md AGT-95 to AGT-98).
//!
//! Mount points are made here, the mounts by the container's first process. Whatever the task's user owns is walked
//! without following links.

use std::path::Path;

use agent::{ContainerName, ContainerSpec, Prepare};
use anyhow::Context;
use containers::User;
use containers::isolation::{Isolation, Mount, Place};
use protos::mesos::volume::source::sandbox_path::Type as Whose;
use protos::mesos::{self, LinuxInfo, linux_info::IpcMode};

use super::{Images, Isolators, View};

/// Whether the container uses the shared memory of the one around it.
pub(super) fn shares_ipc(linux: Option<&LinuxInfo>) -> bool {
    linux.is_some_and(|linux| linux.ipc_mode() == IpcMode::ShareParent)
}

/// A container whose volumes are wanted.
pub(super) struct Wanted<'a> {
    pub(super) isolators: &'a Isolators,
    pub(super) images: &'a Images,
    pub(super) container: &'a ContainerName,
    pub(super) spec: &'a ContainerSpec,
    pub(super) user: Option<&'a User>,
    pub(super) view: &'a View,
}

impl Wanted<'_> {
    /// Adds the mounts that the container asks for.
    ///
    /// # Errors
    /// A volume that is not there, that leads out of the sandbox, or that this agent cannot give.
    pub(super) fn add(&self, isolation: &mut Isolation) -> anyhow::Result<()> {
        let (isolators, spec) = (self.isolators, self.spec);
        let asked = spec.container.as_ref().map(|container| container.volumes.as_slice()).unwrap_or_default();
        let is_inside = isolation.enter.is_some() && self.view.root().is_none();
        if isolators.mounts {
            // Those inside another container see their folders through links, as they share its root.
            for link in spec.volumes.iter().filter(|_| !is_inside) {
                super::super::volumes::ready(link, self.user)?;
                let source = match &link.prepare {
                    // A sandbox lies in a folder that may be a user's, who may put a link in the place of any part of it.
                    Prepare::Make { .. } => Place::without_links(&link.folder),
                    Prepare::Give | Prepare::Leave => Place::trusted(&link.folder),
                };
                let target = self.point(&link.seen, true)?;
                isolation.mounts.push(Mount::Bind { source, target, read_only: false });
            }
            for (number, volume) in asked.iter().enumerate() {
                let (source, is_folder, fixed) = match &volume.image {
                    Some(_) => {
                        let shown = self.images.volume(self.container, number)?;
                        isolation.mounts.extend(shown.mount);
                        (Place::trusted(shown.path), true, shown.is_fixed)
                    }
                    None => {
                        let (source, is_folder) = self.source(volume)?;
                        (source, is_folder, false)
                    }
                };
                let target = self.point(&volume.container_path, is_folder)?;
                let read_only = fixed || volume.mode() == mesos::volume::Mode::Ro;
                isolation.mounts.push(Mount::Bind { source, target, read_only });
            }
        }
        isolation.namespaces.mount |= !isolation.mounts.is_empty();
        let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let size = linux.map_or(Ok(None), |linux| own_memory(linux, isolation.namespaces.ipc))?;
        if isolation.namespaces.ipc {
            let size = size.or(isolators.shared_memory).map(|bytes| format!(",size={bytes}")).unwrap_or_default();
            let target = self.view.root().map_or("/dev/shm".into(), |root| root.path().join("dev/shm"));
            isolation.mounts.push(Mount::Memory { target, options: format!("mode=1777{size}") });
        }
        Ok(())
    }

    /// What a volume shows, and whether that is a folder.
    fn source(&self, volume: &mesos::Volume) -> anyhow::Result<(Place, bool)> {
        use mesos::volume::source::Type;
        let (isolators, spec) = (self.isolators, self.spec);
        let shown = &volume.container_path;
        let Some(source) = &volume.source else {
            let path = volume.host_path.as_deref().with_context(|| format!("The volume '{shown}' has no source"))?;
            return host_path(isolators, spec, path);
        };
        match source.r#type() {
            Type::HostPath => {
                let path =
                    source.host_path.as_ref().with_context(|| format!("The volume '{shown}' has no host path"))?;
                host_path(isolators, spec, &path.path)
            }
            Type::SandboxPath => {
                let path = source.sandbox_path.as_ref().with_context(|| format!("The volume '{shown}' has no path"))?;
                anyhow::ensure!(
                    path.r#type() == Whose::Self_,
                    "A volume of the parent's sandbox needs a parent container"
                );
                sandbox_path(spec, &path.path)
            }
            Type::Secret => {
                let secret = source.secret.as_ref().with_context(|| format!("The volume '{shown}' has no secret"))?;
                let bytes = super::super::secrets::value(secret)?;
                let file = super::super::secrets::write(&isolators.secrets, self.container, self.user, &bytes)?;
                Ok((Place::trusted(file), false))
            }
            other => anyhow::bail!("Volumes of the type {} are not supported by this agent", other.as_str_name()),
        }
    }

    /// Where a volume is seen: in the sandbox, where the place is made; in a root of its own, where it is made too; or
    /// anywhere else, where it must be.
    fn point(&self, seen: &str, is_folder: bool) -> anyhow::Result<Place> {
        let path = Path::new(seen);
        let path = match self.view.root() {
            Some(root) => match path.strip_prefix(self.view.sandbox(self.spec)) {
                Ok(inside) => inside,
                Err(_) if path.is_absolute() => return root.point(path, is_folder),
                Err(_) => path,
            },
            None => path,
        };
        if path.is_absolute() {
            let found = std::fs::metadata(path).with_context(|| format!("Nothing can be mounted at '{seen}'"))?;
            anyhow::ensure!(
                found.is_dir() == is_folder,
                "A folder and a file cannot be mounted on each other ('{seen}')"
            );
            return Ok(Place::trusted(path));
        }
        let sandbox = Path::new(&self.spec.sandbox);
        match is_folder {
            true => containers::make_inside(sandbox, path)?,
            false => containers::make_file_inside(sandbox, path)?,
        }
        Ok(Place::without_links(sandbox.join(path)))
    }
}

/// The bytes of `/dev/shm` that a container asks for; `is_private` if it gets one of its own.
///
/// # Errors
/// If it has not asked for that one, too.
fn own_memory(linux: &LinuxInfo, is_private: bool) -> anyhow::Result<Option<u64>> {
    let size = linux.shm_size.map(|megabytes| u64::from(megabytes) << 20);
    anyhow::ensure!(
        size.is_none() || is_private && linux.ipc_mode() == IpcMode::Private,
        "'shm_size' needs a private ipc namespace (the isolator namespaces/ipc and ipc_mode PRIVATE)"
    );
    Ok(size)
}

fn host_path(isolators: &Isolators, spec: &ContainerSpec, path: &str) -> anyhow::Result<(Place, bool)> {
    if !path.starts_with('/') {
        return sandbox_path(spec, path);
    }
    let found = Path::new(path);
    let clean = found.components().all(|part| part != std::path::Component::ParentDir);
    if clean && !found.exists() && isolators.force_creation.iter().any(|allowed| found.starts_with(allowed)) {
        store::create_directories(found, store::Access::All)
            .with_context(|| format!("The host path '{path}' cannot be created"))?;
    }
    let metadata = std::fs::metadata(found).with_context(|| format!("The host path '{path}' cannot be mounted"))?;
    Ok((Place::trusted(path), metadata.is_dir()))
}

/// A folder of the container's own sandbox, which is made for its owner.
fn sandbox_path(spec: &ContainerSpec, path: &str) -> anyhow::Result<(Place, bool)> {
    let sandbox = Path::new(&spec.sandbox);
    containers::make_inside(sandbox, Path::new(path))?;
    Ok((Place::without_links(sandbox.join(path)), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_shared_memory_goes_with_a_private_one() {
        let asked = |mode: Option<IpcMode>, size, is_private| {
            let linux = LinuxInfo { ipc_mode: mode.map(|mode| mode as i32), shm_size: size, ..LinuxInfo::default() };
            own_memory(&linux, is_private).map_err(|error| error.to_string())
        };
        assert_eq!(asked(Some(IpcMode::Private), Some(2), true), Ok(Some(2 << 20)));
        assert_eq!(asked(Some(IpcMode::Private), None, true), Ok(None));
        assert_eq!(asked(None, None, false), Ok(None));
        for (mode, is_private) in [(None, true), (Some(IpcMode::ShareParent), false), (Some(IpcMode::Private), false)] {
            assert!(asked(mode, Some(2), is_private).unwrap_err().contains("'shm_size'"), "{mode:?}");
        }
    }
}
