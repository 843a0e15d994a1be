//! The processes of the host at one instant, and the tree of one of them.
//!
//! It only reads; `destroy.rs` ends processes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::procfs::{STAT_ROOM, StartTime, Stat, read_stat};

/// A process, identified so that it cannot be confused with a later one of the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Pid of the process.
    pub pid: i32,
    /// Time at which the process was started.
    pub started: StartTime,
}

/// Resources that a tree of processes uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of processes (`ResourceStatistics.processes`).
    pub processes: u32,
    /// Number of threads (`ResourceStatistics.threads`).
    pub threads: u32,
    /// CPU time in user mode (`ResourceStatistics.cpus_user_time_secs`). Includes children that have been waited for.
    pub cpus_user_time: Duration,
    /// CPU time in the kernel (`ResourceStatistics.cpus_system_time_secs`). Includes children that have been waited
    /// for.
    pub cpus_system_time: Duration,
    /// Resident memory in bytes (`ResourceStatistics.mem_rss_bytes`); shared pages are counted in each process.
    pub mem_rss_bytes: u64,
}

/// The processes of this host as `/proc` showed them during one scan.
///
/// A scan takes some ten microseconds for each process, so one table should serve for all containers.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    processes: BTreeMap<i32, Stat>,
}

impl ProcessTable {
    /// Reads `/proc`. Processes that end meanwhile are left out.
    pub fn scan() -> ProcessTable {
        let mut processes = BTreeMap::new();
        let mut buffer = [0; STAT_ROOM];
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(stat) = read_stat(pid, &mut buffer) {
                processes.insert(pid, stat);
            }
        }
        ProcessTable { processes }
    }

    /// Returns all processes that have not ended.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Process> {
        let living = self.processes.iter().filter(|(_, stat)| !stat.is_zombie());
        living.map(|(pid, stat)| Process { pid: *pid, started: stat.started })
    }

    /// Returns the tree of the process `root`, itself included, zombies and the caller left out: its descendants, and
    /// the members of each session that one of these leads, and their descendants.
    ///
    /// `root` may be gone: then its tree is the members of the session and the group with its number.
    pub fn tree(&self, root: i32) -> Vec<Process> {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let living = |pid: &i32| self.processes.get(pid).filter(|stat| !stat.is_zombie() && *pid != own);
        let process = |pid: &i32| living(pid).map(|stat| Process { pid: *pid, started: stat.started });
        self.members(root).iter().filter_map(process).collect()
    }

    /// Returns the usage of the tree of `root`; `None` if there is no such process.
    pub fn usage(&self, root: i32) -> Option<Usage> {
        self.processes.get(&root)?;
        let page = rustix::param::page_size() as u64;
        let ticks = |count: u64| {
            Duration::from_nanos(count.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
        };
        let mut usage = Usage::default();
        let (mut user, mut system) = (0, 0);
        for stat in self.members(root).iter().filter_map(|pid| self.processes.get(pid)) {
            usage.processes += 1;
            usage.threads += stat.threads;
            usage.mem_rss_bytes += stat.rss_pages * page;
            user += stat.user_ticks + stat.waited_user_ticks;
            system += stat.system_ticks + stat.waited_system_ticks;
        }
        usage.cpus_user_time = ticks(user);
        usage.cpus_system_time = ticks(system);
        Some(usage)
    }

    /// Returns the pids of [`ProcessTable::tree`], with zombies and the caller.
    fn members(&self, root: i32) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut sessions: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, stat) in &self.processes {
            children.entry(stat.parent).or_default().push(*pid);
            sessions.entry(stat.session).or_default().push(*pid);
            if stat.group != stat.session {
                sessions.entry(stat.group).or_default().push(*pid);
            }
        }
        let mut found = BTreeSet::new();
        let mut open = vec![root];
        while let Some(pid) = open.pop() {
            if pid > 1 && found.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
                open.extend(sessions.get(&pid).into_iter().flatten());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: i32, group: i32, session: i32) -> Stat {
        Stat {
            state: b'S',
            parent,
            group,
            session,
            user_ticks: 1,
            system_ticks: 2,
            waited_user_ticks: 0,
            waited_system_ticks: 0,
            threads: 1,
            started: StartTime(1),
            rss_pages: 1,
        }
    }

    fn table(rows: &[(i32, Stat)]) -> ProcessTable {
        ProcessTable { processes: rows.iter().copied().collect() }
    }

    fn pids(tree: &[Process]) -> Vec<i32> {
        tree.iter().map(|p| p.pid).collect()
    }

    #[test]
    fn tree_of_descendants_sessions_and_groups() {
        let table = table(&[
            (1, stat(0, 1, 1)),
            (10, stat(1, 10, 10)),
            (11, stat(10, 11, 11)),
            (12, stat(11, 11, 11)),
            // Orphans: of the session of 11, and of a group that 12 would lead.
            (13, stat(1, 13, 11)),
            (14, stat(13, 13, 11)),
            (15, stat(1, 12, 1)),
            (20, stat(1, 20, 20)),
        ]);
        assert_eq!(pids(&table.tree(10)), [10, 11, 12, 13, 14, 15]);
        assert_eq!(pids(&table.tree(20)), [20]);
        assert_eq!(table.usage(10).unwrap().processes, 6);
    }

    #[test]
    fn root_that_is_gone() {
        let table = table(&[(1, stat(0, 1, 1)), (13, stat(1, 13, 10)), (14, stat(13, 14, 14))]);
        assert_eq!(pids(&table.tree(10)), [13, 14]);
        assert_eq!(table.usage(10), None);
        assert_eq!(pids(&table.tree(99)), [] as [i32; 0]);
    }

    #[test]
    fn never_everything() {
        let table = table(&[(1, stat(0, 0, 0)), (2, stat(0, 0, 0)), (3, stat(1, 3, 3))]);
        for root in [-1, 0, 1] {
            assert_eq!(pids(&table.tree(root)), [] as [i32; 0]);
        }
    }
}
