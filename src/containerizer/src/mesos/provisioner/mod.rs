//! The provisioner: fetches container images into the store before a container starts, and builds its root file system
//! from them (docs/mesos/containerizer.md, AGT-103).
//!
//! The crate `fetcher` has the format of images and the store; a container's first process mounts.

mod backend;
pub(crate) mod gc;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use agent::{ContainerName, ContainerSpec};
use anyhow::Context;
use containers::isolation::{Isolation, Mount, MountPath};
use fetcher::image::{Backend, Defaults, Image, ImageRequest, Pruned, Store};
use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::sys::statvfs::FsFlags;
use protos::mesos;
use store::Access;

use crate::config;
use crate::config::{ConfigError, DeviceFile, ImageGc};
use crate::credential_helpers::{self, Logins};
use crate::fetcher::Fetcher;
use backend::RootAssembly;

/// Name of the file with the image of a root or a volume, which garbage collection reads.
const IMAGE_FILE: &str = "image.json";
/// Devices of the host in a container's `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Files of the host that a container on the host's network needs.
const NETWORK_FILES: [&str; 3] = ["etc/hosts", "etc/hostname", "etc/resolv.conf"];
/// Value of `PATH` if neither the image nor the task sets it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that tell the command executor how its task is started if the task does not (see crate `executor`).
const ENTRYPOINT: &str = "TEPUI_IMAGE_ENTRYPOINT";
const CMD: &str = "TEPUI_IMAGE_CMD";

/// The container images of this agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provisioner(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whether Docker images are enabled (`--image_providers=docker`).
    enabled: bool,
    registry: String,
    store: PathBuf,
    backend: Backend,
    logins: Logins,
    ignore_runtime: bool,
    stall: u64,
    /// Path of the sandbox in a container with a root file system of its own.
    sandbox: String,
    /// Configuration of image garbage collection (`--image_gc_config`).
    gc: Option<ImageGc>,
    /// Directory of root file systems, `<work_dir>/provisioner/containers`.
    roots: PathBuf,
    /// Lock against garbage collection. It is held for reading from the fetch of an image until the container's file
    /// names the layers, and for writing while images are deleted.
    pruning: RwLock<()>,
}

/// A container's root file system that is ready to be mounted.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// Path of the root in the container's mount namespace.
    path: PathBuf,
    /// Writable part of the root, and the layers below it.
    written: PathBuf,
    lower: Vec<PathBuf>,
    /// Whether the root is read-only.
    is_read_only: bool,
    /// Directory that becomes `/dev`.
    devices: PathBuf,
    mounts: Vec<Mount>,
    defaults: Defaults,
    gpu_driver: bool,
}

/// An image that is mounted as a volume.
pub(crate) struct ImageVolume {
    /// Mount that makes `path` available; `None` if none is needed.
    pub(crate) mount: Option<Mount>,
    /// Directory with the content of the image.
    pub(crate) path: PathBuf,
    /// Whether the volume is read-only.
    pub(crate) is_read_only: bool,
}

impl Provisioner {
    /// Creates the provisioner with a backend that works on this host.
    ///
    /// # Errors
    /// A backend that this host does not support.
    pub(crate) fn start(config: &config::Config) -> Result<Provisioner, ConfigError> {
        let roots = config.work_dir.join("provisioner/containers");
        let config::Provisioner { enabled, registry, store, backend: name, .. } = config.provisioner.clone();
        let backend = match enabled || !Backend::is_name(&name) {
            true => {
                let chosen = Backend::choose(&name, &store, &roots);
                let (backend, reasons) =
                    chosen.map_err(|why| ConfigError::new("image_provisioner_backend", why.to_string()))?;
                if !reasons.is_empty() {
                    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                    tracing::info!("images: the backend is {backend:?}, as {}", reasons.join(", and "));
                }
                backend
            }
            false => Backend::Copy,
        };
        Ok(Provisioner(Arc::new(Inner {
            enabled,
            registry,
            store,
            backend,
            logins: Logins::of(&config.docker_config),
            ignore_runtime: config.provisioner.ignore_runtime,
            stall: config.fetcher.stall.as_secs().max(1),
            gc: config.provisioner.gc.clone(),
            sandbox: config.provisioner.sandbox.trim_end_matches('/').to_owned(),
            roots,
            pruning: RwLock::new(()),
        })))
    }

