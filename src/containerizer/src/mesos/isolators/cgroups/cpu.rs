//! Isolator `cgroups/cpu`, which sets CPU shares, and quotas with `--cgroups_enable_cfs`.

use agent::{ContainerName, Limits};
use containers::cgroups::{CgroupError, Group};
use protos::mesos;

use super::{GroupUse, held};
use crate::config::Cgroups;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `cgroups/cpu`.
pub(crate) struct Cpu {
    enable_cfs: bool,
    /// Whether containers with revocable CPUs have a low priority (`--revocable_cpu_low_priority`).
    revocable_low: bool,
}

impl Isolator for Cpu {
    fn isolate(&self, container: Container<'_>, group: &Group, _: &mut Launch) -> anyhow::Result<()> {
        Ok(self.set(group, &container.spec.resources, container.spec.limits)?)
    }

    fn update(&self, _: &ContainerName, group: &Group, held: &[mesos::Resource], limits: Limits) -> anyhow::Result<()> {
        Ok(self.set(group, held, limits)?)
    }

    fn usage(&self, _: &ContainerName, group: &Group, usage: &mut GroupUse) {
        usage.cpu = group.cpu_statistics();
        usage.cpu_limit = group.cpu_limit().map(|limit| limit as f64 / 1000.0);
    }
}

impl Cpu {
    pub(crate) fn new(config: &Cgroups) -> Cpu {
        Cpu { enable_cfs: config.enable_cfs, revocable_low: config.revocable_low }
    }

    fn set(&self, group: &Group, list: &[mesos::Resource], limits: Limits) -> Result<(), CgroupError> {
        let held = held(list);
        let cpus = held.cpus().to_f64();
        let revocable = held.iter().any(resources::Resource::is_revocable);
        group.set_cpu_shares(thousandths(cpus), revocable && self.revocable_low)?;
        let limit = match limits.cpus {
            Some(limit) => Some(limit).filter(|limit| limit.is_finite()),
            None => Some(cpus).filter(|_| self.enable_cfs),
        };
        match (limit, limits.cpus.is_some() || self.enable_cfs) {
            // By default there is no quota, so it is only removed where one may have been set.
            (None, false) => Ok(()),
            (limit, _) => group.set_cpu_limit(limit.map(thousandths)),
        }
    }
}

/// Returns an amount of CPUs in thousandths.
fn thousandths(cpus: f64) -> u64 {
    (cpus * 1000.0).round() as u64
}
