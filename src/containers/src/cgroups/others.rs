//! The smaller controllers of control groups: numbers of processes, block devices, processor sets, device nodes, marks
//! of packets.
//!
//! Version 2 has no file for device nodes: there `device_filter.rs` restricts them.

use std::path::Path;

use super::{CgroupError, Controller, Group, read, read_number, write};

/// Number of processes and threads in a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidStatistics {
    /// Current number of processes and threads.
    pub current: u64,
    /// Maximum number of processes and threads; `None` if there is none.
    pub limit: Option<u64>,
}

/// Accesses of a control group to block devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoStatistics {
    /// Bytes read from all devices.
    pub read_bytes: u64,
    /// Bytes written to all devices.
    pub written_bytes: u64,
    /// Requests and bytes by device and operation.
    pub devices: Vec<DeviceIo>,
}

/// Accesses to a block device, by the kernel's names of the operations (`Read`, `Write`, `Discard` and, with version 1,
/// sums of these).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceIo {
    /// Major and minor number of the device; `None` for all devices.
    pub device: Option<(u64, u64)>,
    /// Number of requests, by operation.
    pub requests: Vec<(String, u64)>,
    /// Number of bytes, by operation.
    pub bytes: Vec<(String, u64)>,
}

impl IoStatistics {
    fn device(&mut self, device: Option<(u64, u64)>) -> &mut DeviceIo {
        let index = self.devices.iter().position(|one| one.device == device).unwrap_or_else(|| {
            self.devices.push(DeviceIo { device, ..DeviceIo::default() });
            self.devices.len() - 1
        });
        &mut self.devices[index]
    }

    fn sum(&mut self) {
        let of = |one: &DeviceIo, name: &str| {
            let named = one.bytes.iter().filter(|(word, _)| word == name).map(|(_, count)| *count);
            named.sum::<u64>()
        };
        let own = || self.devices.iter().filter(|one| one.device.is_some());
        (self.read_bytes, self.written_bytes) =
            (own().map(|one| of(one, "Read")).sum(), own().map(|one| of(one, "Write")).sum());
    }
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A device that a container may use, as a line of `devices.allow`: type, numbers, and access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(pub String);

/// Devices that every container may use (AGT-93).
const USUAL: [&str; 13] = [
    "c *:* m",
    "b *:* m",
    "c 5:1 rwm",
    "c 4:0 rwm",
    "c 4:1 rwm",
    "c 136:* rwm",
    "c 5:2 rwm",
    "c 10:200 rwm",
    "c 1:3 rwm",
    "c 1:5 rwm",
    "c 1:7 rwm",
    "c 5:0 rwm",
    "c 1:9 rwm",
];
const RANDOM: &str = "c 1:8 rwm";

impl Group {
    /// Sets the maximum number of processes and threads.
    ///
    /// # Errors
    /// The `pids` controller is not mounted, or an error of the system.
    pub fn set_pids_limit(&self, limit: u64) -> Result<(), CgroupError> {
        let directory = self.directory(Controller::Pids).ok_or(CgroupError::Missing("pids"))?;
        write(&directory.join("pids.max"), &limit.to_string())
    }

    /// Returns the number of processes and threads; `None` if the kernel does not count them for the group.
    pub fn pid_statistics(&self) -> Option<PidStatistics> {
        let directory = self.directory(Controller::Pids)?;
        Some(PidStatistics {
            current: read_number(&directory.join("pids.current"))?,
            limit: read_number(&directory.join("pids.max")),
        })
    }

    /// Returns the accesses to block devices; `None` if the kernel does not count them for the group.
    pub fn io_statistics(&self) -> Option<IoStatistics> {
        let directory = self.directory(Controller::Blkio)?;
        let mut found = IoStatistics::default();
        if self.is_v2() {
            let text = read(&directory.join("io.stat"))?;
            for line in text.lines() {
                let Some((device, rest)) = line.split_once(' ') else { continue };
                let Some(device) = numbers(device) else { continue };
                let one = found.device(Some(device));
                for (name, count) in rest.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
                    let Ok(count) = count.parse::<u64>() else { continue };
                    match name {
                        "rbytes" => one.bytes.push(("Read".to_owned(), count)),
                        "wbytes" => one.bytes.push(("Write".to_owned(), count)),
                        "dbytes" => one.bytes.push(("Discard".to_owned(), count)),
                        "rios" => one.requests.push(("Read".to_owned(), count)),
                        "wios" => one.requests.push(("Write".to_owned(), count)),
                        "dios" => one.requests.push(("Discard".to_owned(), count)),
                        _ => {}
                    }
                }
            }
            found.sum();
            return Some(found);
        }
        for (file, is_bytes) in [("io_service_bytes", true), ("io_serviced", false)] {
            let text = read(&directory.join(format!("blkio.throttle.{file}_recursive")));
            let text = text.or_else(|| (!is_bytes).then(String::new))?;
            for line in text.lines() {
                let mut words = line.split_ascii_whitespace().rev();
                let Some(count) = words.next().and_then(|count| count.parse::<u64>().ok()) else { continue };
                let Some(name) = words.next() else { continue };
                let one = found.device(words.next().and_then(numbers));
                let list = if is_bytes { &mut one.bytes } else { &mut one.requests };
                list.push((name.to_owned(), count));
            }
        }
        found.sum();
        Some(found)
    }

    /// Marks the packets that the group sends with a class: 16 bits for the major and 16 for the minor number.
    ///
    /// # Errors
    /// An error of the system, and that version 2 cannot mark packets.
    pub fn set_net_class(&self, class: u32) -> Result<(), CgroupError> {
        let directory = self.directory(Controller::NetClass).filter(|_| !self.is_v2());
        write(&directory.ok_or(CgroupError::Missing("net_cls"))?.join("net_cls.classid"), &class.to_string())
    }

    /// Returns the class with which the group's packets are marked, if they are.
    pub fn net_class(&self) -> Option<u32> {
        let directory = self.directory(Controller::NetClass).filter(|_| !self.is_v2())?;
        let class = read_number(&directory.join("net_cls.classid")).filter(|class| *class != 0)?;
        u32::try_from(class).ok()
    }

    /// Lets the group use the usual devices and those of `more`, and no others.
    ///
    /// # Errors
    /// An error of the system.
    pub fn allow_devices(&self, more: &[Device]) -> Result<(), CgroupError> {
        let directory = self.directory(Controller::Devices).ok_or(CgroupError::Missing("devices"))?;
        let all = USUAL.into_iter().chain([RANDOM]).chain(more.iter().map(|device| device.0.as_str()));
        if self.is_v2() {
            return super::device_filter::allow(directory, all);
        }
        write(&directory.join("devices.deny"), "a")?;
        for device in all {
            write(&directory.join("devices.allow"), device)?;
        }
        Ok(())
    }
}

/// Copies the parent's processors and memory nodes to a new group. Version 1 only: a new processor set is empty, and
/// accepts no process before.
pub(super) fn inherit_cpuset(parent: &Path, directory: &Path) -> Result<(), CgroupError> {
    let mut chain: Vec<&Path> = directory.ancestors().take_while(|path| *path != parent).collect();
    chain.reverse();
    for directory in chain {
        let Some(outer) = directory.parent() else { continue };
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let own = read(&directory.join(file)).unwrap_or_default();
            if own.trim().is_empty() {
                write(&directory.join(file), read(&outer.join(file)).unwrap_or_default().trim())?;
            }
        }
    }
    Ok(())
}
