//! The usage of executors: `/monitor/statistics`, `/containers` and GET_CONTAINERS (LEG-42, LEG-43).
//!
//! It measures nothing itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::containers::cgroups::{DeviceIo, IoStatistics, Pressures, Stalled};
use agent::{ContainerName, Executor, Snapshot};
use base::Time;
use containerizer::{ComposingContainerizer, ContainerUsage, GroupUse};
use protos::json::{Dialect, Writer};
use protos::mesos;
use protos::mesos::agent::response::get_containers::Container;
use protos::mesos::cgroup_info::blkio;

use super::state::source;

/// An agent's state, and the measured usage of its containers.
pub(in crate::agent) struct Measured {
    pub(in crate::agent) snapshot: Arc<Snapshot>,
    pub(in crate::agent) usage: BTreeMap<ContainerName, ContainerUsage>,
    pub(in crate::agent) now: Time,
}

/// Number of bytes in a megabyte of the resource `mem`.
const MEGABYTE: f64 = 1_048_576.0;

impl Measured {
    /// Returns the executors whose containers run, with their usage.
    pub(super) fn running(&self) -> impl Iterator<Item = (&Executor, mesos::ResourceStatistics, Option<Pressures>)> {
        let executors = self.snapshot.frameworks.values().flat_map(|framework| framework.executors.values());
        executors.filter_map(|executor| {
            let usage = self.usage.get(&executor.container)?;
            let statistics = statistics(executor, usage, self.now);
            Some((&**executor, statistics, usage.group.as_ref().and_then(|group| group.pressures)))
        })
    }
}

/// Returns the usage of a container, without the limits of an executor.
pub(in crate::agent) fn used(used: &ContainerUsage, now: Time) -> mesos::ResourceStatistics {
    let usage = &used.processes;
    let mut statistics = mesos::ResourceStatistics {
        timestamp: now.as_secs_f64(),
        processes: Some(usage.processes),
        threads: Some(usage.threads),
        cpus_user_time_secs: Some(usage.cpus_user_time.as_secs_f64()),
        cpus_system_time_secs: Some(usage.cpus_system_time.as_secs_f64()),
        mem_rss_bytes: Some(usage.mem_rss_bytes),
        ..Default::default()
    };
    if let Some(group) = &used.group {
        counted(group, &mut statistics);
    }
    statistics
}

/// Adds the values of a control group, which includes ended processes. Its memory statistics are delayed, and zero
/// below some dozen pages: as long as they show no memory, that of its processes is reported, which is no more than
/// what is charged to it.
fn counted(group: &GroupUse, statistics: &mut mesos::ResourceStatistics) {
    if let Some(cpu) = group.cpu {
        statistics.cpus_user_time_secs = Some(cpu.user.as_secs_f64());
        statistics.cpus_system_time_secs = Some(cpu.system.as_secs_f64());
        let count = |number: Option<u64>| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        statistics.cpus_nr_periods = count(cpu.periods);
        statistics.cpus_nr_throttled = count(cpu.throttled_periods);
        statistics.cpus_throttled_time_secs = cpu.throttled.map(|time| time.as_secs_f64());
        statistics.cpus_limit = group.cpu_limit;
    }
    statistics.perf = group.perf;
    let shortages = group.shortages.map(|counts| counts.map(Some)).unwrap_or_default();
    [
        statistics.mem_low_pressure_counter,
        statistics.mem_medium_pressure_counter,
        statistics.mem_critical_pressure_counter,
    ] = shortages;
    statistics.blkio_statistics = group.io.as_ref().map(block_devices);
    if let Some(memory) = group.memory {
        let of_processes = statistics.mem_rss_bytes.unwrap_or_default().min(memory.total);
        statistics.mem_total_bytes = Some(memory.total);
        statistics.mem_rss_bytes = Some(if memory.rss == 0 { of_processes } else { memory.rss });
        statistics.mem_anon_bytes = Some(memory.rss);
        statistics.mem_cache_bytes = memory.cache;
        statistics.mem_file_bytes = memory.cache;
        statistics.mem_mapped_file_bytes = memory.mapped;
        statistics.mem_swap_bytes = memory.swap;
        statistics.mem_unevictable_bytes = memory.unevictable;
        statistics.mem_limit_bytes = memory.limit;
        statistics.mem_soft_limit_bytes = memory.soft_limit;
    }
}

