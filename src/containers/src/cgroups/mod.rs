//! Control groups, version 1 and 2: accounting, limits and termination of a container's processes.
//!
//! [`Hierarchies`] are the host's mounts; [`Group`] is one container's group in all of them; `cpu.rs`, `memory.rs` and
//! `others.rs` write limits and read usage. All of it reads and writes plain files below given directories, so tests
//! use a tree of their own. This module starts no process: the launcher makes a new one enter its group.

mod cpu;
mod device_filter;
mod end;
mod group;
mod memory;
mod others;
mod pressure;
mod slice;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub use cpu::{CPU_PERIOD, CpuStatistics};
pub use group::{Entry, Group};
pub use memory::{MemoryStatistics, OomWatch, SHORTAGES, ShortageWatch};
pub use others::{Device, DeviceIo, IoStatistics, PidStatistics};
pub use pressure::{Pressure, Pressures, Stalled};
pub use slice::Slice;

/// A controller of control groups; the names are those of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Controller {
    Freezer,
    Cpu,
    Cpuacct,
    Memory,
    Pids,
    Blkio,
    Cpuset,
    Devices,
    Hugetlb,
    NetClass,
    NetPriority,
    PerfEvent,
}

impl Controller {
    const ALL: [Controller; 12] = [
        Controller::Freezer,
        Controller::Cpu,
        Controller::Cpuacct,
        Controller::Memory,
        Controller::Pids,
        Controller::Blkio,
        Controller::Cpuset,
        Controller::Devices,
        Controller::Hugetlb,
        Controller::NetClass,
        Controller::NetPriority,
        Controller::PerfEvent,
    ];

    /// Returns the name of the controller in version 1.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Freezer => "freezer",
            Controller::Cpu => "cpu",
            Controller::Cpuacct => "cpuacct",
            Controller::Memory => "memory",
            Controller::Pids => "pids",
            Controller::Blkio => "blkio",
            Controller::Cpuset => "cpuset",
            Controller::Devices => "devices",
            Controller::Hugetlb => "hugetlb",
            Controller::NetClass => "net_cls",
            Controller::NetPriority => "net_prio",
            Controller::PerfEvent => "perf_event",
        }
    }

    /// Returns the name in `cgroup.subtree_control`; `None` for what version 2 does without a controller.
    fn unified_name(self) -> Option<&'static str> {
        match self {
            Controller::Freezer | Controller::Cpuacct | Controller::Devices => None,
            Controller::NetClass | Controller::NetPriority | Controller::PerfEvent => None,
            Controller::Blkio => Some("io"),
            other => Some(other.name()),
        }
    }
}

/// An error of an operation on control groups.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The host has not mounted this controller, which is needed.
    #[error("The cgroup controller '{0}' is not mounted; mount it, or remove its isolator from --isolation")]
    Missing(&'static str),
    /// The host has no usable control groups.
    #[error("Neither cgroups v1 with a freezer nor cgroups v2 are mounted")]
    None,
    /// The kernel accepts no device program, by which version 2 restricts devices.
    #[error("This kernel does not support BPF programs for devices; remove cgroups/devices from --isolation")]
    NoDeviceFilter(#[source] io::Error),
    /// An access to a file or directory of a hierarchy failed.
    #[error("Failed to {step} '{}'", path.display())]
    Step {
        /// The operation, such as `open`.
        step: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Processes of a group did not end in time.
    #[error("Processes {remaining:?} of the control group '{}' did not end", path.display())]
    Remaining {
        /// Directory of the group.
        path: PathBuf,
        /// Pids of the processes that are left.
        remaining: Vec<i32>,
    },
}

pub(crate) fn failed(step: &'static str, path: &Path) -> impl Fn(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Step { step, path: path.clone(), source }
}

/// The version of control groups that is used, and its mount points.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mounts {
    /// Version 1: the mount point of each controller's hierarchy.
    V1(BTreeMap<Controller, PathBuf>),
    /// Version 2: the mount point of the one hierarchy.
    V2(PathBuf),
}

/// The host's control group hierarchies, and the group below which an agent makes its own (`--cgroups_root`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchies {
    mounts: Mounts,
    root: String,
}

