//! The usage of containers as families of the Prometheus format: one sample for each container, nested ones included.
//!
//! It measures nothing itself.

use std::collections::BTreeMap;

use ::containers::cgroups::{Pressures, Stalled};
use protos::mesos::ResourceStatistics;

use super::statistics::{Measured, used};
use crate::prometheus::{Kind, Text};

/// Number of microseconds in a second.
const MICROSECONDS: f64 = 1e6;

/// Adds all families of containers.
pub(in crate::agent) fn add(measured: &Measured, text: &mut Text) {
    let mut owners = BTreeMap::new();
    for (executor, statistics, pressures) in measured.running() {
        owners.insert(&executor.container, executor);
        let labels = labels(executor.framework_id.as_str(), executor.id.as_str(), executor.container.as_str());
        container(text, &labels, &statistics);
        if let Some(group) = measured.usage.get(&executor.container).and_then(|usage| usage.group.as_ref()) {
            counted(text, &labels, group.io.as_ref().map(|io| (io.read_bytes, io.written_bytes)), pressures.as_ref());
        }
    }
    for (name, usage) in measured.usage.iter().filter(|(name, _)| !owners.contains_key(name)) {
        // A standalone container has no executor.
        let owner = owners.get(&name.root());
        let of = owner.map(|owner| (owner.framework_id.as_str(), owner.id.as_str())).unwrap_or_default();
        container(text, &labels(of.0, of.1, name.as_str()), &used(usage, measured.now));
    }
}

type Labels<'a> = [(&'static str, &'a str); 3];

fn labels<'a>(framework: &'a str, executor: &'a str, container: &'a str) -> Labels<'a> {
    [("framework_id", framework), ("executor_id", executor), ("container_id", container)]
}

fn container(text: &mut Text, labels: &Labels<'_>, statistics: &ResourceStatistics) {
    use Kind::{Counter, Gauge};
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    let count = |count: Option<u32>| count.map(f64::from);
    let s = statistics;
    for (name, kind, help, value) in [
        ("cpu_user_seconds_total", Counter, "CPU time in user mode.", s.cpus_user_time_secs),
        ("cpu_system_seconds_total", Counter, "CPU time in kernel mode.", s.cpus_system_time_secs),
        (
            "cpu_throttled_seconds_total",
            Counter,
            "Time for which the CPU limit throttled the container.",
            s.cpus_throttled_time_secs,
        ),
        (
            "cpu_throttled_periods_total",
            Counter,
            "Periods in which the CPU limit throttled the container.",
            count(s.cpus_nr_throttled),
        ),
        ("cpus_held", Gauge, "Allocated CPUs.", s.cpus_soft_limit),
        ("cpus_limit", Gauge, "Limit of the CPUs.", s.cpus_limit),
        ("memory_bytes", Gauge, "Memory use, with page cache.", bytes(s.mem_total_bytes)),
        ("memory_rss_bytes", Gauge, "Anonymous memory.", bytes(s.mem_rss_bytes)),
        ("memory_cache_bytes", Gauge, "Page cache.", bytes(s.mem_cache_bytes)),
        ("memory_swap_bytes", Gauge, "Swapped memory.", bytes(s.mem_swap_bytes)),
        ("memory_limit_bytes", Gauge, "Limit of the memory.", bytes(s.mem_limit_bytes)),
        ("memory_soft_limit_bytes", Gauge, "Allocated memory.", bytes(s.mem_soft_limit_bytes)),
        ("disk_used_bytes", Gauge, "Disk space used by the sandbox.", bytes(s.disk_used_bytes)),
        ("disk_limit_bytes", Gauge, "Limit of the disk space of the sandbox.", bytes(s.disk_limit_bytes)),
        ("processes", Gauge, "Number of processes.", count(s.processes)),
        ("threads", Gauge, "Number of threads.", count(s.threads)),
    ] {
        if let Some(value) = value {
            text.add(&named(name), kind, help, labels, value);
        }
    }
}

/// Adds the values that only control groups count.
fn counted(text: &mut Text, labels: &Labels<'_>, io: Option<(u64, u64)>, pressures: Option<&Pressures>) {
    if let Some((read, written)) = io {
        for (name, bytes) in [("io_read_bytes_total", read), ("io_written_bytes_total", written)] {
            text.add(&named(name), Kind::Counter, "Bytes read from or written to block devices.", labels, bytes as f64);
        }
    }
    let Some(all) = pressures else { return };
    for (resource, pressure) in [("cpu", all.cpu), ("memory", all.memory), ("io", all.io)] {
        let Some(pressure) = pressure else { continue };
        let mut add = |kind: &str, stalled: &Stalled| {
            let [framework, executor, container] = *labels;
            let labels = [framework, executor, container, ("resource", resource), ("kind", kind)];
            let help = "Time for which some, or all, processes waited for a resource.";
            let seconds = stalled.total as f64 / MICROSECONDS;
            text.add(&named("pressure_seconds_total"), Kind::Counter, help, &labels, seconds);
        };
        add("some", &pressure.some);
        if let Some(full) = &pressure.full {
            add("full", full);
        }
    }
}

fn named(name: &str) -> String {
    format!("tepui_container_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::containers::cgroups::Pressure;

    #[test]
    fn samples_of_one_container() {
        let mut text = Text::default();
        let labels = labels("f", "a \"task\"", "c.d");
        let statistics = ResourceStatistics {
            cpus_user_time_secs: Some(1.5),
            mem_rss_bytes: Some(1 << 20),
            processes: Some(3),
            ..ResourceStatistics::default()
        };
        container(&mut text, &labels, &statistics);
        let stalled = Stalled { averages: [0.0; 3], total: 2_500_000 };
        let waits = Pressures { memory: Some(Pressure { some: stalled, full: None }), ..Pressures::default() };
        counted(&mut text, &labels, Some((7, 8)), Some(&waits));
        let written = text.write();
        let own = r#"framework_id="f",executor_id="a \"task\"",container_id="c.d""#;
        for line in [
            "# TYPE tepui_container_cpu_user_seconds_total counter".to_owned(),
            format!("tepui_container_cpu_user_seconds_total{{{own}}} 1.5"),
            format!("tepui_container_memory_rss_bytes{{{own}}} 1048576.0"),
            format!("tepui_container_processes{{{own}}} 3.0"),
            format!("tepui_container_io_written_bytes_total{{{own}}} 8.0"),
            format!("tepui_container_pressure_seconds_total{{{own},resource=\"memory\",kind=\"some\"}} 2.5"),
        ] {
            assert!(written.lines().any(|other| other == line), "'{line}' is not in\n{written}");
        }
        assert!(!written.contains("disk"), "what is not known is not told");
    }
}