/// Converts the usage of block devices to Mesos's message. Its fields for a scheduler that the kernel no longer has
/// (CFQ) stay empty.
fn block_devices(io: &IoStatistics) -> blkio::Statistics {
    let values = |counts: &[(String, u64)]| {
        let one = |(name, count): &(String, u64)| {
            let op = blkio::Operation::from_str_name(&name.to_uppercase()).unwrap_or(blkio::Operation::Unknown);
            blkio::Value { op: Some(op as i32), value: Some(*count) }
        };
        counts.iter().map(one).collect()
    };
    let device = |device: &DeviceIo| blkio::throttling::Statistics {
        device: device.device.map(|(major_number, minor_number)| mesos::device::Number { major_number, minor_number }),
        io_serviced: values(&device.requests),
        io_service_bytes: values(&device.bytes),
    };
    blkio::Statistics { throttling: io.devices.iter().map(device).collect(), ..Default::default() }
}

fn statistics(executor: &Executor, usage: &ContainerUsage, now: Time) -> mesos::ResourceStatistics {
    let held = resources::from_proto(&executor.resources()).unwrap_or_default();
    let memory = (held.mem().to_f64() * MEGABYTE) as u64;
    let is_limited = usage.group.as_ref().is_some_and(|group| group.memory.is_some());
    let used = used(usage, now);
    mesos::ResourceStatistics {
        cpus_soft_limit: Some(held.cpus().to_f64()),
        mem_limit_bytes: if is_limited { used.mem_limit_bytes } else { Some(memory) },
        mem_soft_limit_bytes: used.mem_soft_limit_bytes.or(Some(memory)),
        disk_used_bytes: usage.disk.map(|disk| disk.used),
        disk_limit_bytes: usage.disk.and_then(|disk| disk.limit),
        ..used
    }
}

/// Writes the kernel's pressure stall information. It is beside the statistics, whose message has no field for it.
fn pressures(w: &mut Writer<'_>, pressures: &Pressures) {
    let stalled = |w: &mut Writer<'_>, name: &str, stalled: &Stalled| {
        w.key(name).object(|w| {
            for (name, average) in ["avg10", "avg60", "avg300"].into_iter().zip(stalled.averages) {
                w.key(name).double(average);
            }
            w.key("total_secs").double(stalled.total as f64 / 1e6);
        });
    };
    for (kind, pressure) in [("cpu", pressures.cpu), ("memory", pressures.memory), ("io", pressures.io)] {
        let Some(pressure) = pressure else { continue };
        w.key(kind).object(|w| {
            stalled(w, "some", &pressure.some);
            if let Some(full) = &pressure.full {
                stalled(w, "full", full);
            }
        });
    }
}

fn fields(
    w: &mut Writer<'_>,
    executor: &Executor,
    statistics: &mesos::ResourceStatistics,
    pressure: Option<&Pressures>,
) {
    w.key("executor_id").string(executor.id.as_str());
    w.key("executor_name").string(executor.info.name.as_deref().unwrap_or_default());
    w.key("framework_id").string(executor.framework_id.as_str());
    w.key("source").string(source(&executor.info));
    w.key("statistics").message(statistics, Dialect::V0);
    if let Some(pressure) = pressure {
        w.key("pressure").object(|w| pressures(w, pressure));
    }
}

fn status(executor: &Executor) -> mesos::ContainerStatus {
    mesos::ContainerStatus {
        container_id: Some(executor.container.to_proto()),
        executor_pid: executor.pid,
        cgroup_info: executor.cgroup_info(),
        ..Default::default()
    }
}

/// Writes the document `/monitor/statistics`.
pub(in crate::agent) fn write(measured: &Measured) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).array(|w| {
        for (executor, statistics, pressure) in measured.running() {
            w.object(|w| fields(w, executor, &statistics, pressure.as_ref()));
        }
    });
    out
}

/// Writes the document `/containers?container_id=`.
pub(in crate::agent) fn containers(measured: &Measured, wanted: Option<&str>, hidden: &[ContainerName]) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out).array(|w| {
        for (executor, statistics, pressure) in measured.running() {
            let other = wanted.is_some_and(|wanted| wanted != executor.container.as_str());
            if other || hidden.contains(&executor.container) {
                continue;
            }
            w.object(|w| {
                w.key("container_id").string(executor.container.as_str());
                fields(w, executor, &statistics, pressure.as_ref());
                w.key("status").message(&status(executor), Dialect::V0);
            });
        }
    });
    out
}

