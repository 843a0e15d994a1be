//! Resources of the host: its memory, and the size of a file system.

use std::path::Path;

/// Memory of the host, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// The whole memory.
    pub total: u64,
    /// Memory that is not in use.
    pub free: u64,
}

/// Reads `/proc/meminfo`. Returns zeroes if it cannot be read.
pub fn host_memory() -> HostMemory {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kilobytes * 1024)
    };
    HostMemory { total: field("MemTotal").unwrap_or(0), free: field("MemFree").unwrap_or(0) }
}

/// Returns the size in bytes of the file system that has `path`, and the share of it in use, between 0 and 1.
///
/// # Errors
/// An error of the system, if the path does not exist.
pub fn file_system_use(path: &Path) -> std::io::Result<(u64, f64)> {
    let stat = rustix::fs::statvfs(path)?;
    let (total, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
    let used = if total == 0 { 0.0 } else { 1.0 - free as f64 / total as f64 };
    Ok((total, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        assert!(host_memory().total > host_memory().free);
        assert!(file_system_use(Path::new("/")).unwrap().0 > 0);
    }
}
