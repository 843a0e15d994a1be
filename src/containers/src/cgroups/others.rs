//! The smaller controllers: numbers of processes, block devices, processor sets, device nodes, marks of packets.
//!
//! Version 2 has no file for device nodes: there they are not restricted.

use std::path::Path;

use super::{CgroupError, Controller, Group, read, read_number, write};

/// Processes and threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidStatistics {
    /// How many there are.
    pub current: u64,
    /// How many there may be.
    pub limit: Option<u64>,
}

/// Block devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStatistics {
    /// Bytes read, of all devices.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A device that a container may use, in the words of `devices.allow`: type, numbers, and what may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(pub String);

/// What every container may use (mesos-features.md AGT-93).
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
    /// How many processes and threads there may be.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set_pids_limit(&self, limit: u64) -> Result<(), CgroupError> {
        let folder = self.folder(Controller::Pids).ok_or(CgroupError::Missing("pids"))?;
        write(&folder.join("pids.max"), &limit.to_string())
    }

    /// How many there are.
    pub fn pid_statistics(&self) -> Option<PidStatistics> {
        let folder = self.folder(Controller::Pids)?;
        Some(PidStatistics {
            current: read_number(&folder.join("pids.current"))?,
            limit: read_number(&folder.join("pids.max")),
        })
    }

    /// What was read and written.
    pub fn io_statistics(&self) -> Option<IoStatistics> {
        let folder = self.folder(Controller::Blkio)?;
        let mut sum = IoStatistics::default();
        if self.is_v2() {
            let text = read(&folder.join("io.stat"))?;
            for word in text.split_ascii_whitespace() {
                match word.split_once('=') {
                    Some(("rbytes", count)) => sum.read_bytes += count.parse::<u64>().unwrap_or(0),
                    Some(("wbytes", count)) => sum.written_bytes += count.parse::<u64>().unwrap_or(0),
                    _ => {}
                }
            }
            return Some(sum);
        }
        let text = read(&folder.join("blkio.throttle.io_service_bytes_recursive"))?;
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace().skip(1);
            match (words.next(), words.next().and_then(|count| count.parse::<u64>().ok())) {
                (Some("Read"), Some(count)) => sum.read_bytes += count,
                (Some("Write"), Some(count)) => sum.written_bytes += count,
                _ => {}
            }
        }
        Some(sum)
    }

    /// Marks what the group sends: 16 bits name a class, and 16 more one within it.
    ///
    /// # Errors
    /// What the system refuses, and that version 2 cannot do it.
    pub fn set_net_class(&self, class: u32) -> Result<(), CgroupError> {
        let folder = self.folder(Controller::NetClass).filter(|_| !self.is_v2());
        write(&folder.ok_or(CgroupError::Missing("net_cls"))?.join("net_cls.classid"), &class.to_string())
    }

    /// What the group's packets are marked with, if they are.
    pub fn net_class(&self) -> Option<u32> {
        let folder = self.folder(Controller::NetClass).filter(|_| !self.is_v2())?;
        let class = read_number(&folder.join("net_cls.classid")).filter(|class| *class != 0)?;
        u32::try_from(class).ok()
    }

    /// Lets the group use the usual devices and these, and no others.
    ///
    /// # Errors
    /// What the system refuses, and that version 2 cannot do it.
    pub fn allow_devices(&self, more: &[Device]) -> Result<(), CgroupError> {
        let folder = self.folder(Controller::Devices).filter(|_| !self.is_v2());
        let folder = folder.ok_or(CgroupError::Missing("devices"))?;
        write(&folder.join("devices.deny"), "a")?;
        let all = USUAL.into_iter().chain([RANDOM]).chain(more.iter().map(|device| device.0.as_str()));
        for device in all {
            write(&folder.join("devices.allow"), device)?;
        }
        Ok(())
    }
}

/// Version 1: a new processor set is empty, and takes no process before it has what its parent has.
pub(super) fn inherit_cpuset(parent: &Path, folder: &Path) -> Result<(), CgroupError> {
    let mut chain: Vec<&Path> = folder.ancestors().take_while(|path| *path != parent).collect();
    chain.reverse();
    for folder in chain {
        let Some(outer) = folder.parent() else { continue };
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let own = read(&folder.join(file)).unwrap_or_default();
            if own.trim().is_empty() {
                write(&folder.join(file), read(&outer.join(file)).unwrap_or_default().trim())?;
            }
        }
    }
    Ok(())
}