    /// Returns whether a container needs images.
    pub(crate) fn are_wanted(spec: &ContainerSpec) -> bool {
        Provisioner::wanted(spec).is_some() || volumes(spec).next().is_some()
    }

    /// Returns the image of a container's root file system, if it requests one.
    fn wanted(spec: &ContainerSpec) -> Option<&mesos::Image> {
        spec.container.as_ref()?.mesos.as_ref()?.image.as_ref().filter(|_| spec.session.is_none())
    }

    /// Fetches the images of a container, and prepares its root and its volumes. Blocks.
    ///
    /// # Errors
    /// An image that is not available, or a root that cannot be built; nothing is left of it then.
    pub(crate) fn provision(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetcher: &Fetcher,
    ) -> anyhow::Result<()> {
        if let Some(wanted) = Provisioner::wanted(spec) {
            let _held = self.0.pruning.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            let image = self.fetch_image(container, spec, fetcher, wanted)?;
            let made = self.make(container, &image);
            made.inspect_err(|_| self.remove(container)).context("The container's root cannot be created")?;
        }
        for (number, wanted) in volumes(spec) {
            let _held = self.0.pruning.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            let made = self.fetch_image(container, spec, fetcher, wanted);
            let made = made.and_then(|image| self.make_volume(container, number, &image));
            made.inspect_err(|_| self.remove(container)).context("An image cannot be mounted as a volume")?;
        }
        Ok(())
    }

