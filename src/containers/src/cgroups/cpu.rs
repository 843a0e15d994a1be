//! CPU limits of a control group: shares and quota, and the CPU time that was used.
//!
//! Units: thousandths of a processor.

use std::time::Duration;

use super::{CgroupError, Controller, Group, field, read, read_number, write};

/// The period of a CPU quota.
pub const CPU_PERIOD: Duration = Duration::from_millis(100);
/// The smallest CPU quota that the kernel accepts.
const LEAST_QUOTA: Duration = Duration::from_millis(1);
const SHARES_PER_CPU: u64 = 1024;
const LEAST_SHARES: u64 = 2;
const MOST_SHARES: u64 = 262_144;

/// CPU time that a control group has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStatistics {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Number of periods in which a process ran under a quota.
    pub periods: Option<u64>,
    /// Number of periods in which the quota was used up.
    pub throttled_periods: Option<u64>,
    /// Time for which the quota kept processes from running.
    pub throttled: Option<Duration>,
}

impl Group {
    /// Sets the CPU shares, which count when processors are short: `cpus` in thousandths, times 1024, or times 10 for
    /// revocable processors of low priority (AGT-91).
    ///
    /// # Errors
    /// The `cpu` controller is not mounted, or an error of the system.
    pub fn set_cpu_shares(&self, cpus: u64, low_priority: bool) -> Result<(), CgroupError> {
        let Some(directory) = self.directory(Controller::Cpu) else { return Err(CgroupError::Missing("cpu")) };
        let per_cpu = if low_priority { 10 } else { SHARES_PER_CPU };
        let shares = (cpus.saturating_mul(per_cpu) / 1000).clamp(LEAST_SHARES, MOST_SHARES);
        if self.is_v2() {
            // The kernel's own conversion of the range 2 to 262144 to the range 1 to 10000.
            let weight = 1 + (shares - LEAST_SHARES) * 9999 / (MOST_SHARES - LEAST_SHARES);
            return write(&directory.join("cpu.weight"), &weight.to_string());
        }
        write(&directory.join("cpu.shares"), &shares.to_string())
    }

    /// Sets the CPU quota, which holds even if processors are idle: `cpus` in thousandths; `None` for no limit.
    ///
    /// # Errors
    /// The `cpu` controller is not mounted, or an error of the system.
    pub fn set_cpu_limit(&self, cpus: Option<u64>) -> Result<(), CgroupError> {
        let Some(directory) = self.directory(Controller::Cpu) else { return Err(CgroupError::Missing("cpu")) };
        let period = CPU_PERIOD.as_micros() as u64;
        let quota = cpus.map(|cpus| (cpus.saturating_mul(period) / 1000).max(LEAST_QUOTA.as_micros() as u64));
        if self.is_v2() {
            let text = quota.map_or_else(|| format!("max {period}"), |quota| format!("{quota} {period}"));
            return write(&directory.join("cpu.max"), &text);
        }
        write(&directory.join("cpu.cfs_period_us"), &period.to_string())?;
        let text = quota.map_or_else(|| "-1".to_owned(), |quota| quota.to_string());
        write(&directory.join("cpu.cfs_quota_us"), &text)
    }

    /// Returns the CPU quota in force, in thousandths of a processor; `None` without one.
    pub fn cpu_limit(&self) -> Option<u64> {
        let directory = self.directory(Controller::Cpu)?;
        let (quota, period) = if self.is_v2() {
            let text = read(&directory.join("cpu.max"))?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        } else {
            (read_number(&directory.join("cpu.cfs_quota_us"))?, read_number(&directory.join("cpu.cfs_period_us"))?)
        };
        (quota > 0 && period > 0).then(|| quota.saturating_mul(1000) / period)
    }

    /// Returns the CPU time that was used; `None` if the kernel does not count it for the group.
    pub fn cpu_statistics(&self) -> Option<CpuStatistics> {
        let micros = |text: &str, key| field(text, key).map(Duration::from_micros);
        if self.is_v2() {
            let text = read(&self.directory(Controller::Cpu)?.join("cpu.stat"))?;
            return Some(CpuStatistics {
                user: micros(&text, "user_usec")?,
                system: micros(&text, "system_usec")?,
                periods: field(&text, "nr_periods"),
                throttled_periods: field(&text, "nr_throttled"),
                throttled: micros(&text, "throttled_usec"),
            });
        }
        let text = read(&self.directory(Controller::Cpuacct)?.join("cpuacct.stat"))?;
        let hertz = rustix::param::clock_ticks_per_second().max(1);
        let ticks = |key| field(&text, key).map(|count| Duration::from_millis(count.saturating_mul(1000) / hertz));
        let quota = self.directory(Controller::Cpu).and_then(|directory| read(&directory.join("cpu.stat")));
        let of_quota = |key| quota.as_deref().and_then(|text| field(text, key));
        Some(CpuStatistics {
            user: ticks("user")?,
            system: ticks("system")?,
            periods: of_quota("nr_periods"),
            throttled_periods: of_quota("nr_throttled"),
            throttled: of_quota("throttled_time").map(Duration::from_nanos),
        })
    }
}
