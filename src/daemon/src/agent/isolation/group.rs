//! A container's control group: the limits that its resources make, and what it has used (mesos-features.md AGT-91 to
//! AGT-93).

use agent::Limits;
use containers::cgroups::{
    CgroupError, Controller, CpuStatistics, Device, Group, IoStatistics, MemoryStatistics, OomWatch, PidStatistics,
    Pressures,
};
use containers::isolation::Isolation;
use protos::mesos;
use resources::Resources;

use super::Isolators;

const MEGABYTE: u64 = 1 << 20;
/// The least memory that a container gets.
const LEAST_MEMORY: u64 = 32 * MEGABYTE;
/// What the kernel is told of a container that holds nothing: end it first.
const OOM_SCORE_MAX: f64 = 1000.0;

/// What a container's group has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::agent) struct GroupUse {
    pub(in crate::agent) cpu: Option<CpuStatistics>,
    /// In processors.
    pub(in crate::agent) cpu_limit: Option<f64>,
    pub(in crate::agent) memory: Option<MemoryStatistics>,
    pub(in crate::agent) pids: Option<PidStatistics>,
    pub(in crate::agent) io: Option<IoStatistics>,
    pub(in crate::agent) pressures: Option<Pressures>,
    /// How often it was short of memory: little, more, very.
    pub(in crate::agent) shortages: Option<[u64; 3]>,
    /// Events that were counted for a while.
    pub(in crate::agent) perf: Option<mesos::PerfStatistics>,
}

fn held(list: &[mesos::Resource]) -> Resources {
    resources::from_proto(list).unwrap_or_default()
}

/// Thousandths of processors.
fn thousandths(cpus: f64) -> u64 {
    (cpus * 1000.0).round() as u64
}

fn bytes(megabytes: f64) -> u64 {
    ((megabytes * MEGABYTE as f64) as u64).max(LEAST_MEMORY)
}

/// Sets the limits of a new group.
pub(super) fn set_first(
    isolators: &Isolators,
    group: &Group,
    list: &[mesos::Resource],
    limits: Limits,
    isolation: &mut Isolation,
) -> anyhow::Result<Option<OomWatch>> {
    set_cpu(isolators, group, list, limits)?;
    if isolators.has(Controller::Devices) {
        group.allow_devices(&isolators.devices)?;
    }
    if !isolators.has(Controller::Memory) {
        return Ok(None);
    }
    let (soft, hard) = memory(list, limits);
    group.set_memory_soft(soft)?;
    group.set_memory_hard(hard, isolators.swap)?;
    if hard.is_none_or(|hard| soft < hard) {
        isolation.oom_score = Some(oom_score(soft, crate::host::memory().total));
    }
    Ok(group.watch_memory()?)
}

/// Sets the limits of a group in use. The hard limit of memory only ever grows: less than is in use cannot be taken away.
pub(super) fn set_again(
    isolators: &Isolators,
    group: &Group,
    list: &[mesos::Resource],
    limits: Limits,
) -> Result<(), CgroupError> {
    set_cpu(isolators, group, list, limits)?;
    if !isolators.has(Controller::Memory) {
        return Ok(());
    }
    let (soft, hard) = memory(list, limits);
    group.set_memory_soft(soft)?;
    let now = group.memory_limit();
    let grows = now.is_some_and(|now| hard.is_none_or(|hard| hard > now));
    if grows { group.set_memory_hard(hard, isolators.swap) } else { Ok(()) }
}

fn set_cpu(isolators: &Isolators, group: &Group, list: &[mesos::Resource], limits: Limits) -> Result<(), CgroupError> {
    if !isolators.has(Controller::Cpu) {
        return Ok(());
    }
    let held = held(list);
    let cpus = held.cpus().to_f64();
    let revocable = held.iter().any(resources::Resource::is_revocable);
    group.set_cpu_shares(thousandths(cpus), revocable && isolators.revocable_low)?;
    let limit = match limits.cpus {
        Some(limit) => Some(limit).filter(|limit| limit.is_finite()),
        None => Some(cpus).filter(|_| isolators.quotas),
    };
    match (limit, limits.cpus.is_some() || isolators.quotas) {
        // The default is no quota; it is only taken away where one may have been set.
        (None, false) => Ok(()),
        (limit, _) => group.set_cpu_limit(limit.map(thousandths)),
    }
}

