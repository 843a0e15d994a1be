//! Isolator `filesystem/linux`, with `volume/...` and `docker/runtime`: the root file system and the volumes of a
//! container (AGT-95 to AGT-98).
//!
//! Mount points are created here; the container's first process mounts. Paths that the task's user owns are resolved
//! without following links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent::{ContainerName, ContainerSpec, Input, Prepare};
use anyhow::Context;
use containers::User;
use containers::isolation::{Isolation, Mount, MountPath};
use protos::mesos;
use protos::mesos::volume::source::sandbox_path::Type as Whose;

use super::view::View;
use crate::config::Config;
use crate::fetcher::Fetcher;
use crate::mesos::isolators::{Container, Isolator, Launch};
use crate::mesos::provisioner::Provisioner;

/// The isolator `filesystem/linux`: root file systems, persistent volumes and volumes of containers.
pub(crate) struct Filesystem {
    images: Provisioner,
    fetcher: Fetcher,
    /// Directory in which secrets are written for containers to read.
    secrets: PathBuf,
    /// Directories below which missing host paths are created (`--host_path_volume_force_creation`).
    force_creation: Vec<PathBuf>,
}

impl Filesystem {
    pub(crate) fn new(config: &Config, images: Provisioner, fetcher: Fetcher) -> Filesystem {
        let secrets = config.runtime_dir.join("secrets");
        Filesystem { images, fetcher, secrets, force_creation: config.isolation.force_creation.clone() }
    }
}

impl Isolator for Filesystem {
    fn recover(&self, kept: &BTreeSet<String>) {
        self.images.clean(kept);
    }

    fn needs_provisioning(&self, spec: &ContainerSpec) -> bool {
        Provisioner::are_wanted(spec)
    }

    fn provision(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Option<Input>> {
        self.images.provision(container, spec, &self.fetcher).map(|()| None)
    }

    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        if container.outer_process.is_none() {
            let hostname = container.spec.container.as_ref().and_then(|container| container.hostname.clone());
            launch.isolation.namespaces.uts = hostname.is_some();
            launch.isolation.namespaces.mount = true;
            launch.isolation.hostname = hostname;
        }
        let Container { name: container, spec, user, .. } = container;
        Wanted { isolator: self, container, spec, user, view: &launch.view }.add(&mut launch.isolation)
    }

    fn cleanup(&self, container: &ContainerName) {
        self.images.remove(container);
        crate::secrets::remove(&self.secrets, container);
    }
}

/// Returns whether a container requests volumes.
pub(crate) fn asks(spec: &ContainerSpec) -> bool {
    spec.container.as_ref().is_some_and(|container| !container.volumes.is_empty())
}

/// A container whose volumes are mounted.
struct Wanted<'a> {
    isolator: &'a Filesystem,
    container: &'a ContainerName,
    spec: &'a ContainerSpec,
    user: Option<&'a User>,
    view: &'a View,
}