impl Hierarchies {
    /// Returns the hierarchies of this host, from `/proc/self/mountinfo`.
    ///
    /// # Errors
    /// If containers cannot be killed by their group: there is neither a freezer (v1) nor a unified hierarchy (v2).
    pub fn of_this_host(root: &str) -> Result<Hierarchies, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let text = std::fs::read_to_string(path).map_err(failed("read", path))?;
        Hierarchies::detect(&text, root)
    }

    /// Parses a text in the format of `mountinfo`. Version 1 is used where its freezer is mounted: on a host with both,
    /// the controllers belong to it.
    ///
    /// # Errors
    /// As [`Hierarchies::of_this_host`].
    pub fn detect(mountinfo: &str, root: &str) -> Result<Hierarchies, CgroupError> {
        let mut first = BTreeMap::new();
        let mut second = None;
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let (Some(point), mut rest) = (left.split(' ').nth(4), right.split(' ')) else { continue };
            match (rest.next(), rest.nth(1)) {
                (Some("cgroup"), Some(options)) => {
                    for controller in Controller::ALL {
                        if options.split(',').any(|option| option == controller.name()) {
                            first.entry(controller).or_insert_with(|| PathBuf::from(point));
                        }
                    }
                }
                (Some("cgroup2"), _) => second = second.or_else(|| Some(PathBuf::from(point))),
                _ => {}
            }
        }
        let mounts = match (first.contains_key(&Controller::Freezer), second) {
            (true, _) => Mounts::V1(first),
            (false, Some(point)) => Mounts::V2(point),
            (false, None) => return Err(CgroupError::None),
        };
        Ok(Hierarchies { mounts, root: root.trim_matches('/').to_owned() })
    }

    /// Returns the hierarchy of version 2 that is mounted at `point`, whatever else the host has.
    pub fn unified(point: &Path, root: &str) -> Hierarchies {
        Hierarchies { mounts: Mounts::V2(point.to_owned()), root: root.trim_matches('/').to_owned() }
    }

    /// Returns the version of control groups that is used: 1 or 2.
    pub fn version(&self) -> u32 {
        match self.mounts {
            Mounts::V1(_) => 1,
            Mounts::V2(_) => 2,
        }
    }

    /// Returns the available controllers without the freezer, which is always used.
    pub fn available(&self) -> Vec<Controller> {
        let there = match &self.mounts {
            Mounts::V1(_) => String::new(),
            Mounts::V2(mount) => std::fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default(),
        };
        let has = |controller: &Controller| match &self.mounts {
            Mounts::V1(mounts) => mounts.contains_key(controller),
            Mounts::V2(_) => {
                let listed = |name: &str| there.split_ascii_whitespace().any(|other| other == name);
                let lacks = || *controller == Controller::Devices && device_filter::check().is_err();
                controller.unified_name().map_or_else(|| !lacks(), listed)
            }
        };
        Controller::ALL.into_iter().filter(|controller| *controller != Controller::Freezer && has(controller)).collect()
    }

    /// Creates the agent's own group in the hierarchies of these controllers, and enables the controllers for the
    /// groups below it.
    ///
    /// # Errors
    /// The first controller that is missing, or an error of the system.
    pub fn prepare(&self, controllers: &[Controller]) -> Result<(), CgroupError> {
        match &self.mounts {
            Mounts::V1(mounts) => {
                for controller in controllers {
                    let mount = mounts.get(controller).ok_or(CgroupError::Missing(controller.name()))?;
                    let directory = mount.join(&self.root);
                    std::fs::create_dir_all(&directory).map_err(failed("create the cgroup", &directory))?;
                    if *controller == Controller::Cpuset {
                        others::inherit_cpuset(mount, &directory)?;
                    }
                }
                Ok(())
            }
            Mounts::V2(mount) => {
                if controllers.contains(&Controller::Devices) {
                    device_filter::check()?;
                }
                let mut directory = mount.clone();
                for part in Path::new(&self.root) {
                    hand_down(&directory, controllers)?;
                    directory.push(part);
                    make(&directory)?;
                }
                hand_down(&directory, controllers)
            }
        }
    }

    /// Returns the group of a container; `container` is its id after those of its parents, joined by dots. Creates
    /// nothing.
    pub fn group(&self, container: &str) -> Group {
        let mut parts = container.split('.');
        let mut relative = PathBuf::from(&self.root).join(parts.next().unwrap_or_default());
        for id in parts {
            relative = relative.join(INSIDE).join(id);
        }
        match &self.mounts {
            Mounts::V1(mounts) => {
                let directories = mounts.iter().map(|(controller, mount)| (*controller, mount.join(&relative)));
                Group::v1(directories.collect())
            }
            Mounts::V2(mount) => Group::v2(mount.join(&relative)),
        }
    }
}

/// Name of the directory between a container's group and those of its nested containers.
const INSIDE: &str = "mesos";

/// Creates a group unless it exists.
fn make(directory: &Path) -> Result<(), CgroupError> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("create the cgroup", directory)(error))
        }
        _ => Ok(()),
    }
}

/// Version 2: enables the controllers for the groups below this one. Some hosts lack some controllers; then only their
/// files are missing.
fn hand_down(directory: &Path, controllers: &[Controller]) -> Result<(), CgroupError> {
    let there = std::fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
    for controller in controllers {
        let Some(name) = controller.unified_name() else { continue };
        if !there.split_ascii_whitespace().any(|other| other == name) {
            return Err(CgroupError::Missing(name));
        }
        write(&directory.join("cgroup.subtree_control"), &format!("+{name}"))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    std::fs::write(path, text).map_err(failed("write", path))
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn read_number(path: &Path) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

/// Returns the number after `key` in a file of lines `key number`.
fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "\
30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
33 25 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
";

    #[test]
    fn what_is_mounted() {
        let host = Hierarchies::detect(FIRST, "/mesos/").unwrap();
        assert_eq!(host.version(), 1);
        assert!(matches!(host.prepare(&[Controller::Memory]), Err(CgroupError::Missing("memory"))));
        let second = Hierarchies::detect("32 25 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "mesos").unwrap();
        assert_eq!(second, Hierarchies::unified(Path::new("/sys/fs/cgroup"), "mesos"));
        assert_eq!(second.version(), 2);
        for text in ["", "x", "1 2 3 - ext4", "1 2 3 / /a rw - tmpfs tmpfs rw"] {
            assert!(matches!(Hierarchies::detect(text, "mesos"), Err(CgroupError::None)), "{text}");
        }
    }
}