    /// Fetches an image into the store, unless it is there already.
    fn fetch_image(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetcher: &Fetcher,
        wanted: &mesos::Image,
    ) -> anyhow::Result<Image> {
        anyhow::ensure!(self.0.enabled, "Container images need --image_providers=docker");
        anyhow::ensure!(wanted.r#type() == mesos::image::Type::Docker, "Only images of the type DOCKER are supported");
        let docker = wanted.docker.as_ref().context("The image has no 'docker'")?;
        let logins = docker.config.as_ref().map(crate::secrets::value).transpose()?;
        let logins = match logins {
            Some(own) => String::from_utf8_lossy(&own).into_owned(),
            None => {
                // HDFS has no logins.
                let own = Some(self.0.registry.as_str()).filter(|registry| !registry.starts_with("hdfs:"));
                match wanted.cached() && self.has(&docker.name) {
                    true => String::new(),
                    false => self.0.logins.ask(credential_helpers::host_of(&docker.name).or(own).unwrap_or_default()),
                }
            }
        };
        let ask = ImageRequest {
            name: docker.name.clone(),
            registry: self.0.registry.clone(),
            store: self.0.store.clone(),
            cached: wanted.cached(),
            stall: self.0.stall,
            logins,
        };
        let fetched = fetcher.fetch_image(container, spec, &serde_json::to_string(&ask)?);
        let image = fetched.with_context(|| format!("Failed to fetch the image '{}'", docker.name))?;
        serde_json::from_str(image.trim()).context("The fetcher's answer cannot be read")
    }

    /// Returns whether an image is in the store.
    fn has(&self, name: &str) -> bool {
        let found = |name| Some(Store::open(&self.0.store).ok()?.find(&name).is_some());
        fetcher::image::Name::parse(name).ok().and_then(found).unwrap_or(false)
    }

    fn directory(&self, container: &ContainerName) -> PathBuf {
        let mut parts = container.as_str().split('.');
        let root = self.0.roots.join(parts.next().unwrap_or_default());
        parts.fold(root, |directory, id| directory.join("containers").join(id))
    }

    fn make(&self, container: &ContainerName, image: &Image) -> anyhow::Result<()> {
        let directory = self.directory(container);
        let layers = self.layers(image)?;
        let root = directory.join("rootfs");
        // Other users may not access the directory, because the image may have set-user-id programs.
        store::create_private(&directory)?;
        for part in ["rootfs", "upper", "work", "dev/pts", "dev/shm"] {
            store::create_directories(&directory.join(part), Access::All)?;
        }
        // The file is written before the layers are used, because garbage collection reads it.
        store::write_file(&directory.join(IMAGE_FILE), &serde_json::to_vec(image)?, Access::Owner)?;
        make_devices(&directory)?;
        let (written, lower): (_, &[PathBuf]) = match RootAssembly::of(self.0.backend, &layers, &directory)? {
            RootAssembly::Single(layer) => return backend::check_points(&layer, &self.0.sandbox),
            RootAssembly::Copied => {
                fetcher::image::copy_layers(&layers, &root)?;
                (root.clone(), &[])
            }
            RootAssembly::Mounted(_) => (directory.join("upper"), &layers),
        };
        // An overlay uses the mode of the upper directory as that of the root.
        fs::set_permissions(&written, fs::Permissions::from_mode(0o755))?;
        for (point, mode) in [("proc", 0o555), ("sys", 0o555), ("dev", 0o755), ("tmp", 0o1777), ("etc", 0o755)] {
            mount_point(&written, lower, point, mode)?;
        }
        let mut inside = vec![self.0.sandbox.trim_start_matches('/').to_owned()];
        let asked = [&image.defaults.working_dir].into_iter().chain(&image.defaults.volumes);
        // A path with `..` is ignored.
        let plain = |path: &str| !path.is_empty() && path.split('/').all(|part| part != "..");
        inside.extend(asked.map(|path| path.trim_matches('/').to_owned()).filter(|path| plain(path)));
        for path in inside {
            let mut sofar = PathBuf::new();
            for part in Path::new(&path).components() {
                sofar.push(part);
                mount_point(&written, lower, &sofar.to_string_lossy(), 0o755)?;
            }
        }
        for file in NETWORK_FILES {
            let path = written.join(file);
            if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                fs::remove_file(&path)?;
            }
            if !path.exists() {
                store::write_file(&path, b"", Access::All)?;
            }
        }
        Ok(())
    }

    /// Prepares an image as the container's volume with this number.
    fn make_volume(&self, container: &ContainerName, number: usize, image: &Image) -> anyhow::Result<()> {
        let directory = self.volume_directory(container, number);
        let layers = self.layers(image)?;
        store::create_private(&self.directory(container))?;
        for part in ["rootfs", "upper", "work"] {
            store::create_directories(&directory.join(part), Access::All)?;
        }
        store::write_file(&directory.join(IMAGE_FILE), &serde_json::to_vec(image)?, Access::Owner)?;
        let written = match RootAssembly::of(self.0.backend, &layers, &directory)? {
            RootAssembly::Single(_) => return Ok(()),
            RootAssembly::Mounted(_) => directory.join("upper"),
            RootAssembly::Copied => {
                fetcher::image::copy_layers(&layers, &directory.join("rootfs"))?;
                directory.join("rootfs")
            }
        };
        Ok(fs::set_permissions(written, fs::Permissions::from_mode(0o755))?)
    }

    /// Returns the container's volume with this number.
    ///
    /// # Errors
    /// If the volume has not been prepared.
    pub(crate) fn volume(&self, container: &ContainerName, number: usize) -> anyhow::Result<ImageVolume> {
        let directory = self.volume_directory(container, number);
        let image = fs::read(directory.join(IMAGE_FILE)).context("The volume's image has not been provisioned")?;
        let layers = self.layers(&serde_json::from_slice(&image)?)?;
        let path = directory.join("rootfs");
        Ok(match RootAssembly::of(self.0.backend, &layers, &directory)? {
            RootAssembly::Mounted(mount) => ImageVolume { mount: Some(mount), path, is_read_only: false },
            RootAssembly::Copied => ImageVolume { mount: None, path, is_read_only: false },
            RootAssembly::Single(layer) => ImageVolume { mount: None, path: layer, is_read_only: true },
        })
    }

