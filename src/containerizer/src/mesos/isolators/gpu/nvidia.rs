//! Isolator `gpu/nvidia`, which assigns GPUs to containers, permits access to their devices, and sets CUDA's variables
//! (AGT-108). Mesos has no shares of a GPU.
//!
//! `gpus` are whole devices. `gpu_share` are parts of devices that are reserved for sharing (`--gpu_share_devices`): a
//! container has its share of one device, and CUDA's multi-process service limits it to that part of the processors.
//! Assignments are recorded in `--runtime_dir`, as containers outlive the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agent::{ContainerName, Limits};
use anyhow::{Context, bail, ensure};
use base::lock;
use containers::cgroups::{Device, Group};
use protos::mesos;
use serde::{Deserialize, Serialize};
use store::Access;

use super::driver;
use crate::config::{Cgroups, Config, ConfigError, DeviceFile};
use crate::mesos::isolators::{Container, Isolator, Launch};

/// Name of the resource that is a part of a device.
const SHARE: &str = "gpu_share";
/// A whole device in thousandths.
const WHOLE: u64 = 1000;
/// Devices that every container with a GPU needs in addition.
const COMMON: [&str; 3] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"];

/// GPUs of this agent with their assignments. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Gpus(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Directory of devices, `/dev`.
    devices: PathBuf,
    /// Directory of the records of assignments.
    notes: PathBuf,
    whole: Vec<u32>,
    shared: Vec<u32>,
    held: Mutex<BTreeMap<String, AssignedGpus>>,
}

/// GPUs that a container holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct AssignedGpus {
    whole: Vec<u32>,
    /// Shared device, and the part of it in thousandths.
    share: Option<(u32, u64)>,
}

impl Gpus {
    /// Finds the GPUs, and recovers the assignments of the previous agent process. Returns `None` if GPUs are not
    /// isolated.
    ///
    /// # Errors
    /// Devices that do not exist, or that are configured both as shared and as whole.
    pub fn start(config: &Config) -> Result<Option<Gpus>, ConfigError> {
        let isolation = &config.isolation;
        if !isolation.has(&["gpu/nvidia"]) {
            return Ok(None);
        }
        let (devices, notes) = (PathBuf::from("/dev"), config.runtime_dir.join("isolators/gpu"));
        let gpus = Gpus::new(devices, notes, isolation.gpus.clone(), isolation.shared_gpus.clone());
        gpus.map(Some).map_err(|(flag, why)| ConfigError::new(flag, why))
    }

