//! Isolators `cgroups/...`: a container's control group, its limits and its statistics (AGT-91 to AGT-93).
//!
//! `cgroups/cpuset`, `cgroups/hugetlb` and `cgroups/net_prio` only give a container a group of its own, which the list
//! of controllers does: they have no file.

pub(crate) mod blkio;
pub(crate) mod cpu;
pub(crate) mod devices;
pub(crate) mod mem;
pub(crate) mod net_cls;
pub(crate) mod perf_event;
pub(crate) mod pids;
mod pressure;

use containers::cgroups::{CpuStatistics, IoStatistics, MemoryStatistics, PidStatistics, Pressures};
use protos::mesos;
use resources::Resources;

/// Statistics of a container's control group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupUse {
    /// CPU time.
    pub cpu: Option<CpuStatistics>,
    /// Limit of CPUs; `None` without a quota.
    pub cpu_limit: Option<f64>,
    /// Memory statistics.
    pub memory: Option<MemoryStatistics>,
    /// Number of processes and threads.
    pub pids: Option<PidStatistics>,
    /// Statistics of block devices.
    pub io: Option<IoStatistics>,
    /// Pressure stall information.
    pub pressures: Option<Pressures>,
    /// Numbers of low, medium and critical memory pressure events.
    pub shortages: Option<[u64; 3]>,
    /// Statistics of the last `perf` sample.
    pub perf: Option<mesos::PerfStatistics>,
}

fn held(list: &[mesos::Resource]) -> Resources {
    resources::from_proto(list).unwrap_or_default()
}