/// The soft and the hard limit in bytes; no hard one if the container may use all there is.
fn memory(list: &[mesos::Resource], limits: Limits) -> (u64, Option<u64>) {
    let soft = bytes(held(list).mem().to_f64());
    match limits.mem {
        None => (soft, Some(soft)),
        Some(limit) if limit.is_finite() => (soft, Some(bytes(limit).max(soft))),
        Some(_) => (soft, None),
    }
}

/// A container that may use more than it holds is ended the sooner by the kernel, the less it holds.
fn oom_score(soft: u64, total: u64) -> i32 {
    let score = OOM_SCORE_MAX - OOM_SCORE_MAX * soft as f64 / total.max(1) as f64;
    (score as i32).clamp(2, 999)
}

pub(super) fn used(isolators: &Isolators, group: &Group) -> GroupUse {
    let cpu = isolators.has(Controller::Cpu);
    GroupUse {
        cpu: group.cpu_statistics().filter(|_| cpu),
        cpu_limit: group.cpu_limit().filter(|_| cpu).map(|limit| limit as f64 / 1000.0),
        memory: group.memory_statistics().filter(|_| isolators.has(Controller::Memory)),
        pids: group.pid_statistics().filter(|_| isolators.has(Controller::Pids)),
        io: isolators.has(Controller::Blkio).then(|| group.io_statistics()).flatten(),
        pressures: group.pressures(),
        perf: None,
        shortages: None,
    }
}

/// What a container that ran out of memory is told, and what it exceeded (in megabytes).
pub(in crate::agent) fn out_of_memory(group: &Group) -> (String, u64) {
    let (most, account) = group.memory_account();
    let limit = group.memory_limit().unwrap_or(0) / MEGABYTE;
    let most = most.map_or_else(|| "unknown".to_owned(), |bytes| format!("{}MB", bytes / MEGABYTE));
    (
        format!("Memory limit exceeded: Requested: {limit}MB Maximum Used: {most}\n\nMEMORY STATISTICS: \n{account}\n"),
        limit,
    )
}

/// `--allowed_devices`: JSON of the message `DeviceWhitelist`.
pub(super) fn devices(text: &str) -> Result<Vec<Device>, String> {
    use protos::json::Value;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let value = Value::parse(text.as_bytes()).map_err(|error| format!("is no JSON: {error}"))?;
    let list = value.get("allowed_devices").and_then(Value::as_array).ok_or("has no list 'allowed_devices'")?;
    let one = |item: &Value| {
        let path = item.get("device").and_then(|device| device.get("path")).and_then(Value::as_str);
        let path = path.ok_or("has an entry without 'device.path'")?;
        let found =
            std::fs::metadata(path).map_err(|error| format!("names '{path}', which cannot be used: {error}"))?;
        let kind = match (found.file_type().is_char_device(), found.file_type().is_block_device()) {
            (true, _) => 'c',
            (_, true) => 'b',
            _ => return Err(format!("names '{path}', which is no device")),
        };
        let access = item.get("access");
        let may = |name: &str, letter: &'static str| {
            let set = access.and_then(|access| access.get(name)).and_then(Value::as_bool).unwrap_or(false);
            if set { letter } else { "" }
        };
        let (major, minor) = (nix::sys::stat::major(found.rdev()), nix::sys::stat::minor(found.rdev()));
        let rights = [may("read", "r"), may("write", "w"), may("mknod", "m")].concat();
        Ok(Device(format!("{kind} {major}:{minor} {rights}")))
    };
    list.iter().map(one).collect()
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

    #[test]
    fn devices_by_path() {
        let text = r#"{"allowed_devices":[{"device":{"path":"/dev/null"},"access":{"read":true,"mknod":true}}]}"#;
        assert_eq!(devices(text), Ok(vec![Device("c 1:3 rm".into())]));
        for (text, said) in [
            ("{}", "no list"),
            (r#"{"allowed_devices":[{}]}"#, "without"),
            (r#"{"allowed_devices":[{"device":{"path":"/"}}]}"#, "no device"),
        ] {
            assert!(devices(text).unwrap_err().contains(said), "{text}");
        }
    }
}