    fn new(
        devices: PathBuf,
        notes: PathBuf,
        given: Vec<u32>,
        shared: Vec<u32>,
    ) -> Result<Gpus, (&'static str, String)> {
        let there: BTreeSet<u32> = fs::read_dir(&devices)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok())
            .collect();
        for (name, list) in [("nvidia_gpu_devices", &given), ("gpu_share_devices", &shared)] {
            if let Some(missing) = list.iter().find(|index| !there.contains(index)) {
                return Err((name, format!("there is no '{}/nvidia{missing}'", devices.display())));
            }
        }
        if let Some(both) = given.iter().find(|index| shared.contains(index)) {
            return Err(("gpu_share_devices", format!("the device {both} cannot be both shared and exclusive")));
        }
        let all: Vec<u32> = there.into_iter().filter(|index| !shared.contains(index)).collect();
        let whole = if given.is_empty() { all } else { given };
        let held = fs::read_dir(&notes).into_iter().flatten().flatten().filter_map(|entry| {
            let held = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
            Some((entry.file_name().into_string().ok()?, held))
        });
        let held = Mutex::new(held.collect());
        Ok(Gpus(Arc::new(Inner { devices, notes, whole, shared, held })))
    }

    /// Returns the numbers of whole and of shared devices.
    pub fn count(&self) -> (usize, usize) {
        (self.0.whole.len(), self.0.shared.len())
    }

    /// Assigns GPUs to a container for the resources that it holds. It keeps those that it has.
    ///
    /// # Errors
    /// The container holds more than is free.
    fn assign(&self, container: &ContainerName, list: &[mesos::Resource]) -> anyhow::Result<AssignedGpus> {
        let (count, share) = (thousandths(list, "gpus") / WHOLE, thousandths(list, SHARE));
        let mut all = lock(&self.0.held);
        let mut own = all.get(container.as_str()).cloned().unwrap_or_default();
        let before = own.clone();
        let used: BTreeSet<u32> = all.values().flat_map(|held| held.whole.iter().copied()).collect();
        let mut free = self.0.whole.iter().filter(|index| !used.contains(index));
        while (own.whole.len() as u64) < count {
            let next = free.next().context("Fewer GPUs are available than the container requires")?;
            own.whole.push(*next);
        }
        let part = own.share.map_or(0, |(_, part)| part);
        if share > part {
            all.remove(container.as_str());
            let device = match own.share {
                Some((device, _)) => left(&all, device).checked_sub(share).map(|_| device),
                None => self.fullest(&all, share),
            };
            let Some(device) = device else {
                if before != AssignedGpus::default() {
                    all.insert(container.as_str().to_owned(), before);
                }
                bail!("No shared GPU has {:.3} available", share as f64 / WHOLE as f64);
            };
            own.share = Some((device, share));
        }
        if own != AssignedGpus::default() {
            store::create_private(&self.0.notes)?;
            store::write_file(&self.0.notes.join(container.as_str()), &serde_json::to_vec(&own)?, Access::Owner)?;
            all.insert(container.as_str().to_owned(), own.clone());
        }
        Ok(own)
    }

    /// Returns the GPUs of a container.
    fn of(&self, container: &ContainerName) -> AssignedGpus {
        lock(&self.0.held).get(container.as_str()).cloned().unwrap_or_default()
    }

    /// Returns the device with the smallest sufficient free part, so that large parts remain for others.
    fn fullest(&self, all: &BTreeMap<String, AssignedGpus>, share: u64) -> Option<u32> {
        let fits = self.0.shared.iter().map(|device| (left(all, *device), *device)).filter(|(left, _)| *left >= share);
        fits.min().map(|(_, device)| device)
    }

    /// Releases the GPUs of a container.
    pub(crate) fn release(&self, container: &str) {
        if lock(&self.0.held).remove(container).is_some() {
            let note = self.0.notes.join(container);
            if let Err(error) = fs::remove_file(&note) {
                tracing::warn!(container, "cannot delete '{}': {error}", note.display());
            }
        }
    }

    /// Releases the GPUs of all containers except these top-level ones.
    fn clean(&self, wanted: &BTreeSet<String>) {
        let gone: Vec<String> = lock(&self.0.held).keys().filter(|name| !wanted.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.release(name));
    }

    /// Returns the devices that a container may open, in the format of the device controller.
    ///
    /// # Errors
    /// A device does not exist any more.
    fn devices(&self, held: &AssignedGpus) -> anyhow::Result<Vec<Device>> {
        let number = |(_, device): (PathBuf, u64)| {
            let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
            Device(format!("c {major}:{minor} rwm"))
        };
        Ok(self.files(held)?.into_iter().map(number).collect())
    }

    /// Returns the paths of a container's devices, with their numbers.
    fn files(&self, held: &AssignedGpus) -> anyhow::Result<Vec<(PathBuf, u64)>> {
        let own: Vec<u32> = held.indexes();
        let needed = own.iter().map(|index| (format!("nvidia{index}"), true));
        let common = COMMON.iter().filter(|_| !own.is_empty()).map(|name| ((*name).to_owned(), false));
        let mut files = Vec::new();
        for (name, is_needed) in needed.chain(common) {
            let path = self.0.devices.join(&name);
            match fs::metadata(&path) {
                Ok(found) if found.file_type().is_char_device() => files.push((path, found.rdev())),
                _ => ensure!(!is_needed, "'{}' is not a device", path.display()),
            }
        }
        Ok(files)
    }

    /// Returns a container's devices as files in its `/dev`, for a container with a `/dev` of its own.
    fn device_files(&self, held: &AssignedGpus) -> anyhow::Result<Vec<DeviceFile>> {
        let file = |(path, number): (PathBuf, u64)| {
            let path = path.strip_prefix(&self.0.devices).map(Path::to_owned).unwrap_or(path);
            DeviceFile { path, is_block: false, number, mode: 0o666 }
        };
        Ok(self.files(held)?.into_iter().map(file).collect())
    }

    /// Assigns GPUs to a Docker container. Returns a description of its devices and variables for its executor; `None`
    /// if it holds no GPUs.
    ///
    /// # Errors
    /// The container holds more than is free, or a device no longer exists.
    pub(crate) fn assign_to_docker(
        &self,
        container: &ContainerName,
        list: &[mesos::Resource],
    ) -> anyhow::Result<Option<String>> {
        let held = self.assign(container, list)?;
        if held == AssignedGpus::default() {
            return Ok(None);
        }
        let files: Vec<PathBuf> = self.files(&held)?.into_iter().map(|(path, _)| path).collect();
        Ok(Some(serde_json::json!({"devices": files, "variables": held.variables()}).to_string()))
    }
}