    fn volume_directory(&self, container: &ContainerName, number: usize) -> PathBuf {
        self.directory(container).join("volumes").join(number.to_string())
    }

    fn layers(&self, image: &Image) -> anyhow::Result<Vec<PathBuf>> {
        let store = Store::open(&self.0.store)?;
        Ok(image.layers.iter().map(|id| store.layer(id)).collect())
    }

    /// Returns the root that was built for a container; `None` if it has no image.
    ///
    /// # Errors
    /// A damaged file about the image, or a store that cannot be read.
    pub(crate) fn root_of(&self, container: &ContainerName) -> anyhow::Result<Option<Root>> {
        let directory = self.directory(container);
        let Ok(text) = fs::read(directory.join(IMAGE_FILE)) else { return Ok(None) };
        let image: Image = serde_json::from_slice(&text).context("The file about the container's image is damaged")?;
        let layers = self.layers(&image)?;
        let path = directory.join("rootfs");
        let mut mounts = Vec::new();
        let assembly = RootAssembly::of(self.0.backend, &layers, &directory)?;
        let is_read_only = matches!(assembly, RootAssembly::Single(_));
        let (written, lower) = match assembly {
            RootAssembly::Mounted(mount) => {
                mounts.push(mount);
                (directory.join("upper"), layers)
            }
            // Only a mount point can become the root.
            RootAssembly::Copied => {
                mounts.push(bind(&path, &path, false));
                (path.clone(), Vec::new())
            }
            RootAssembly::Single(layer) => {
                mounts.push(bind(&layer, &path, true));
                (layer, Vec::new())
            }
        };
        let at = |point: &str| path.join(point);
        mounts.push(Mount::Processes { target: at("proc") });
        if !is_read_only || backend::has(&written, "sys", true) {
            mounts.push(bind(Path::new("/sys"), &at("sys"), true));
        }
        mounts.push(bind(&directory.join("dev"), &at("dev"), false));
        for device in DEVICES {
            mounts.push(bind(&Path::new("/dev").join(device), &at("dev").join(device), false));
        }
        mounts.push(Mount::Terminals { target: at("dev/pts") });
        mounts.push(Mount::Memory { target: at("dev/shm"), options: "mode=1777".into() });
        let there = |file: &str| !is_read_only || backend::has(&written, file, false);
        for file in NETWORK_FILES.iter().filter(|file| Path::new("/").join(file).is_file() && there(file)) {
            mounts.push(bind(&Path::new("/").join(file), &at(file), true));
        }
        let defaults = if self.0.ignore_runtime { Defaults::default() } else { image.defaults };
        let (devices, gpu_driver) = (directory.join("dev"), image.gpu_driver);
        Ok(Some(Root { path, written, lower, is_read_only, devices, mounts, defaults, gpu_driver }))
    }

    /// Returns whether a container, or one around it, has a root of its own.
    pub(crate) fn is_below_root(&self, container: &ContainerName) -> bool {
        let mut around = Some(container.clone());
        while let Some(name) = around {
            if self.has_root(&name) {
                return true;
            }
            around = name.parent();
        }
        false
    }

    /// Returns whether a container has a root of its own.
    pub(crate) fn has_root(&self, container: &ContainerName) -> bool {
        self.directory(container).join(IMAGE_FILE).exists()
    }

    /// Returns the path of the sandbox in a container with a root of its own.
    pub(crate) fn sandbox(&self) -> &str {
        &self.0.sandbox
    }

