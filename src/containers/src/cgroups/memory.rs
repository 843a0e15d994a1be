//! Memory limits of a control group: the soft and the hard limit, the usage, and the detection of exhaustion.
//!
//! Units: bytes. In version 1 the kernel's OOM killer is disabled for a container: its processes wait, and the agent is
//! notified and kills the whole container. In version 2 the kernel kills the whole container itself. Either way, no
//! single process of a container is killed while the others go on.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::EventfdFlags;

use super::{CgroupError, Controller, Group, failed, field, read, read_number, write};

/// Memory that a control group uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// All memory that is charged to the group.
    pub total: u64,
    /// Memory of programs: anonymous pages.
    pub rss: u64,
    /// Cached contents of files.
    pub cache: Option<u64>,
    /// Memory of mapped files.
    pub mapped: Option<u64>,
    /// Memory that was swapped out.
    pub swap: Option<u64>,
    /// Memory that the kernel cannot reclaim.
    pub unevictable: Option<u64>,
    /// The hard limit; `None` if there is none.
    pub limit: Option<u64>,
    /// The soft limit; `None` if there is none.
    pub soft_limit: Option<u64>,
}

/// Limits from here on mean "no limit": the number that version 1 shows for it is larger.
const NO_LIMIT: u64 = 1 << 62;

impl Group {
    /// Sets the soft limit: the memory that the group keeps when memory is short.
    ///
    /// # Errors
    /// The `memory` controller is not mounted, or an error of the system.
    pub fn set_memory_soft(&self, bytes: u64) -> Result<(), CgroupError> {
        let directory = self.memory_directory()?;
        let file = if self.is_v2() { "memory.low" } else { "memory.soft_limit_in_bytes" };
        write(&directory.join(file), &bytes.to_string())
    }

    /// Sets the hard limit; `None` for no limit. With `swap` the limit counts memory and swap together.
    ///
    /// # Errors
    /// An error of the system, above all for a limit below the current usage.
    pub fn set_memory_hard(&self, bytes: Option<u64>, swap: bool) -> Result<(), CgroupError> {
        let directory = self.memory_directory()?;
        if self.is_v2() {
            let text = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
            write(&directory.join("memory.max"), &text)?;
            return if swap { write(&directory.join("memory.swap.max"), "0") } else { Ok(()) };
        }
        let text = bytes.map_or_else(|| "-1".to_owned(), |bytes| bytes.to_string());
        let (plain, both) = (directory.join("memory.limit_in_bytes"), directory.join("memory.memsw.limit_in_bytes"));
        if !swap {
            return write(&plain, &text);
        }
        // The limit on memory and swap must never be below that on memory, so the order depends on the direction.
        let grows = read_number(&both).is_some_and(|now| bytes.is_none_or(|bytes| bytes >= now));
        let order = if grows { [&both, &plain] } else { [&plain, &both] };
        order.into_iter().try_for_each(|path| write(path, &text))
    }

    /// Returns the hard limit in force; `None` if there is none.
    pub fn memory_limit(&self) -> Option<u64> {
        let file = if self.is_v2() { "memory.max" } else { "memory.limit_in_bytes" };
        read_number(&self.directory(Controller::Memory)?.join(file)).filter(|limit| *limit < NO_LIMIT)
    }

    /// Returns the memory usage; `None` if the kernel does not count it for the group.
    pub fn memory_statistics(&self) -> Option<MemoryStatistics> {
        let directory = self.directory(Controller::Memory)?;
        let text = read(&directory.join("memory.stat"))?;
        let limit = |file: &str| read_number(&directory.join(file)).filter(|limit| *limit < NO_LIMIT);
        if self.is_v2() {
            return Some(MemoryStatistics {
                total: read_number(&directory.join("memory.current"))?,
                rss: field(&text, "anon")?,
                cache: field(&text, "file"),
                mapped: field(&text, "file_mapped"),
                swap: read_number(&directory.join("memory.swap.current")),
                unevictable: field(&text, "unevictable"),
                limit: limit("memory.max"),
                soft_limit: limit("memory.low"),
            });
        }
        Some(MemoryStatistics {
            total: read_number(&directory.join("memory.usage_in_bytes"))?,
            rss: field(&text, "total_rss")?,
            cache: field(&text, "total_cache"),
            mapped: field(&text, "total_mapped_file"),
            swap: field(&text, "total_swap"),
            unevictable: field(&text, "total_unevictable"),
            limit: limit("memory.limit_in_bytes"),
            soft_limit: limit("memory.soft_limit_in_bytes"),
        })
    }