/// The isolator `gpu/nvidia`.
pub(crate) struct Nvidia {
    gpus: Gpus,
    /// Devices that every container may open.
    allowed: Vec<Device>,
}

impl Nvidia {
    pub(crate) fn new(gpus: Gpus, config: &Cgroups) -> Nvidia {
        Nvidia { gpus, allowed: config.devices.clone() }
    }

    /// Permits a top-level container to open its devices; nested containers have the rights of its group.
    fn allow(&self, container: &ContainerName, group: &Group, held: &AssignedGpus) -> anyhow::Result<()> {
        if container.parent().is_some() {
            return Ok(());
        }
        let devices = [self.allowed.clone(), self.gpus.devices(held)?].concat();
        Ok(group.allow_devices(&devices)?)
    }
}

impl Isolator for Nvidia {
    fn recover(&self, kept: &BTreeSet<String>) {
        self.gpus.clean(kept);
    }

    /// Prepares a container with its GPUs. Nested containers have those of their top-level container.
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        let held = match container.name.parent() {
            None => self.gpus.assign(container.name, &container.spec.resources)?,
            Some(_) => self.gpus.of(&container.name.root()),
        };
        launch.variables.extend(held.variables());
        match launch.view.root() {
            Some(root) => {
                self.gpus.device_files(&held)?.iter().try_for_each(|file| root.make_device(file))?;
                driver::add(root, &mut launch.isolation)
            }
            None => Ok(()),
        }
    }

    fn isolate(&self, container: Container<'_>, group: &Group, _: &mut Launch) -> anyhow::Result<()> {
        self.allow(container.name, group, &self.gpus.of(container.name))
    }

    fn update(
        &self,
        container: &ContainerName,
        group: &Group,
        held: &[mesos::Resource],
        _: Limits,
    ) -> anyhow::Result<()> {
        self.allow(container, group, &self.gpus.assign(container, held)?)
    }

    fn cleanup(&self, container: &ContainerName) {
        self.gpus.release(container.as_str());
    }
}

/// Returns the free part of a device in thousandths.
fn left(all: &BTreeMap<String, AssignedGpus>, device: u32) -> u64 {
    let parts = all.values().filter_map(|held| held.share).filter(|(shared, _)| *shared == device);
    WHOLE.saturating_sub(parts.map(|(_, part)| part).sum())
}

impl AssignedGpus {
    fn indexes(&self) -> Vec<u32> {
        self.whole.iter().copied().chain(self.share.map(|(device, _)| device)).collect()
    }

    /// Returns the variables that CUDA and container tools read. Without GPUs the variables hide all devices.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let list: Vec<String> = self.indexes().iter().map(u32::to_string).collect();
        if list.is_empty() {
            return vec![("CUDA_VISIBLE_DEVICES", String::new()), ("NVIDIA_VISIBLE_DEVICES", "void".to_owned())];
        }
        let list = list.join(",");
        let mut variables = vec![("CUDA_VISIBLE_DEVICES", list.clone()), ("NVIDIA_VISIBLE_DEVICES", list)];
        if let Some((_, part)) = self.share.filter(|_| self.whole.is_empty()) {
            // The service supports whole percents only, at least one.
            let percent = (part * 100 / WHOLE).max(1);
            variables.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string()));
        }
        variables
    }
}