/// Returns the containers of GET_CONTAINERS.
pub(in crate::agent) fn messages(
    measured: &Measured,
    live: &ComposingContainerizer,
    show_nested: bool,
    show_standalone: bool,
    hidden: &[ContainerName],
) -> Vec<Container> {
    let pids: BTreeMap<ContainerName, i32> = live.pids().into_iter().collect();
    let status_of = |name: &ContainerName| mesos::ContainerStatus {
        container_id: Some(name.to_proto()),
        executor_pid: pids.get(name).and_then(|pid| u32::try_from(*pid).ok()),
        ..Default::default()
    };
    let mut list = Vec::new();
    for (executor, statistics, _) in measured.running().filter(|(one, ..)| !hidden.contains(&one.container)) {
        let own = |container_id, container_status, resource_statistics| Container {
            framework_id: Some(mesos::FrameworkId { value: (&executor.framework_id).into() }),
            executor_id: Some(mesos::ExecutorId { value: (&executor.id).into() }),
            executor_name: Some(executor.info.name.clone().unwrap_or_default()),
            container_id,
            container_status,
            resource_statistics,
        };
        list.push(own(executor.container.to_proto(), Some(status(executor)), Some(statistics)));
        if show_nested {
            let nested = measured.usage.iter().filter(|(name, _)| name.is_inside(&executor.container));
            list.extend(
                nested
                    .map(|(name, usage)| own(name.to_proto(), Some(status_of(name)), Some(used(usage, measured.now)))),
            );
        }
    }
    let executors = |name: &ContainerName| measured.running().any(|(executor, _, _)| executor.container == *name);
    // An executor whose usage cannot be measured at the moment is still hidden.
    let alone = |name: &ContainerName| show_standalone && !executors(&name.root()) && !hidden.contains(&name.root());
    let standalone = measured.usage.iter().filter(|(name, _)| (name.parent().is_none() || show_nested) && alone(name));
    list.extend(standalone.map(|(name, usage)| Container {
        container_id: name.to_proto(),
        container_status: Some(status_of(name)),
        resource_statistics: Some(used(usage, measured.now)),
        ..Container::default()
    }));
    list
}

#[cfg(test)]
mod tests {
    use ::containers::cgroups::MemoryStatistics;

    use super::*;

    #[test]
    fn what_was_done_with_block_devices() {
        let count = |name: &str, count| vec![(name.to_owned(), count)];
        let disk = DeviceIo { device: Some((8, 0)), requests: count("Read", 1), bytes: count("Write", 2) };
        let all = DeviceIo { device: None, requests: count("Total", 3), bytes: count("Nonsense", 4) };
        let written = block_devices(&IoStatistics { devices: vec![disk, all], ..IoStatistics::default() });
        let [disk, all] = &written.throttling[..] else { panic!("{written:?}") };
        assert_eq!(disk.device.as_ref().map(|device| (device.major_number, device.minor_number)), Some((8, 0)));
        assert_eq!((disk.io_serviced[0].op(), disk.io_service_bytes[0].value), (blkio::Operation::Read, Some(2)));
        assert_eq!((all.device, all.io_serviced[0].op()), (None, blkio::Operation::Total));
        assert_eq!(all.io_service_bytes[0].op(), blkio::Operation::Unknown);
    }

    #[test]
    fn memory_that_a_group_has_not_counted_yet() {
        let rss = |counted: u64, total: u64| {
            let mut usage = ContainerUsage { processes: ::containers::Usage::default(), group: None, disk: None };
            usage.processes.mem_rss_bytes = 300;
            let memory = MemoryStatistics { total, rss: counted, ..MemoryStatistics::default() };
            usage.group = Some(GroupUse { memory: Some(memory), ..GroupUse::default() });
            used(&usage, Time::from_secs(1)).mem_rss_bytes
        };
        assert_eq!(rss(400, 500), Some(400), "the group knows");
        assert_eq!(rss(0, 500), Some(300), "its processes have it");
        assert_eq!(rss(0, 200), Some(200), "pages that several processes share are charged once");
    }
}