    /// Returns the peak usage and the kernel's statistics, for the message of a container that ran out of memory.
    pub fn memory_account(&self) -> (Option<u64>, String) {
        let Ok(directory) = self.memory_directory() else { return (None, String::new()) };
        let most = if self.is_v2() { "memory.peak" } else { "memory.max_usage_in_bytes" };
        (read_number(&directory.join(most)), read(&directory.join("memory.stat")).unwrap_or_default())
    }

    /// Returns whether the group has run out of memory: its processes wait for memory, or the OOM killer has killed
    /// one.
    pub fn is_out_of_memory(&self) -> bool {
        let Ok(directory) = self.memory_directory() else { return false };
        if self.is_v2() {
            return read(&directory.join("memory.events"))
                .and_then(|text| field(&text, "oom_kill"))
                .is_some_and(|n| n > 0);
        }
        let text = read(&directory.join("memory.oom_control")).unwrap_or_default();
        field(&text, "under_oom") == Some(1) || field(&text, "oom_kill").is_some_and(|count| count > 0)
    }

    /// Creates a notification of the group's out-of-memory condition. Returns `None` in version 2: there the kernel
    /// kills the group, and [`Group::is_out_of_memory`] tells afterwards why it ended.
    ///
    /// # Errors
    /// An error of the system.
    pub fn watch_memory(&self) -> Result<Option<OomWatch>, CgroupError> {
        let directory = self.memory_directory()?;
        if self.is_v2() {
            write(&directory.join("memory.oom.group"), "1")?;
            return Ok(None);
        }
        write(&directory.join("memory.oom_control"), "1")?;
        Ok(Some(OomWatch { event: notifier(directory, "memory.oom_control", "")? }))
    }

    /// Starts counting how often the kernel finds the group short of memory, for each of [`SHORTAGES`]. Returns `None`
    /// in version 2, which has [`Group::pressures`].
    ///
    /// # Errors
    /// An error of the system.
    pub fn watch_shortages(&self) -> Result<Option<ShortageWatch>, CgroupError> {
        let directory = self.memory_directory()?;
        if self.is_v2() {
            return Ok(None);
        }
        let [low, medium, critical] = SHORTAGES;
        let level = |level: &str| notifier(directory, "memory.pressure_level", level);
        Ok(Some(ShortageWatch { events: [level(low)?, level(medium)?, level(critical)?], counts: [0; 3] }))
    }

    fn memory_directory(&self) -> Result<&Path, CgroupError> {
        self.directory(Controller::Memory).ok_or(CgroupError::Missing("memory"))
    }
}

/// The kernel's levels of memory pressure. An event of a level counts for the lower ones too.
pub const SHORTAGES: [&str; 3] = ["low", "medium", "critical"];

/// A counter of the shortages of memory in a group.
#[derive(Debug)]
pub struct ShortageWatch {
    events: [OwnedFd; 3],
    counts: [u64; 3],
}

impl ShortageWatch {
    /// Returns the number of shortages so far, for each of [`SHORTAGES`].
    pub fn counts(&mut self) -> [u64; 3] {
        for (event, count) in self.events.iter().zip(&mut self.counts) {
            let mut bytes = [0; 8];
            // An error means that there has been no shortage since the last read.
            if rustix::io::read(event, &mut bytes) == Ok(bytes.len()) {
                *count = count.saturating_add(u64::from_ne_bytes(bytes));
            }
        }
        self.counts
    }
}

/// Creates a descriptor that becomes readable at the event of a file of the group. Version 1 only.
fn notifier(directory: &Path, file: &str, argument: &str) -> Result<OwnedFd, CgroupError> {
    let path = directory.join(file);
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let event = rustix::event::eventfd(0, flags).map_err(|e| failed("watch", &path)(e.into()))?;
    let opened = File::open(&path).map_err(failed("open", &path))?;
    let line = format!("{} {} {argument}", event.as_raw_fd(), opened.as_raw_fd());
    write(&directory.join("cgroup.event_control"), line.trim_end())?;
    Ok(event)
}

/// A descriptor that becomes readable when a group has run out of memory, and when the group is removed.
#[derive(Debug)]
pub struct OomWatch {
    event: OwnedFd,
}

impl AsFd for OomWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl From<OomWatch> for OwnedFd {
    fn from(watch: OomWatch) -> OwnedFd {
        watch.event
    }
}