    /// Deletes the roots and volumes of a container and of those inside it.
    pub(crate) fn remove(&self, container: &ContainerName) {
        let directory = self.directory(container);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%container, "cannot delete '{}': {error}", directory.display());
            }
            _ => {}
        }
    }

    /// Deletes the roots that the previous agent process has left, except those of these containers.
    pub(crate) fn clean(&self, wanted: &BTreeSet<String>) {
        if self.0.enabled
            && let Ok(store) = Store::open(&self.0.store)
        {
            store.clean();
        }
        for entry in fs::read_dir(&self.0.roots).into_iter().flatten().flatten() {
            if !wanted.contains(&*entry.file_name().to_string_lossy()) {
                crate::delete(&entry.path());
            }
        }
    }

    /// Returns the configuration of image garbage collection, and the store's directory; `None` if it is disabled.
    pub(crate) fn collection(&self) -> Option<(&ImageGc, &Path)> {
        Some((self.0.gc.as_ref()?, &self.0.store))
    }

    /// Deletes the images that no container uses, except those of `keep` and of `--image_gc_config`. Blocks, and waits
    /// for images that are being fetched.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn prune(&self, keep: &[String]) -> anyhow::Result<Pruned> {
        if !self.0.enabled {
            return Ok(Pruned::default());
        }
        let excluded = self.0.gc.iter().flat_map(|gc| &gc.excluded);
        let keep: Vec<String> = keep.iter().chain(excluded).cloned().collect();
        let _alone = self.0.pruning.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut used = BTreeSet::new();
        layers_below(&self.0.roots, &mut used);
        Ok(Store::open(&self.0.store)?.prune(&keep, &used))
    }
}

impl Root {
    /// Adds the root to a container's isolation. `sandbox` is the host's path of its sandbox, `seen` that in the
    /// container. Mounts within the sandbox come before the sandbox, other ones after it.
    pub(crate) fn enter(&self, isolation: &mut Isolation, sandbox: &str, seen: &str) {
        let own = std::mem::take(&mut isolation.mounts);
        // A nested sandbox is in its parent's, whose user may replace any directory by a link.
        let sandbox = MountPath::without_links(sandbox);
        let (within, elsewhere): (Vec<Mount>, Vec<Mount>) = own.into_iter().partition(|mount| match mount {
            Mount::Bind { target, .. } => target.is_within(&sandbox),
            // The mount of an image must precede its bind mount.
            other => matches!(other, Mount::Overlay { .. } | Mount::Aufs { .. }),
        });
        isolation.mounts = self.mounts.clone();
        isolation.mounts.extend(within);
        let target = MountPath { base: self.path.clone(), inside: PathBuf::from(seen.trim_start_matches('/')) };
        isolation.mounts.push(Mount::Bind { source: sandbox, target, read_only: false });
        isolation.mounts.extend(elsewhere);
        isolation.namespaces.mount = true;
        isolation.root = Some(self.path.clone());
    }

