//! Isolator `cgroups/mem`, which limits memory, and destroys containers that need more.

use agent::{ContainerName, Limits};
use containers::cgroups::Group;
use protos::mesos;

use super::pressure::Shortages;
use super::{GroupUse, held};
use crate::config::Cgroups;
use crate::mesos::isolators::{Container, Isolator, Launch};

const MEGABYTE: u64 = 1 << 20;
/// Minimum memory of a container in bytes.
const LEAST_MEMORY: u64 = 32 * MEGABYTE;
/// OOM score of a container without resources, which is killed first.
const OOM_SCORE_MAX: f64 = 1000.0;

/// The isolator `cgroups/mem`.
pub(crate) struct Mem {
    /// Whether swap is limited too (`--cgroups_limit_swap`).
    swap: bool,
    shortages: Shortages,
}

impl Mem {
    pub(crate) fn new(config: &Cgroups) -> Mem {
        Mem { swap: config.limit_swap, shortages: Shortages::default() }
    }
}

impl Isolator for Mem {
    fn isolate(&self, container: Container<'_>, group: &Group, launch: &mut Launch) -> anyhow::Result<()> {
        let (soft, hard) = memory(&container.spec.resources, container.spec.limits);
        group.set_memory_soft(soft)?;
        group.set_memory_hard(hard, self.swap)?;
        if hard.is_none_or(|hard| soft < hard) {
            launch.isolation.oom_score = Some(oom_score(soft, containers::host_memory().total));
        }
        launch.oom = group.watch_memory()?;
        Ok(())
    }

    /// Updates the limits of memory. The hard limit is only ever raised, because it cannot be set below what is in use.
    fn update(&self, _: &ContainerName, group: &Group, held: &[mesos::Resource], limits: Limits) -> anyhow::Result<()> {
        let (soft, hard) = memory(held, limits);
        group.set_memory_soft(soft)?;
        let now = group.memory_limit();
        if now.is_some_and(|now| hard.is_none_or(|hard| hard > now)) {
            group.set_memory_hard(hard, self.swap)?;
        }
        Ok(())
    }

    fn usage(&self, container: &ContainerName, group: &Group, usage: &mut GroupUse) {
        usage.memory = group.memory_statistics();
        // Containers that share another one's group have no pressure counters of their own.
        usage.shortages = usage.memory.and_then(|_| self.shortages.of(container.as_str(), group));
    }

    fn cleanup(&self, container: &ContainerName) {
        self.shortages.take_back(container.as_str());
    }
}

fn bytes(megabytes: f64) -> u64 {
    ((megabytes * MEGABYTE as f64) as u64).max(LEAST_MEMORY)
}

/// Returns the soft and the hard limit in bytes; no hard one if the container may use all memory.
fn memory(list: &[mesos::Resource], limits: Limits) -> (u64, Option<u64>) {
    let soft = bytes(held(list).mem().to_f64());
    match limits.mem {
        None => (soft, Some(soft)),
        Some(limit) if limit.is_finite() => (soft, Some(bytes(limit).max(soft))),
        Some(_) => (soft, None),
    }
}

/// Returns the OOM score of a container that may use more than it holds. The less it holds, the sooner the kernel kills
/// it.
fn oom_score(soft: u64, total: u64) -> i32 {
    let score = OOM_SCORE_MAX - OOM_SCORE_MAX * soft as f64 / total.max(1) as f64;
    (score as i32).clamp(2, 999)
}

/// Returns the message about a container that ran out of memory, and the limit that it exceeded, in megabytes.
pub(crate) fn out_of_memory(group: &Group) -> (String, u64) {
    let (most, account) = group.memory_account();
    let limit = group.memory_limit().unwrap_or(0) / MEGABYTE;
    let most = most.map_or_else(|| "unknown".to_owned(), |bytes| format!("{}MB", bytes / MEGABYTE));
    (
        format!("Memory limit exceeded: Requested: {limit}MB Maximum Used: {most}\n\nMEMORY STATISTICS: \n{account}\n"),
        limit,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(mem: f64) -> Vec<mesos::Resource> {
        vec![mesos::Resource {
            name: "mem".into(),
            r#type: mesos::value::Type::Scalar as i32,
            scalar: Some(mesos::value::Scalar { value: mem }),
            ..mesos::Resource::default()
        }]
    }

    #[test]
    fn memory_limits() {
        let of = |mem, limit| memory(&held(mem), Limits { cpus: None, mem: limit });
        assert_eq!(of(64.0, None), (64 * MEGABYTE, Some(64 * MEGABYTE)));
        assert_eq!(of(1.0, None), (LEAST_MEMORY, Some(LEAST_MEMORY)));
        assert_eq!(of(64.0, Some(400.0)), (64 * MEGABYTE, Some(400 * MEGABYTE)));
        assert_eq!(of(64.0, Some(f64::INFINITY)), (64 * MEGABYTE, None));
        assert_eq!((oom_score(0, 100), oom_score(50, 100), oom_score(100, 100)), (999, 500, 2));
    }
}
