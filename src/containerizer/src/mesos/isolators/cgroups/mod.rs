//! `cgroups/...`: a container's control group, its limits and what it counts (AGT-91 to AGT-93).
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

/// What a container's group has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupUse {
    /// Processor time.
    pub cpu: Option<CpuStatistics>,
    /// In processors.
    pub cpu_limit: Option<f64>,
    /// Memory.
    pub memory: Option<MemoryStatistics>,
    /// Processes and threads.
    pub pids: Option<PidStatistics>,
    /// Block devices.
    pub io: Option<IoStatistics>,
    /// Pressure stall information.
    pub pressures: Option<Pressures>,
    /// How often it was short of memory: little, more, very.
    pub shortages: Option<[u64; 3]>,
    /// Events that were counted for a while.
    pub perf: Option<mesos::PerfStatistics>,
}

fn held(list: &[mesos::Resource]) -> Resources {
    resources::from_proto(list).unwrap_or_default()
}