    /// Returns the mount point of an absolute path in the root. It is created if the image does not have it.
    ///
    /// # Errors
    /// An error of the system, a path outside the root, or a read-only root without this path.
    pub(crate) fn point(&self, path: &Path, is_directory: bool) -> anyhow::Result<MountPath> {
        let inside = path.strip_prefix("/").unwrap_or(path);
        let plain = inside.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        anyhow::ensure!(plain && inside.iter().next().is_some(), "Nothing can be mounted at '{}'", path.display());
        if self.is_read_only {
            let there = backend::has(&self.written, &inside.to_string_lossy(), is_directory);
            anyhow::ensure!(there, "The image has no '{}', and nothing can be created in it", path.display());
            return Ok(MountPath { base: self.path.clone(), inside: inside.to_owned() });
        }
        let parts: Vec<_> = inside.iter().collect();
        let directories = if is_directory { parts.len() } else { parts.len() - 1 };
        let mut sofar = PathBuf::new();
        for part in &parts[..directories] {
            sofar.push(part);
            mount_point(&self.written, &self.lower, &sofar.to_string_lossy(), 0o755)?;
        }
        let file = self.written.join(inside);
        if !is_directory && !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            // A link of that name would redirect the mount.
            let _ = fs::remove_file(&file);
            store::write_file(&file, b"", Access::All).with_context(|| format!("'{}'", path.display()))?;
        }
        Ok(MountPath { base: self.path.clone(), inside: inside.to_owned() })
    }

    /// Creates a device in the container's `/dev`, unless it has a file with that name.
    ///
    /// # Errors
    /// An error of the system, or a directory of roots on a file system that is mounted with nodev.
    pub(crate) fn make_device(&self, file: &DeviceFile) -> anyhow::Result<()> {
        let flags = nix::sys::statvfs::statvfs(&self.devices)?.flags();
        anyhow::ensure!(
            !flags.contains(FsFlags::ST_NODEV),
            "No device can be created in '{}': its file system is mounted with nodev",
            self.devices.display()
        );
        let path = self.devices.join(&file.path);
        if let Some(directory) = path.parent() {
            store::create_directories(directory, Access::All)?;
        }
        let kind = if file.is_block { SFlag::S_IFBLK } else { SFlag::S_IFCHR };
        let what = || format!("cannot create the device '/dev/{}'", file.path.display());
        match mknod(&path, kind, Mode::from_bits_truncate(file.mode), file.number) {
            Err(Errno::EEXIST) => return Ok(()),
            made => made.with_context(what)?,
        }
        // The mode above is subject to the umask.
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)).with_context(what)
    }

    /// Returns the path of the root.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the image requires the driver of the host's GPUs.
    pub(crate) fn wants_gpu_driver(&self) -> bool {
        self.gpu_driver
    }

    /// Returns the working directory of the image, if it has one.
    pub(crate) fn working_dir(&self) -> Option<&str> {
        Some(self.defaults.working_dir.as_str()).filter(|path| !path.is_empty())
    }

    /// Adds the image's variables that neither the task nor the agent sets, without those that configure executors.
    pub(crate) fn add_variables(&self, environment: &mut Vec<(String, String)>) {
        for variable in &self.defaults.env {
            let Some((name, value)) = variable.split_once('=') else { continue };
            match environment.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if name == "PATH" && known == PATH => value.clone_into(known),
                Some(_) => {}
                None if agent::is_agents_own(name) => {}
                None => environment.push((name.to_owned(), value.to_owned())),
            }
        }
        for (name, words) in [(ENTRYPOINT, &self.defaults.entrypoint), (CMD, &self.defaults.cmd)] {
            if !words.is_empty() {
                let text: String = words.iter().map(|word| format!("{}:{word}", word.len())).collect();
                environment.push((name.to_owned(), text));
            }
        }
    }

    /// Returns the program and argv of a command that names no program.
    ///
    /// # Errors
    /// If the image names none either.
    pub(crate) fn program(&self, arguments: &[String]) -> anyhow::Result<(String, Vec<String>)> {
        let Defaults { entrypoint, cmd, .. } = &self.defaults;
        let arguments: &[String] = if arguments == [""] { &[] } else { arguments };
        let mut argv = entrypoint.clone();
        if argv.is_empty() {
            argv.extend(cmd.first().cloned());
            argv.extend_from_slice(if arguments.is_empty() { cmd.get(1..).unwrap_or_default() } else { arguments });
        } else {
            argv.extend_from_slice(if arguments.is_empty() { cmd } else { arguments });
        }
        let program = argv.first().cloned();
        let program = program.filter(|_| !entrypoint.is_empty() || !cmd.is_empty());
        Ok((program.context("Neither the command nor the image names a program")?, argv))
    }
}

fn bind(source: &Path, target: &Path, read_only: bool) -> Mount {
    Mount::Bind { source: MountPath::trusted(source), target: MountPath::trusted(target), read_only }
}