fn thousandths(list: &[mesos::Resource], name: &str) -> u64 {
    let scalars = list.iter().filter(|resource| resource.name == name).filter_map(|resource| resource.scalar.as_ref());
    (scalars.map(|scalar| scalar.value).sum::<f64>() * WHOLE as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(name: &str, given: &[u32], shared: &[u32]) -> (Result<Gpus, (&'static str, String)>, PathBuf) {
        let directory = std::env::temp_dir().join(format!("tepui-gpus-{name}-{}", std::process::id()));
        fs::create_dir_all(directory.join("dev")).unwrap();
        for index in 0..4 {
            fs::write(directory.join(format!("dev/nvidia{index}")), "").unwrap();
        }
        (Gpus::new(directory.join("dev"), directory.join("notes"), given.to_vec(), shared.to_vec()), directory)
    }

    fn scalar(name: &str, value: f64) -> Vec<mesos::Resource> {
        let scalar = Some(mesos::value::Scalar { value });
        vec![mesos::Resource { name: name.into(), scalar, ..mesos::Resource::default() }]
    }

    fn container(id: &str) -> ContainerName {
        ContainerName::top(&base::ContainerId::new(id).unwrap())
    }

    fn seen(held: &AssignedGpus) -> String {
        held.variables().iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    #[test]
    fn whole_devices() {
        let (gpus, directory) = gpus("whole", &[], &[3]);
        let gpus = gpus.unwrap();
        assert_eq!(gpus.count(), (3, 1));
        let give = |id: &str, count: f64| gpus.assign(&container(id), &scalar("gpus", count));
        let first = give("a", 2.0).unwrap();
        assert_eq!(seen(&first), "CUDA_VISIBLE_DEVICES=0,1 NVIDIA_VISIBLE_DEVICES=0,1 ");
        assert_eq!(give("a", 2.0).unwrap(), first, "asking again changes nothing");
        assert_eq!(give("b", 2.0).unwrap_err().to_string(), "Fewer GPUs are available than the container requires");
        assert_eq!(seen(&give("b", 0.0).unwrap()), "CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void ");
        assert_eq!(give("b", 1.0).unwrap().whole, [2]);
        // The next agent process recovers the assignments.
        let again = Gpus::new(directory.join("dev"), directory.join("notes"), Vec::new(), vec![3]).unwrap();
        assert!(again.assign(&container("c"), &scalar("gpus", 1.0)).is_err());
        again.clean(&["b".to_owned()].into());
        assert_eq!(again.assign(&container("c"), &scalar("gpus", 1.0)).unwrap().whole, [0]);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn requests_to_docker() {
        let (gpus, directory) = gpus("docker", &[], &[]);
        let gpus = gpus.unwrap();
        let give = |id: &str, count: f64| gpus.assign_to_docker(&container(id), &scalar("gpus", count));
        assert_eq!(give("none", 0.0).unwrap(), None);
        assert!(give("a", 1.0).unwrap_err().to_string().ends_with("nvidia0' is not a device"));
        let path = directory.join("dev/nvidia0");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let devices: serde_json::Value = serde_json::from_str(&give("a", 1.0).unwrap().unwrap()).unwrap();
        assert_eq!(devices["devices"], serde_json::json!([path]));
        assert_eq!(devices["variables"][1], serde_json::json!(["NVIDIA_VISIBLE_DEVICES", "0"]));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn parts_of_devices() {
        let (gpus, directory) = gpus("parts", &[], &[2, 3]);
        let gpus = gpus.unwrap();
        let give = |id: &str, part: f64| gpus.assign(&container(id), &scalar(SHARE, part));
        let first = give("a", 0.5).unwrap();
        assert!(seen(&first).ends_with("NVIDIA_VISIBLE_DEVICES=2 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 "));
        assert_eq!(give("b", 0.6).unwrap().share, Some((3, 600)));
        assert_eq!(give("c", 0.4).unwrap().share, Some((3, 400)), "the fuller one");
        assert_eq!(give("d", 0.6).unwrap_err().to_string(), "No shared GPU has 0.600 available");
        assert_eq!(give("a", 1.0).unwrap().share, Some((2, 1000)), "it has grown where it is");
        gpus.release("b");
        assert_eq!(give("d", 0.6).unwrap().share, Some((3, 600)));
        assert!(give("e", 1.5).is_err());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn flags_that_do_not_fit() {
        let (missing, directory) = gpus("flags", &[7], &[]);
        assert!(missing.unwrap_err().1.contains("nvidia7"));
        assert!(gpus("flags", &[1], &[1]).0.unwrap_err().1.contains("cannot be both shared and exclusive"));
        let (plain, _) = gpus("flags", &[1], &[]);
        // A regular file is not a device.
        assert!(plain.unwrap().devices(&AssignedGpus { whole: vec![1], share: None }).is_err());
        fs::remove_dir_all(directory).unwrap();
    }
}