impl Wanted<'_> {
    /// Adds the mounts that the container requests.
    ///
    /// # Errors
    /// A volume that does not exist, that is outside the sandbox, or that this agent does not support.
    fn add(&self, isolation: &mut Isolation) -> anyhow::Result<()> {
        let spec = self.spec;
        let asked = spec.container.as_ref().map(|container| container.volumes.as_slice()).unwrap_or_default();
        let is_inside = isolation.enter.is_some() && self.view.root().is_none();
        // Nested containers share the root of their parent, where these directories are symbolic links.
        for link in spec.volumes.iter().filter(|_| !is_inside) {
            crate::volumes::prepare_directory(link, self.user)?;
            let source = match &link.prepare {
                // A sandbox may be in a directory of a user, who may replace any part of the path by a link.
                Prepare::Create { .. } => MountPath::without_links(&link.directory),
                Prepare::ChangeOwner | Prepare::KeepOwner => MountPath::trusted(&link.directory),
            };
            let target = self.point(&link.container_path, true)?;
            isolation.mounts.push(Mount::Bind { source, target, read_only: false });
        }
        for (number, volume) in asked.iter().enumerate() {
            let (source, is_directory, fixed) = match &volume.image {
                Some(_) => {
                    let shown = self.isolator.images.volume(self.container, number)?;
                    isolation.mounts.extend(shown.mount);
                    (MountPath::trusted(shown.path), true, shown.is_read_only)
                }
                None => {
                    let (source, is_directory) = self.source(volume)?;
                    (source, is_directory, false)
                }
            };
            let target = self.point(&volume.container_path, is_directory)?;
            let read_only = fixed || volume.mode() == mesos::volume::Mode::Ro;
            isolation.mounts.push(Mount::Bind { source, target, read_only });
        }
        isolation.namespaces.mount |= !isolation.mounts.is_empty();
        Ok(())
    }

    /// Returns the source of a volume, and whether it is a directory.
    fn source(&self, volume: &mesos::Volume) -> anyhow::Result<(MountPath, bool)> {
        use mesos::volume::source::Type;
        let (isolator, spec) = (self.isolator, self.spec);
        let shown = &volume.container_path;
        let Some(source) = &volume.source else {
            let path = volume.host_path.as_deref().with_context(|| format!("The volume '{shown}' has no source"))?;
            return host_path(&isolator.force_creation, spec, path);
        };
        match source.r#type() {
            Type::HostPath => {
                let path =
                    source.host_path.as_ref().with_context(|| format!("The volume '{shown}' has no host path"))?;
                host_path(&isolator.force_creation, spec, &path.path)
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
                let bytes = crate::secrets::value(secret)?;
                let file = crate::secrets::write(&isolator.secrets, self.container, self.user, &bytes)?;
                Ok((MountPath::trusted(file), false))
            }
            other => anyhow::bail!("Volumes of the type {} are not supported by this agent", other.as_str_name()),
        }
    }

    /// Returns the mount point of a volume. It is created in the sandbox, and in a root file system of the container's
    /// own; anywhere else it must exist.
    fn point(&self, seen: &str, is_directory: bool) -> anyhow::Result<MountPath> {
        let path = Path::new(seen);
        let path = match self.view.root() {
            Some(root) => match path.strip_prefix(self.view.sandbox(self.spec)) {
                Ok(inside) => inside,
                Err(_) if path.is_absolute() => return root.point(path, is_directory),
                Err(_) => path,
            },
            None => path,
        };
        if path.is_absolute() {
            let found = std::fs::metadata(path).with_context(|| format!("Nothing can be mounted at '{seen}'"))?;
            anyhow::ensure!(
                found.is_dir() == is_directory,
                "A directory and a file cannot be mounted on each other ('{seen}')"
            );
            return Ok(MountPath::trusted(path));
        }
        let sandbox = Path::new(&self.spec.sandbox);
        match is_directory {
            true => containers::make_inside(sandbox, path)?,
            false => containers::make_file_inside(sandbox, path)?,
        }
        Ok(MountPath::without_links(sandbox.join(path)))
    }
}

fn host_path(creation: &[PathBuf], spec: &ContainerSpec, path: &str) -> anyhow::Result<(MountPath, bool)> {
    if !path.starts_with('/') {
        return sandbox_path(spec, path);
    }
    let found = Path::new(path);
    let clean = found.components().all(|part| part != std::path::Component::ParentDir);
    if clean && !found.exists() && creation.iter().any(|allowed| found.starts_with(allowed)) {
        store::create_directories(found, store::Access::All)
            .with_context(|| format!("The host path '{path}' cannot be created"))?;
    }
    let metadata = std::fs::metadata(found).with_context(|| format!("The host path '{path}' cannot be mounted"))?;
    Ok((MountPath::trusted(path), metadata.is_dir()))
}

/// Returns a directory of the container's own sandbox, which is created for its owner.
fn sandbox_path(spec: &ContainerSpec, path: &str) -> anyhow::Result<(MountPath, bool)> {
    let sandbox = Path::new(&spec.sandbox);
    containers::make_inside(sandbox, Path::new(path))?;
    Ok((MountPath::without_links(sandbox.join(path)), true))
}