/// Creates the mount points and links in a container's `/dev`.
fn make_devices(directory: &Path) -> anyhow::Result<()> {
    for device in DEVICES {
        store::write_file(&directory.join("dev").join(device), b"", Access::All)?;
    }
    for (name, target) in LINKS {
        std::os::unix::fs::symlink(target, directory.join("dev").join(name))?;
    }
    Ok(())
}

/// Creates a directory in the writable part of a root, unless it exists there.
fn mount_point(written: &Path, lower: &[PathBuf], point: &str, mode: u32) -> anyhow::Result<()> {
    let path = written.join(point);
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(&path)?,
        Err(_) => {}
    }
    let below = lower.iter().rev().find_map(|layer| layer.join(point).symlink_metadata().ok());
    store::create_directory(&path, Access::All).with_context(|| format!("'{point}'"))?;
    // The mode of a directory in the image is kept.
    let mode = below.filter(fs::Metadata::is_dir).map_or(mode, |below| below.permissions().mode() & 0o7777);
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Adds the layers of all containers with roots below this directory.
fn layers_below(directory: &Path, used: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(text) = fs::read(path.join(IMAGE_FILE))
            && let Ok(image) = serde_json::from_slice::<Image>(&text)
        {
            used.extend(image.layers);
        }
        for inside in [path.join("containers"), path.join("volumes")].iter().filter(|inside| inside.is_dir()) {
            layers_below(inside, used);
        }
    }
}

/// Returns the container's volumes that are images, with their numbers among all of its volumes.
fn volumes(spec: &ContainerSpec) -> impl Iterator<Item = (usize, &mesos::Image)> {
    let all = spec.container.iter().filter(|_| spec.session.is_none()).flat_map(|container| &container.volumes);
    all.enumerate().filter_map(|(number, volume)| Some((number, volume.image.as_ref()?)))
}

/// Sets the variable of the sandbox for a container in which its path is `seen`.
pub(crate) fn see_sandbox(environment: &mut [(String, String)], seen: &str) {
    if let Some((_, value)) = environment.iter_mut().find(|(name, _)| name == "MESOS_SANDBOX") {
        seen.clone_into(value);
    }
}

/// Converts variables for a `Spec`.
pub(crate) fn os(environment: &[(String, String)]) -> Vec<(OsString, OsString)> {
    environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(entrypoint: &[&str], cmd: &[&str], env: &[&str]) -> Root {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let defaults = Defaults { entrypoint: list(entrypoint), cmd: list(cmd), env: list(env), ..Defaults::default() };
        let (lower, mounts) = (Vec::new(), Vec::new());
        let (path, written) = (PathBuf::from("/r"), PathBuf::from("/r"));
        let devices = path.join("../dev");
        Root { path, written, lower, is_read_only: false, devices, mounts, defaults, gpu_driver: false }
    }

    #[test]
    fn what_is_run() {
        let argv = |entrypoint: &[&str], cmd: &[&str], arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
            root(entrypoint, cmd, &[]).program(&arguments).map(|(_, argv)| argv.join(" ")).unwrap_or_default()
        };
        assert_eq!(argv(&["e", "1"], &["c"], &[]), "e 1 c");
        assert_eq!(argv(&["e"], &["c"], &["a", "b"]), "e a b");
        assert_eq!(argv(&[], &["c", "d"], &[]), "c d");
        assert_eq!(argv(&[], &["c", "d"], &["a"]), "c a");
        assert_eq!(argv(&[], &[], &["a"]), "");
    }

    #[test]
    fn variables() {
        let mut environment = vec![("PATH".to_owned(), PATH.to_owned()), ("A".to_owned(), "task".to_owned())];
        root(&["x y"], &[], &["PATH=/p", "A=image", "B=b=c", "TEPUI_DOCKER_OUTPUT=/", "nonsense"])
            .add_variables(&mut environment);
        let text: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(text, ["PATH=/p", "A=task", "B=b=c", "TEPUI_IMAGE_ENTRYPOINT=3:x y"]);
    }
}
